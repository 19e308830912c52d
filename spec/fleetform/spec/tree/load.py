"""
The passes over a tree, in order, and what each leaves to the next.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetform.spec import checks, interpolate
from fleetform.spec.canonical import digest
from fleetform.spec.desired import (
    Beyond,
    Declared,
    Desired,
    Environment,
    Loaded,
    Obstacle,
    ResourceKey,
    Rules,
)
from fleetform.spec.documents import quote_lines, read_documents
from fleetform.spec.findings import Finding, Level, Problem
from fleetform.spec.identity import FILE_NAME
from fleetform.spec.kinds import KINDS, Kind
from fleetform.spec.nodes import Node, plain
from fleetform.spec.overlay import Layer, Written, overlay
from fleetform.spec.quantities.ranges import shown
from fleetform.spec.references import Catalogue, Entry, Upstream, required
from fleetform.spec.tree import elements
from fleetform.spec.tree.bases import Folder
from fleetform.spec.tree.budget import FINDINGS_MAX, Budget
from fleetform.spec.tree.commit import Commit
from fleetform.spec.tree.digests import Digests
from fleetform.spec.tree.environments import Environments
from fleetform.spec.tree.files import Cache, Files
from fleetform.spec.tree.folders import folder_of
from fleetform.spec.tree.implied import implied
from fleetform.spec.tree.inside import is_folder
from fleetform.spec.tree.own import names_values, own_digests
from fleetform.spec.tree.place import address_of, place
from fleetform.spec.tree.types import any_kind, declared_keys, not_a_document, type_problem
from fleetform.spec.tree.unbuilt import notes
from fleetform.spec.tree.walk import finding, read_file, walk

# What nobody can carry out although the document is right.
_OBSTACLES = frozenset({"not-carried-out", "undeclared-reference"})
_MARK = interpolate.MARK.encode()
# What a file that cannot be parsed declares, as far as a look at its lines can tell.
_NAME_LINE = re.compile(
    rb"^name:[ \t]*[\"']?([a-z][a-z0-9-]{1,40})[\"']?[ \t]*(?:#.*)?\r?$", re.MULTILINE
)


@dataclass(slots=True)
class _Read:
    """One document on its way; `reading` None: it did not get as far as its kind."""

    file: str
    node: Node
    reading: elements.Reading | None = None
    type: str = ""
    keys: tuple[ResourceKey, ...] = ()
    """What it declares, as far as can be told; several when its kind cannot."""
    problems: list[Problem] = field(default_factory=list)
    is_spoiled: bool = False
    """Something inherited does not fit it, which is told where that stands."""
    own_digests: Mapping[str, str] | None = None
    """By an element's identity; None: nothing of it is inherited."""

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        return tuple(
            Obstacle(one.code, one.word or ".".join(map(str, one.path)), one.detail)
            for one in self.problems
            if one.code in _OBSTACLES
        )

    @property
    def is_broken(self) -> bool:
        return self.is_spoiled or any(one.level is Level.ERROR for one in self.problems)


