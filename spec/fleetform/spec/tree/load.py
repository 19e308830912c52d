"""
The passes over a tree, in order, and what each leaves to the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from fleetform.spec import checks
from fleetform.spec.desired import (
    FILE_NAME,
    Desired,
    Environment,
    Loaded,
    Obstacle,
    ResourceKey,
    UnsupportedTable,
)
from fleetform.spec.findings import Finding
from fleetform.spec.kinds import KINDS
from fleetform.spec.nodes import Node
from fleetform.spec.overlay.profiles import TYPE as PROFILE
from fleetform.spec.quantities.ranges import shown
from fleetform.spec.references import Catalogue, Entry, Upstream
from fleetform.spec.tree.cache import KeptFile, ReadingCache, is_overlaid, look_of
from fleetform.spec.tree.change_detection import claims_of
from fleetform.spec.tree.environments import Environments, Folder, overlaid
from fleetform.spec.tree.files import Files
from fleetform.spec.tree.findings import FindingLog, address_of, place
from fleetform.spec.tree.git import Commit
from fleetform.spec.tree.read import Read, Readings, entry_of, keep
from fleetform.spec.tree.sources import Sources
from fleetform.spec.tree.walk import finding, is_folder, walk
from fleetform.spec.tree.whole import (
    Input,
    Made,
    Origins,
    Whole,
    digests_by_address,
    document_of,
    table_of,
    tree_digest,
)

__all__ = ["Loader"]


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
        self._log = FindingLog()
        self._tell = self._log.add
        self._sources = Sources(root, self._buffers, cache, self._tell)
        self._unread = self._sources.unread
        self._broken = self._sources.broken
        self._reads: list[Read] = []
        self._environments = Environments(root, self._buffers, self._sources.sound, self._tell)
        # Of the environment's values, once these are known.
        self._readings = Readings(self._files, self._sources, {})
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
        self._readings = Readings(self._files, self._sources, self._environments.values)
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
                UnsupportedTable(beyond, self._obstacles),
                addresses.resolved,
                addresses.removed,
                addresses.imports,
            )
        loaded = self._loaded(desired, bases)
        if self._cache is not None:
            keep(self._cache, self._sources, self._reads)
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

    def read_environment(self) -> tuple[Environment | None, tuple[Finding, ...]]:
        """Read `environment.yaml` alone."""
        if not is_folder(self._root):
            return None, self._without_root().findings
        return self._environments.read_alone(), self._log.sorted(self._sources.data)

    def _loaded(self, desired: Desired | None, bases: tuple[str, ...] = ()) -> Loaded:
        return Loaded(
            desired,
            self._log.sorted(self._sources.data),
            len(self._reads),
            len(self._sources.files),
            bases,
        )

    def _without_root(self) -> Loaded:
        found = finding(
            "missing-environment",
            FILE_NAME,
            f"The folder {shown(str(self._root))} does not exist.",
            "Name the folder that contains `environment.yaml`.",
        )
        return Loaded(None, (found,))

    # Files into documents

    def _read_tree(self) -> bool:
        """Read all documents; False when what they declare cannot be known."""
        folders = list(reversed(self._environments.folders))
        looks = [self._looks(folder) for folder in folders]
        given = [
            [self._sources.given(file, folder.path, look) for file, look, _ in looked]
            for folder, looked in zip(folders, looks, strict=True)
        ]
        is_overlaying = len(folders) > 1 or any(folder.patches for folder in folders)
        if not (is_overlaying or is_overlaid(given[0])):
            for file in given[0]:
                self._reads.extend(self._readings.of_file(file))
            return True
        self._is_alone = False
        documents, mistakes = overlaid(self._sources, folders, given, self._readings.touched)
        for wrong in mistakes:
            self._tell(place(wrong.problem, wrong.node, wrong.file, address_of(wrong.node)))
        for one in documents:
            stub = self._sources.stub(one)
            self._reads.append(
                self._readings.now(one)
                if stub is None
                else self._readings.kept(stub.file, stub.number)
            )
        return not any(wrong.is_general for wrong in mistakes)

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
            self._log.drop(file)

    # Documents against each other

    def _check(self) -> tuple[Catalogue, list[tuple[Read, Entry]]]:
        entries: list[tuple[Read, Entry]] = []
        unnamed: list[Entry] = []
        nameless: dict[str, None] = {}
        nameless_kinds: set[str] = set()
        has_unread = bool(self._unread)
        for number, read in enumerate(self._reads):
            if read.outcome.is_broken:
                self._broken.update(read.outcome.keys)
                if not read.outcome.keys:
                    # Whatever it was called before its name went wrong may not be removed.
                    nameless[read.file] = None
                    kind = KINDS.get(read.outcome.type)
                    has_unread = has_unread or kind is None
                    nameless_kinds.update([] if kind is None else [kind.name])
            if read.outcome.is_read:
                entries.append((read, entry_of(number, read.outcome)))
            elif read.outcome.references or read.outcome.documents:
                unnamed.append(entry_of(number, read.outcome))
        self._unread[:] = dict.fromkeys((*self._unread, *nameless))
        catalogue = Catalogue.of(
            (entry for _, entry in entries),
            self._broken,
            unnamed=unnamed,
            has_unread=has_unread,
            nameless=nameless_kinds,
        )
        self._claims = claims_of(one.documents[0] for one in catalogue.of_kind("volume"))
        for entry, problem in checks.check(catalogue):
            self._has_disputes = True
            read = self._reads[entry.number]
            if read.others is None:
                read.others = []
            read.others.append(problem)
        self._readings.log_problems(self._reads, self._log)
        self._tell_empty(catalogue)
        return catalogue, entries

    def _tell_empty(self, catalogue: Catalogue) -> None:
        problem = checks.check_empty(catalogue)
        if problem is not None:
            self._tell(finding(problem.code, ".", problem.detail, problem.advice, problem.level))

    # What is left into resources

    def _declare(self, catalogue: Catalogue, entries: list[tuple[Read, Entry]]) -> None:
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
            self._environments.own,
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
            self._readings.budget.left(),
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


def _steps(file: str) -> Iterator[str]:
    """The file and every folder above it, as `files:` may name them."""
    step = file
    while step:
        yield step
        step = step.rpartition("/")[0]
    if not file.startswith("../"):
        yield "."
