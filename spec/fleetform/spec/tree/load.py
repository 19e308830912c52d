"""
The passes over a tree, in order, and what each leaves to the next.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetform.spec import checks
from fleetform.spec.canonical import digest
from fleetform.spec.dataclass import dataclass
from fleetform.spec.desired import (
    Desired,
    Environment,
    Loaded,
    Obstacle,
    ResourceKey,
)
from fleetform.spec.findings import Finding, Level, Problem
from fleetform.spec.identity import FILE_NAME
from fleetform.spec.kinds import KINDS
from fleetform.spec.nodes import MappingNode, Node, Span
from fleetform.spec.overlay import Layer, Written, overlay
from fleetform.spec.overlay.profiles import TYPE as PROFILE
from fleetform.spec.overlay.written import Mistake
from fleetform.spec.quantities.ranges import shown
from fleetform.spec.references import Catalogue, Entry, Upstream
from fleetform.spec.table import BeyondTable
from fleetform.spec.tree.bases import Folder
from fleetform.spec.tree.beside import read_beside
from fleetform.spec.tree.budget import FINDINGS_MAX, Budget
from fleetform.spec.tree.cache import Header, Kept, KeptFile, ReadingCache, look_of
from fleetform.spec.tree.claims import claims_of
from fleetform.spec.tree.commit import Commit
from fleetform.spec.tree.environments import Environments
from fleetform.spec.tree.files import Files
from fleetform.spec.tree.inside import is_folder
from fleetform.spec.tree.origins import Made, Origins, table_of
from fleetform.spec.tree.outcome import Conditions, Outcome
from fleetform.spec.tree.parts import with_parts
from fleetform.spec.tree.place import address_of, place
from fleetform.spec.tree.resources import digests_by_address, document_of, tree_digest
from fleetform.spec.tree.seen import OBSTACLES, OF_THE_TREE
from fleetform.spec.tree.sources import Sources, header_of, is_overlaying
from fleetform.spec.tree.walk import finding, walk
from fleetform.spec.tree.whole import Input, Whole

if TYPE_CHECKING:
    from fleetform.spec.tree.reader import Reader


@dataclass(slots=True)
class _Read:
    """
    One document on its way.

    Attributes:
        conditions: What its outcome depends on; None where that is of no use to another load.
        stub: The kept document that it comes from; None: it was read just now.
        node: What it was read from; None while it comes from a kept one.
        others: Problems that it has with other documents; None while there are none.
        told: Its problems as they are told; the same.
    """

    file: str
    outcome: Outcome
    conditions: Conditions | None
    stub: tuple[KeptFile, int] | None = None
    node: Node | None = None
    others: list[Problem] | None = None
    told: dict[Problem, Finding] | None = None

    @property
    def problems(self) -> Sequence[Problem]:
        return [*self.outcome.problems, *self.others] if self.others else self.outcome.problems

    @property
    def is_broken(self) -> bool:
        return self.outcome.is_broken or any(one.level is Level.ERROR for one in self.others or ())

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """Why it cannot be carried out although nothing is wrong with it."""
        return tuple(
            Obstacle(one.code, _field_of(one), one.detail)
            for one in self.problems
            if one.code in OBSTACLES
        )


def _field_of(problem: Problem) -> str:
    """
    As people name a field: `env.TOKEN`, `volumes.instance`.

    Positions in lists are left out; two items with the same obstacle are one to wait for. An
    expression is known by itself, wherever it stands: `secrets.token`.
    """
    if "." in problem.word:
        return problem.word
    names = [step for step in problem.path if isinstance(step, str)]
    return ".".join((*names, problem.word) if problem.word else names)


_NO_ELEMENTS: frozenset[str] = frozenset()
_NO_CONDITIONS = Conditions()
# Where a document was that is there no more.
_NOTHING = MappingNode((), Span(0, 0))


class Loader:
    """One reading of one tree."""

    def __init__(
        self,
        root: Path,
        cache: ReadingCache | None = None,
        buffers: Mapping[str, bytes] | None = None,
    ) -> None:
        self._root = root
        self._commit: Commit | None = None
        self._buffers = buffers or {}
        self._cache = cache
        self._files = Files(root, {} if cache is None else cache.digests)
        self._sources = Sources(root, self._buffers, cache, self._tell)
        self._unread = self._sources.unread
        self._broken = self._sources.broken
        self._reads: list[_Read] = []
        self._findings: dict[str, list[Finding]] = {}
        self._untold: Counter[tuple[str, Level]] = Counter()
        self._told: Counter[tuple[str, Level]] = Counter()
        self._budget = Budget()
        self._environments = Environments(root, self._buffers, self._sources.sound, self._tell)
        self._touched: set[int] = set()
        self._reader: Reader | None = None
        self._values = ""
        self._walked_count = 0
        self._declared: dict[ResourceKey, Made] = {}
        self._beyond: dict[ResourceKey, Made] = {}
        self._obstacles: dict[ResourceKey, tuple[Obstacle, ...]] = {}
        self._is_alone = True
        self._has_disputes = False
        self._claims: str | None = None

    def load(self) -> Loaded:
        if not is_folder(self._root):
            return self._without_root()
        if self._cache is not None:
            self._cache.begin()
            self._cache.keep_whole(None)
        environment = self._environments.read()
        bases = tuple(folder.path for folder in self._environments.folders[1:])
        self._commit = Commit(self._root, bases)
        self._files.roots.extend(bases)
        if not self._read_tree():
            environment = None
        self._drop_payload()
        catalogue, entries = self._check()
        are_right = self._environments.check_addresses(catalogue)
        desired = None
        if environment is not None and are_right:
            addresses = self._environments.addresses
            self._declare(catalogue, entries)
            resources, beyond = table_of(self._declared), table_of(self._beyond)
            desired = Desired(
                environment,
                resources,
                self._files.contents,
                self._commit.read(),
                tree_digest(digests_by_address(resources, beyond), environment.rules, addresses),
                frozenset(self._broken),
                tuple(sorted(self._unread)),
                BeyondTable(beyond, self._obstacles),
                addresses.resolved,
                addresses.removed,
                addresses.imports,
            )
        loaded = self._loaded(desired, bases)
        if self._cache is not None:
            self._keep(self._cache)
            self._cache.end()
            self._cache.keep_whole(self._whole(self._cache, loaded))
        return loaded

    def written(self) -> Iterator[tuple[str, Node]]:
        """After `load` without a cache: each document with all that it inherits, and its file."""
        for read in self._reads:
            assert read.node is not None, "without a cache all are read"
            yield read.file, read.node

    @property
    def environments(self) -> Environments:
        """What the tree is made of; known after `load`."""
        return self._environments

    def close(self) -> None:
        """Give back what was opened for reading."""
        self._sources.close()
        if self._commit is not None:
            self._commit.drop()

    def load_file(self, file: str) -> Loaded:
        """
        Read one file below the root by itself, as if there were nothing else.

        What its documents refer to may be anywhere, so nothing is said of it.
        """
        if self._cache is not None:
            self._cache.begin()
        given = self._sources.given(file, look=self._look(file))
        self._reads = list(self._read_given(given))
        self._tell_problems()
        if self._cache is not None:
            self._keep(self._cache)
            self._cache.end()
        return self._loaded(None)

    def read_again(
        self, files: Iterable[tuple[str, str]], values: Mapping[str, Any]
    ) -> tuple[Finding, ...] | None:
        """
        Read files that have changed, of a tree of which all else is as it was, into the cache.

        Args:
            files: Each with how it looks.
            values: The environment's.

        Returns:
            What is wrong with their documents alone; None where that takes the whole tree.
        """
        assert self._cache is not None, "it is where they go"
        self._cache.begin()
        self._environments.values = values
        given = [self._sources.given(file, look=look, by_parts=True) for file, look in files]
        if self._unread or self._is_overlaid([given]):
            return None
        for one in given:
            self._reads.extend(self._read_given(one))
        self._tell_problems()
        self._keep(self._cache)
        return self._sorted_findings()

    def _look(self, file: str) -> str:
        try:
            return look_of((self._root / file).stat())
        except (OSError, ValueError):
            return ""

    def read_environment(self) -> tuple[Environment | None, tuple[Finding, ...]]:
        """Read `environment.yaml` alone."""
        if not is_folder(self._root):
            return None, self._without_root().findings
        return self._environments.read_alone(), self._sorted_findings()

    def _loaded(self, desired: Desired | None, bases: tuple[str, ...] = ()) -> Loaded:
        return Loaded(
            desired, self._sorted_findings(), len(self._reads), len(self._sources.files), bases
        )

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
        folders = list(reversed(self._environments.folders))
        looks = [self._looks(folder) for folder in folders]
        if self._cache is not None and not self._buffers and len(folders) == 1:
            read_beside(self._root, self._cache, looks[0], self._environments.values)
        given = [
            [self._sources.given(file, folder.path, look) for file, look, _ in looked]
            for folder, looked in zip(folders, looks, strict=True)
        ]
        if not self._is_overlaid(given):
            for file in given[0]:
                self._reads.extend(self._read_given(file))
            return True
        self._is_alone = False
        layers = [
            Layer(tuple(self._written(files)), folder.patches)
            for files, folder in zip(given, reversed(self._environments.folders), strict=True)
        ]
        documents, mistakes = self._overlay(layers)
        for wrong in mistakes:
            self._tell(place(wrong.problem, wrong.node, wrong.file, address_of(wrong.node)))
        for one in documents:
            stub = self._sources.stub(one)
            self._reads.append(
                self._read(one) if stub is None else self._read_kept(stub.file, stub.number)
            )
        return not any(wrong.is_general for wrong in mistakes)

    def _is_overlaid(self, given: list[list[KeptFile | list[Written]]]) -> bool:
        """Whether documents may come to anything else than what is written in them."""
        if len(given) > 1 or self._environments.folders[0].patches:
            return True
        return any(
            any(_has_profile(one.header) for one in file.documents)
            if isinstance(file, KeptFile)
            else any(is_overlaying(one.node) for one in file)
            for file in given[0]
        )

    def _written(self, files: list[KeptFile | list[Written]]) -> Iterator[Written]:
        for file in files:
            yield from self._sources.stubs(file) if isinstance(file, KeptFile) else file

    def _overlay(self, layers: list[Layer]) -> tuple[list[Written], list[Mistake]]:
        """The documents that all layers come to, those that are touched with all their nodes."""
        while True:
            documents, mistakes = overlay(layers, is_complete=not self._unread)
            untouched = {id(one) for one in documents}
            wrong = {id(mistake.node) for mistake in mistakes}
            opened = [self._opened(layer, untouched, wrong) for layer in layers]
            if all(one is two for one, two in zip(opened, layers, strict=True)):
                given = {id(one) for layer in layers for one in layer.documents}
                self._touched.update(
                    id(one.node) for one in documents if id(one) not in given or one.is_spoiled
                )
                return documents, mistakes
            layers = opened

    def _opened(self, layer: Layer, untouched: set[int], wrong: set[int]) -> Layer:
        """The layer with nodes where an overlay did more than to look; itself where it did not."""
        documents = []
        is_opened = False
        for one in layer.documents:
            stub = self._sources.stub(one)
            if stub is None or (id(one) in untouched and id(one.node) not in wrong):
                documents.append(one)
                continue
            # What has changed meanwhile is left out: nobody can tell what it declares.
            found = self._sources.lay_open(stub.file, stub.number)
            documents.extend([found] if found else [])
            is_opened = True
        return Layer(tuple(documents), layer.patches) if is_opened else layer

    def _looks(self, folder: Folder) -> list[tuple[str, str, int]]:
        """The files of a folder, in order, how they look, and their sizes."""
        walked = walk(self._root / folder.path, prefix=folder.path)
        for told in walked.findings:
            self._tell(told)
        self._unread.extend(walked.unread)
        self._walked_count += len(walked.files)
        unsaved = (file for file in self._buffers if folder.has(file))
        found = {*walked.files, *unsaved} - folder.patch_files
        ordered = sorted(found - {folder.below(FILE_NAME)})
        if self._cache is None:
            return [(file, "", 0) for file in ordered]
        seen = walked.seen
        return [
            (file, look_of(seen[file]), seen[file].st_size) if file in seen else (file, "", 0)
            for file in ordered
        ]

    # Documents into values

    def _read_given(self, given: KeptFile | list[Written]) -> Iterator[_Read]:
        if isinstance(given, KeptFile):
            for number in range(len(given.documents)):
                yield self._read_kept(given, number)
        else:
            for written in given:
                stub = self._sources.stub(written)
                yield self._read_kept(stub.file, stub.number) if stub else self._read(written)

    def _read_kept(self, file: KeptFile, number: int) -> _Read:
        kept = file.documents[number]
        if self._holds(kept.conditions):
            return _Read(file.path, kept.outcome, kept.conditions, (file, number))
        written = self._sources.lay_open(file, number)
        if written is None:
            return _Read(file.path, Outcome(keys=kept.outcome.keys, is_spoiled=True), None)
        return self._read(written)

    def _read(self, written: Written) -> _Read:
        outcome, conditions = self._read_now(written)
        is_own = id(written.node) not in self._touched
        return _Read(written.file, outcome, conditions if is_own else None, None, written.node)

    def _read_now(self, written: Written) -> tuple[Outcome, Conditions]:
        if self._reader is None:
            # With it come the models of all kinds, and most loads read nothing anew.
            from fleetform.spec.tree.reader import Reader

            self._reader = Reader(
                self._files, self._budget, self._environments.values, self._sources.has_marks
            )
        return self._reader.read(written)

    def _holds(self, conditions: Conditions) -> bool:
        """Whether a reading would come out the same now; if so, it has taken what it takes."""
        if conditions == _NO_CONDITIONS:
            # Nearly all of them. With no elements left, even these are told so.
            return self._budget.elements > 0
        if conditions.values:
            self._values = self._values or digest(self._environments.values)
            if conditions.values != self._values:
                return False
        return all(self._files.answers_again(one) for one in conditions.files) and (
            self._budget.repeat(conditions.spent)
        )

    def _drop_payload(self) -> None:
        """
        Leave out YAML that a run carries along as a file: it is data of a program.

        Only below names under `files:` where no document lies, so that a run that takes the
        whole tree along hides no mistake in it.
        """
        declaring = {read.file for read in self._reads if read.outcome.type in KINDS}
        above = {folder for file in declaring for folder in _steps(file)}
        sources = self._files.sources - above
        if not sources:
            return
        payload = {
            file for file in self._sources.files if any(step in sources for step in _steps(file))
        }
        self._is_alone = self._is_alone and not payload
        self._reads = [read for read in self._reads if read.file not in payload]
        self._unread[:] = [file for file in self._unread if file not in payload]
        for file in payload:
            self._findings.pop(file, None)

    # Documents against each other

    def _check(self) -> tuple[Catalogue, list[tuple[_Read, Entry]]]:
        entries: list[tuple[_Read, Entry]] = []
        nameless: dict[str, None] = {}
        for number, read in enumerate(self._reads):
            if read.outcome.is_broken:
                self._broken.update(read.outcome.keys)
                if not read.outcome.keys:
                    # Whatever it was called before its name went wrong may not be removed.
                    nameless[read.file] = None
            if read.outcome.is_read:
                entries.append((read, _entry(number, read.outcome)))
        self._unread[:] = dict.fromkeys((*self._unread, *nameless))
        catalogue = Catalogue.of(
            (entry for _, entry in entries), self._broken, has_unread=bool(self._unread)
        )
        self._claims = claims_of(one.documents[0] for one in catalogue.of_kind("volume"))
        for entry, problem in checks.check(catalogue):
            self._has_disputes = True
            read = self._reads[entry.number]
            if read.others is None:
                read.others = []
            read.others.append(problem)
        self._tell_problems()
        self._tell_empty(catalogue)
        return catalogue, entries

    def _tell_problems(self) -> None:
        for read in self._reads:
            if not read.others and not read.outcome.problems:
                continue
            for problem in read.problems:
                if self._has_room(read.file, problem.level):
                    self._tell(self._placed(read, problem))
            if read.is_broken:
                self._broken.update(read.outcome.keys)
        self._tell_untold()

    def _placed(self, read: _Read, problem: Problem) -> Finding:
        found = None
        if read.stub is not None:
            file, number = read.stub
            found = file.documents[number].told.get(problem)
            if found is None and read.node is None:
                opened = self._sources.lay_open(file, number)
                read.node = opened.node if opened else _NOTHING
        if found is None:
            assert read.node is not None, read.file
            found = place(problem, read.node, read.file, address_of(read.node))
        if read.told is None:
            read.told = {}
        read.told[problem] = found
        return found

    def _tell_empty(self, catalogue: Catalogue) -> None:
        problem = checks.check_tree(catalogue)
        if problem is not None:
            self._tell(finding(problem.code, ".", problem.detail, problem.advice, problem.level))

    # What is left into resources

    def _declare(self, catalogue: Catalogue, entries: list[tuple[_Read, Entry]]) -> None:
        """What can be carried out, and what cannot although nothing is wrong with it."""
        upstream = Upstream(catalogue)
        for read, entry in entries:
            # A profile has become a part of the runs that name it.
            if read.is_broken or entry.key.kind == PROFILE:
                continue
            outcome, obstacles = read.outcome, read.obstacles
            for number, row in enumerate(outcome.rows):
                key = ResourceKey(entry.key.kind, row.name)
                waits_for = upstream.of(document_of(outcome, row), row.identity)
                made = Made(read.file, outcome, number, waits_for)
                if obstacles:
                    self._beyond[key] = made
                    self._obstacles[key] = obstacles
                else:
                    self._declared[key] = made
        self._declared = dict(sorted(self._declared.items()))
        self._beyond = dict(sorted(self._beyond.items()))

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
            told.extend(self._quoted(file, findings))
        return tuple(sorted(told, key=lambda one: one.sort_key))

    def _quoted(self, file: str, findings: Iterable[Finding]) -> Iterable[Finding]:
        data = self._sources.data.get(file)
        if data is None:
            return findings
        from fleetform.spec.documents import quote_lines

        return quote_lines(findings, data)

    # What the next load is spared

    def _keep(self, cache: ReadingCache) -> None:
        reads: dict[str, list[_Read]] = {}
        for read in self._reads:
            reads.setdefault(read.file, []).append(read)
        for file, count in self._sources.counts.items():
            found = reads.get(file, [])
            made = [self._kept_form(read) for read in found] if len(found) == count else [None]
            kept = [one for one in made if one is not None]
            if len(kept) == len(made) and file in self._sources.parsed:
                sha256, look = self._sources.parsed[file]
                kept = with_parts(kept, self._sources.data[file])
                cache.keep(KeptFile(file, sha256, look, kept))
        for source in self._sources.kept_files:
            self._renew(source, reads.get(source.path, []), cache)

    def _renew(self, file: KeptFile, reads: list[_Read], cache: ReadingCache) -> None:
        """Keep what was learned of documents that were kept: other places, other conditions."""
        if all(_is_known(read) for read in reads) or len(reads) != len(file.documents):
            return
        made = [
            file.documents[number] if _is_known(read) else self._kept_form(read)
            for number, read in enumerate(reads)
        ]
        kept = [one for one in made if one is not None]
        if len(kept) == len(made):
            cache.keep(KeptFile(file.path, file.sha256, file.look, kept))

    def _kept_form(self, read: _Read) -> Kept | None:
        """What to keep of a document; None where that would be of no use."""
        outcome = read.outcome
        told = read.told or {}
        if read.conditions is None or outcome.is_spoiled or len(told) != len(read.problems):
            return None
        if any(one.code in OF_THE_TREE for one in outcome.problems):
            return None
        if read.stub is not None:
            header: Header | None = read.stub[0].documents[read.stub[1]].header
        else:
            assert read.node is not None, read.file
            header = header_of(read.node)
        if header is None:
            return None
        found = self._quoted(read.file, told.values())
        return Kept(header, outcome, read.conditions, dict(zip(told, found, strict=True)))

    def _whole(self, cache: ReadingCache, loaded: Loaded) -> Whole | None:
        """What the tree came to; None where it would not come to the same for certain."""
        desired = loaded.desired
        answers = self._files.all_answers
        if desired is None or self._unread or self._buffers or answers is None:
            return None
        files = tuple(cache.current())
        origins = Origins(files)
        resources = origins.rows(self._declared)
        beyond = origins.rows(self._beyond)
        folders = self._environments.folders
        return Whole(
            replace(desired, resources={}, contents={}, commit="", beyond={}),
            resources,
            beyond,
            self._obstacles,
            (*files, KeptFile("", "", "", origins.overlaid)),
            loaded.findings,
            loaded.documents_count,
            loaded.files_count,
            tuple(folder.path for folder in folders),
            self._walked_count,
            self._inputs(cache),
            tuple(answers),
            self._environments.addresses,
            self._environments.values,
            self._budget.left(),
            self._is_alone,
            self._has_disputes,
            self._claims,
        )

    def _inputs(self, cache: ReadingCache) -> dict[str, Input]:
        """Files that were read and have no reading."""
        inputs = {}
        for file in sorted(self._sources.files):
            if cache.known(file) is None:
                sha256 = hashlib.sha256(self._sources.data[file]).hexdigest()
                _, look = self._sources.parsed.get(file, ("", ""))
                inputs[file] = Input(sha256, look, self._sources.base_of[file])
        return inputs


def _is_known(read: _Read) -> bool:
    """Whether it comes from a kept document, and nothing is told of it that was not before."""
    if read.stub is None:
        return False
    file, number = read.stub
    return not read.told or read.told.keys() <= file.documents[number].told.keys()


def _has_profile(header: Header) -> bool:
    return any(key == "profile" for key, _, _ in header)


def _entry(number: int, outcome: Outcome) -> Entry:
    identities = [row.identity for row in outcome.rows if row.identity]
    return Entry(
        number,
        outcome.keys[0],
        outcome.type,
        outcome.place,
        outcome.documents,
        frozenset(identities) if identities else _NO_ELEMENTS,
        outcome.references,
    )


def _steps(file: str) -> Iterator[str]:
    """The file and every folder above it, as `files:` may name them."""
    step = file
    while step:
        yield step
        step = step.rpartition("/")[0]
    if not file.startswith("../"):
        yield "."