class Loader:
    """One reading of one tree."""

    def __init__(
        self, root: Path, cache: Cache | None, buffers: Mapping[str, bytes] | None = None
    ) -> None:
        self._root = root
        self._buffers = buffers or {}
        self._files = Files(root, {} if cache is None else cache)
        self._reads: list[_Read] = []
        self._data: dict[str, bytes] = {}
        self._marked: set[str] = set()
        self._findings: dict[str, list[Finding]] = {}
        self._untold: Counter[tuple[str, Level]] = Counter()
        self._told: Counter[tuple[str, Level]] = Counter()
        self._budget = Budget()
        self._broken: set[ResourceKey] = set()
        self._unread: list[str] = []
        self._files_count = 0
        self._environments = Environments(root, self._buffers, self._read_sound, self._tell)

    def load(self) -> Loaded:
        if not is_folder(self._root):
            return self._without_root()
        environment = self._environments.read()
        bases = tuple(folder.path for folder in self._environments.folders[1:])
        commit = Commit(self._root, bases)
        self._files.roots.extend(bases)
        if not self._read_tree():
            environment = None
        self._drop_payload()
        catalogue, entries = self._check()
        desired = None
        if environment is not None:
            resources, beyond = self._declare(catalogue, entries)
            desired = Desired(
                environment,
                resources,
                self._files.contents,
                commit.read(),
                _tree_digest({**resources, **_declared(beyond)}, environment.rules),
                frozenset(self._broken),
                tuple(sorted(self._unread)),
                beyond,
            )
        else:
            commit.read()
        return Loaded(desired, self._sorted_findings(), len(self._reads), self._files_count, bases)

    def load_file(self, file: str) -> Loaded:
        """
        Read one file below the root by itself, as if there were nothing else.

        What its documents refer to may be anywhere, so nothing is said of it.
        """
        self._reads = [self._read_document(one) for one in self._written(file)]
        self._tell_problems()
        return Loaded(None, self._sorted_findings(), len(self._reads), self._files_count)

    def read_environment(self) -> tuple[Environment | None, tuple[Finding, ...]]:
        """Read `environment.yaml` alone."""
        if not is_folder(self._root):
            return None, self._without_root().findings
        return self._environments.read_alone(), self._sorted_findings()

    def _without_root(self) -> Loaded:
        found = finding(
            "missing-environment",
            FILE_NAME,
            f"The folder {shown(str(self._root))} does not exist.",
            "Give the folder of an environment, the one with its `environment.yaml`.",
        )
        return Loaded(None, (found,))

    # Files into documents

    def _read_tree(self) -> bool:
        """Read all documents; False when nobody can tell what they come to."""
        layers = []
        for folder in reversed(self._environments.folders):
            written = [
                one
                for file in self._documents_files(folder)
                for one in self._written(file, folder.path)
            ]
            if folder.path:
                written = [Written(one.file, one.node, None) for one in written]
            layers.append(Layer(tuple(written), folder.patches))
        documents, mistakes = overlay(layers, is_complete=not self._unread)
        for one in mistakes:
            self._tell(place(one.problem, one.node, one.file, address_of(one.node)))
        self._reads = [self._read_document(one) for one in documents]
        return not any(mistake.is_general for mistake in mistakes)

    def _documents_files(self, folder: Folder) -> list[str]:
        walked = walk(self._root / folder.path, prefix=folder.path)
        for told in walked.findings:
            self._tell(told)
        self._unread.extend(walked.unread)
        unsaved = (file for file in self._buffers if folder.has(file))
        found = {*walked.files, *unsaved} - folder.patch_files
        return sorted(found - {folder.below(FILE_NAME)})

    def _written(self, file: str, base: str = "") -> list[Written]:
        nodes = [one for node in self._read_nodes(file, base) for one in implied(node)]
        return [Written(file, node, node) for node in nodes]

    def _read_sound(self, file: str, base: str) -> list[Node] | None:
        nodes = self._read_nodes(file, base)
        return None if file in self._unread else nodes

    def _read_nodes(self, file: str, base: str = "") -> list[Node]:
        unsaved = self._buffers.get(file)
        data = read_file(self._root, file, base=base) if unsaved is None else unsaved
        if isinstance(data, Finding):
            self._tell(data)
            self._unread.append(file)
            return []
        self._files_count += 1
        self._data[file] = data
        if _MARK in data:
            self._marked.add(file)
        nodes, findings = read_documents(data, file)
        for told in findings:
            self._tell(told)
        if any(told.level is Level.ERROR for told in findings):
            self._unread.append(file)
            for name in _NAME_LINE.findall(data):
                self._broken.update(any_kind(name.decode()))
        return nodes

    # Documents into values

    def _read_document(self, written: Written) -> _Read:
        file, node = written.file, written.node
        read = _Read(file, node, is_spoiled=written.is_spoiled)
        value = plain(node)
        if not isinstance(value, dict):
            read.problems.append(not_a_document(value))
            return read
        type_name = value.get("type")
        read.type = type_name if isinstance(type_name, str) else ""
        kind = KINDS.get(read.type)
        read.keys = declared_keys(value, kind.name if kind else None)
        if kind is None:
            read.problems.append(type_problem(value))
            return read
        # What is inherited may bring an expression into a file that has none.
        has_marks = written.is_inherited or file in self._marked
        values = self._environments.values
        read.reading = elements.read(
            value,
            kind,
            self._files,
            folder_of(node, file),
            has_marks=has_marks,
            values=values,
            budget=self._budget,
        )
        read.problems.extend(read.reading.problems)
        if read.reading.model is not None:
            read.problems.extend(notes(value, kind, read.reading.model))
            if written.is_inherited or (values and has_marks and names_values(value)):
                read.own_digests = self._own_digests(written, value, kind, read.reading)
        return read

    def _own_digests(
        self, written: Written, value: Mapping[str, Any], kind: Kind, reading: elements.Reading
    ) -> dict[str, str]:
        folder = written.file.rpartition("/")[0]

        def read(again: Mapping[str, Any]) -> elements.Reading:
            return elements.read(again, kind, self._files, folder, has_marks=True)

        return own_digests(written.own, value, reading, kind.name, read)

    def _drop_payload(self) -> None:
        """
        Leave out YAML that a run carries along as a file: it is data of a program.

        Only below names under `files:` where no document lies, so that a run that takes the
        whole tree along hides no mistake in it.
        """
        declaring = {read.file for read in self._reads if read.type in KINDS}
        sources = [
            source
            for source in self._files.sources
            if not any(_is_below(file, source) for file in declaring)
        ]
        if not sources:
            return
        payload = {
            file for file in self._data if any(_is_below(file, source) for source in sources)
        }
        self._reads = [read for read in self._reads if read.file not in payload]
        self._unread = [file for file in self._unread if file not in payload]
        for file in payload:
            self._findings.pop(file, None)

    # Documents against each other

    def _check(self) -> tuple[Catalogue, list[tuple[_Read, Entry]]]:
        entries: list[tuple[_Read, Entry]] = []
        for number, read in enumerate(self._reads):
            if read.is_broken:
                self._broken.update(read.keys)
            if read.reading is not None and read.reading.model is not None:
                entries.append((read, _entry(number, read, read.reading)))
        has_unread = bool(self._unread) or any(
            read.is_broken and not read.keys for read in self._reads
        )
        catalogue = Catalogue.of(
            (entry for _, entry in entries), self._broken, has_unread=has_unread
        )
        for entry, problem in checks.check(catalogue):
            self._reads[entry.number].problems.append(problem)
        self._tell_problems()
        self._tell_empty(catalogue)
        return catalogue, entries

    def _tell_problems(self) -> None:
        for read in self._reads:
            for problem in read.problems:
                if self._has_room(read.file, problem.level):
                    self._tell(place(problem, read.node, read.file, address_of(read.node)))
            if read.is_broken:
                self._broken.update(read.keys)
        self._tell_untold()

    def _tell_empty(self, catalogue: Catalogue) -> None:
        problem = checks.check_tree(catalogue)
        if problem is not None:
            self._tell(finding(problem.code, ".", problem.detail, problem.advice, problem.level))

    # What is left into resources

    def _declare(
        self, catalogue: Catalogue, entries: list[tuple[_Read, Entry]]
    ) -> tuple[dict[ResourceKey, Declared], dict[ResourceKey, Beyond]]:
        """What can be carried out, and what cannot although nothing is wrong with it."""
        upstream = Upstream(catalogue)
        declared: dict[ResourceKey, Declared] = {}
        beyond: dict[ResourceKey, Beyond] = {}
        for read, entry in entries:
            if read.is_broken or read.reading is None:
                continue
            obstacles = read.obstacles
            for one in _resources(entry, read, upstream):
                if obstacles:
                    beyond[one.key] = Beyond(one, obstacles)
                else:
                    declared[one.key] = one
        return dict(sorted(declared.items())), dict(sorted(beyond.items()))

    def _has_room(self, file: str, level: Level) -> bool:
        """Whether one more is told of the file; finding its place takes the most time."""
        if self._told[file, level] < FINDINGS_MAX:
            self._told[file, level] += 1
            return True
        self._untold[file, level] += 1
        return False

    def _tell_untold(self) -> None:
        for (file, level), count in self._untold.items():
            self._tell(
                finding(
                    "too-many-findings",
                    file,
                    f"Of this level there are {count} more in the file.",
                    "Correct the ones that are shown first; they may be the cause of the others.",
                    level,
                )
            )

    def _tell(self, told: Finding) -> None:
        self._findings.setdefault(told.place.file, []).append(told)

    def _sorted_findings(self) -> tuple[Finding, ...]:
        told: list[Finding] = []
        for file, findings in self._findings.items():
            told.extend(quote_lines(findings, self._data[file]) if file in self._data else findings)
        return tuple(sorted(told, key=lambda one: one.sort_key))


