"""
Documents into what they come to: from a reading that still holds, or by their kind's model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fleetform.spec.canonical import digest
from fleetform.spec.findings import Finding, Problem
from fleetform.spec.nodes import MappingNode, Span
from fleetform.spec.overlay.written import Written
from fleetform.spec.tree.budget import Budget
from fleetform.spec.tree.cache import KeptFile
from fleetform.spec.tree.files import Files
from fleetform.spec.tree.findings import Told
from fleetform.spec.tree.outcome import Conditions, Outcome
from fleetform.spec.tree.place import address_of, place
from fleetform.spec.tree.read import Read
from fleetform.spec.tree.sources import Sources

if TYPE_CHECKING:
    from fleetform.spec.tree.reader import Reader

__all__ = ["Readings"]

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
        """One that was read before, if that still holds; else read anew."""
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

    def tell_problems(self, reads: Iterable[Read], told: Told) -> None:
        """Tell what is wrong with documents, once all of it is known."""
        for read in reads:
            if not read.others and not read.outcome.problems:
                continue
            for problem in read.problems:
                if told.has_room(read.file, problem.level):
                    told.tell(self._placed(read, problem))
            if read.is_broken:
                self._sources.broken.update(read.outcome.keys)
        told.tell_untold()

    def _placed(self, read: Read, problem: Problem) -> Finding:
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
