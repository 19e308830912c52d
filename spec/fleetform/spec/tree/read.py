"""
Read the documents of files: from the cache where a reading still holds, or by their kind's model.

A `Read` is one document of a load on its way: what it came to, where it stands, and what others
have against it. What a load learned of single documents is put into the cache for the next. Files
can be read by themselves too, without the tree that they belong to and the checks between documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetform.spec.canonical import digest
from fleetform.spec.desired import Loaded, Obstacle, ResourceKey
from fleetform.spec.findings import Finding, Level, Problem
from fleetform.spec.nodes import MappingNode, Node, Span
from fleetform.spec.overlay.documents import Written
from fleetform.spec.references import Entry
from fleetform.spec.tree.budget import Budget
from fleetform.spec.tree.cache import (
    Conditions,
    Header,
    Kept,
    KeptFile,
    Outcome,
    ReadingCache,
    header_of,
    is_overlaid,
    look_of,
)
from fleetform.spec.tree.change_detection import OBSTACLES, OF_THE_TREE
from fleetform.spec.tree.files import Files
from fleetform.spec.tree.findings import FindingLog, address_of, place, quoted
from fleetform.spec.tree.sources import Sources

if TYPE_CHECKING:
    from fleetform.spec.tree.reader import Reader

__all__ = ["Read", "Readings", "entry_of", "keep", "load_alone", "read_again"]


UNNAMED = ResourceKey("", "")
"""Stands for the key of a document without a name."""


@dataclass(slots=True)
class Read:
    """
    One document on its way.

    Attributes:
        conditions: What its outcome depends on; None where that is of no use to another load.
        stub: The kept document that it comes from; None: it was read just now.
        node: What it was read from; None while it comes from a kept one.
        others: Problems that it has with other documents; None while there are none.
        findings: Its problems as findings; the same.
    """

    file: str
    outcome: Outcome
    conditions: Conditions | None
    stub: tuple[KeptFile, int] | None = None
    node: Node | None = None
    others: list[Problem] | None = None
    findings: dict[Problem, Finding] | None = None

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


def entry_of(number: int, outcome: Outcome) -> Entry:
    """The document as the checks between documents see it; `number` is its place in the tree."""
    identities = [row.identity for row in outcome.rows if row.identity]
    return Entry(
        number,
        outcome.keys[0] if outcome.keys else UNNAMED,
        outcome.type,
        outcome.place,
        outcome.documents,
        frozenset(identities) if identities else _NO_ELEMENTS,
        outcome.references,
        _wrong_fields(outcome) if outcome.is_broken else frozenset(),
    )


def _wrong_fields(outcome: Outcome) -> frozenset[str]:
    errors = [one for one in outcome.problems if one.level is Level.ERROR]
    names = {str(one.path[0]) if one.path else "" for one in errors}
    # What is inherited and does not fit may be any field.
    return frozenset({*names, ""} if outcome.is_spoiled else names)


_NO_CONDITIONS = Conditions()
# Where a document was that is there no more.
_NOTHING = MappingNode((), Span(0, 0))


class Readings:
    """
    Readings of the documents of one load.

    Args:
        files: What documents name.
        sources: Where they are written.
        values: What `${{ values.x }}` stands for.

    Attributes:
        budget: What all documents together may still ask for.
        touched: Ids of nodes that are not as their file has them.
    """

    def __init__(self, files: Files, sources: Sources, values: Mapping[str, Any]) -> None:
        self._files = files
        self._sources = sources
        self._values = values
        self._digest = ""
        self._reader: Reader | None = None
        self.budget = Budget()
        self.touched: set[int] = set()

    def of_file(self, given: KeptFile | list[Written]) -> Iterator[Read]:
        """The documents of a file as `Sources.given` gives it."""
        if isinstance(given, KeptFile):
            for number in range(len(given.documents)):
                yield self.kept(given, number)
        else:
            for written in given:
                stub = self._sources.stub(written)
                yield self.kept(stub.file, stub.number) if stub else self.now(written)

    def kept(self, file: KeptFile, number: int) -> Read:
        """One that was read before, if that still holds; else read again."""
        kept = file.documents[number]
        if self._holds(kept.conditions):
            return Read(file.path, kept.outcome, kept.conditions, (file, number))
        written = self._sources.lay_open(file, number)
        if written is None:
            return Read(file.path, Outcome(keys=kept.outcome.keys, is_spoiled=True), None)
        return self.now(written)

    def now(self, written: Written) -> Read:
        """One read as it is written."""
        outcome, conditions = self._read_now(written)
        is_own = id(written.node) not in self.touched
        return Read(written.file, outcome, conditions if is_own else None, None, written.node)

    def _read_now(self, written: Written) -> tuple[Outcome, Conditions]:
        if self._reader is None:
            # With it come the models of all kinds, and most loads read nothing anew.
            from fleetform.spec.tree.reader import Reader

            self._reader = Reader(self._files, self.budget, self._values, self._sources.has_marks)
        return self._reader.read(written)

    def _holds(self, conditions: Conditions) -> bool:
        """Whether a reading would come out the same now; if so, it has taken what it takes."""
        if conditions == _NO_CONDITIONS:
            # Nearly all of them. With no elements left, even these are told so.
            return self.budget.elements > 0
        if conditions.values:
            self._digest = self._digest or digest(self._values)
            if conditions.values != self._digest:
                return False
        return all(self._files.answers_again(one) for one in conditions.files) and (
            self.budget.repeat(conditions.spent)
        )

    def log_problems(self, reads: Iterable[Read], log: FindingLog) -> None:
        """Tell what is wrong with documents, once all of it is known."""
        for read in reads:
            if not read.others and not read.outcome.problems:
                continue
            for problem in read.problems:
                if log.has_room(read.file, problem.level):
                    log.add(self._placed(read, problem))
            if read.is_broken:
                self._sources.broken.update(read.outcome.keys)
        log.add_omitted()

    def _placed(self, read: Read, problem: Problem) -> Finding:
        found = None
        if read.stub is not None:
            file, number = read.stub
            found = file.documents[number].findings.get(problem)
            if found is None and read.node is None:
                opened = self._sources.lay_open(file, number)
                read.node = opened.node if opened else _NOTHING
        if found is None:
            assert read.node is not None, read.file
            found = place(problem, read.node, read.file, address_of(read.node))
        if read.findings is None:
            read.findings = {}
        read.findings[problem] = found
        return found


def keep(cache: ReadingCache, sources: Sources, reads: Iterable[Read]) -> None:
    """Put into the cache what the next load of these files is spared."""
    by_file: dict[str, list[Read]] = {}
    for read in reads:
        by_file.setdefault(read.file, []).append(read)
    for file, count in sources.counts.items():
        found = by_file.get(file, [])
        made = [_kept_form(read, sources.data) for read in found] if len(found) == count else [None]
        kept = [one for one in made if one is not None]
        if len(kept) == len(made) and file in sources.parsed:
            sha256, look = sources.parsed[file]
            cache.keep(KeptFile(file, sha256, look, kept))
    for source in sources.kept_files:
        _renew(source, by_file.get(source.path, []), cache, sources.data)


def _renew(
    file: KeptFile, reads: list[Read], cache: ReadingCache, data: Mapping[str, bytes]
) -> None:
    """Keep what was learned of documents that were kept: other places, other conditions."""
    if all(_is_known(read) for read in reads) or len(reads) != len(file.documents):
        return
    made = [
        file.documents[number] if _is_known(read) else _kept_form(read, data)
        for number, read in enumerate(reads)
    ]
    kept = [one for one in made if one is not None]
    if len(kept) == len(made):
        cache.keep(KeptFile(file.path, file.sha256, file.look, kept))


def _kept_form(read: Read, data: Mapping[str, bytes]) -> Kept | None:
    """What to keep of a document; None where that would be of no use."""
    outcome = read.outcome
    findings = read.findings or {}
    if read.conditions is None or outcome.is_spoiled or len(findings) != len(read.problems):
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
    found = quoted(data, read.file, findings.values())
    return Kept(header, outcome, read.conditions, dict(zip(findings, found, strict=True)))


def _is_known(read: Read) -> bool:
    """Whether it comes from a kept document, and has no findings that it did not have before."""
    if read.stub is None:
        return False
    file, number = read.stub
    return not read.findings or read.findings.keys() <= file.documents[number].findings.keys()


def load_alone(
    root: Path, file: str, cache: ReadingCache | None, buffers: Mapping[str, bytes]
) -> Loaded:
    """
    Read one file below the root by itself, as if there were nothing else.

    What its documents refer to may be anywhere, so nothing is said of it.
    """
    log = FindingLog()
    sources = Sources(root, buffers, cache, log.add)
    try:
        if cache is not None:
            cache.begin()
        readings = Readings(_files(root, cache), sources, {})
        reads = list(readings.of_file(sources.given(file, look=_look_of_file(root / file))))
        readings.log_problems(reads, log)
        if cache is not None:
            keep(cache, sources, reads)
            cache.end()
        return Loaded(None, log.sorted(sources.data), len(reads), len(sources.files))
    finally:
        sources.close()


def _look_of_file(path: Path) -> str:
    try:
        return look_of(path.stat())
    except (OSError, ValueError):
        return ""


def read_again(
    root: Path, cache: ReadingCache, files: Iterable[tuple[str, str]], values: Mapping[str, Any]
) -> tuple[Finding, ...] | None:
    """
    Read files that have changed, of a tree of which all else is as it was, into the cache.

    Args:
        root: The environment's folder.
        cache: What is known of the tree, added to.
        files: Each with how it looks.
        values: The environment's.

    Returns:
        What is wrong with their documents alone; None where that takes the whole tree.
    """
    log = FindingLog()
    sources = Sources(root, {}, cache, log.add)
    try:
        cache.begin()
        given = [sources.given(file, look=look) for file, look in files]
        if sources.unread or is_overlaid(given):
            return None
        readings = Readings(_files(root, cache), sources, values)
        reads: list[Read] = [read for one in given for read in readings.of_file(one)]
        readings.log_problems(reads, log)
        keep(cache, sources, reads)
        return log.sorted(sources.data)
    finally:
        sources.close()


def _files(root: Path, cache: ReadingCache | None) -> Files:
    return Files(root, {} if cache is None else cache.digests)