def _entry(number: int, read: _Read, reading: elements.Reading) -> Entry:
    assert reading.model is not None, read.file
    identities = (element.identity for element, _ in reading.elements if element.identity)
    return Entry(
        number,
        read.keys[0],
        read.type,
        reading.model,
        read.node.place.in_file(read.file),
        reading.documents,
        frozenset(identities),
    )


def _resources(entry: Entry, read: _Read, upstream: Upstream) -> Iterator[Declared]:
    reading = read.reading
    assert reading is not None, read.file
    digests = Digests(entry.key.kind, reading.shared)
    kind = entry.key.kind
    same = required(reading.documents[0], kind) if len(reading.documents) == 1 else None
    for element, own in reading.elements:
        document = {**reading.shared, **own}
        whole, execution = digests.of(own)
        yield Declared(
            ResourceKey(kind, element.name),
            entry.type,
            document,
            whole,
            execution,
            whole if read.own_digests is None else read.own_digests[element.identity],
            entry.key.name if element.identity else "",
            element.identity,
            required(document, kind) if same is None else same,
            upstream.of(document, element.identity),
            entry.place,
        )


def _is_below(file: str, source: str) -> bool:
    if source == ".":
        return not file.startswith("../")
    return source == file or file.startswith(f"{source}/")


def _declared(beyond: Mapping[ResourceKey, Beyond]) -> dict[ResourceKey, Declared]:
    return {key: one.declared for key, one in beyond.items()}


def _tree_digest(resources: Mapping[ResourceKey, Declared], rules: Rules) -> str:
    return digest(
        {
            "resources": {str(key): one.digest for key, one in resources.items()},
            "rules": {
                "allow_destroy": rules.allow_destroy,
                "delete_percent": rules.delete_percent,
                "delete_count": rules.delete_count,
            },
        }
    )
