"""
One document to its outcome, through its kind's model.

This is the part of loading that needs the models, and the only one: it is imported when the
first document has to be read that no cache knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fleetform.spec.canonical import digest
from fleetform.spec.desired import ResourceKey
from fleetform.spec.fields import EXECUTION_FIELDS
from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds import KINDS, Kind
from fleetform.spec.nodes import plain
from fleetform.spec.overlay.written import Written
from fleetform.spec.references import mentioned, required
from fleetform.spec.tree.budget import Budget
from fleetform.spec.tree.elements import TEXTS, Reading, read
from fleetform.spec.tree.files import Files
from fleetform.spec.tree.folders import folder_of
from fleetform.spec.tree.outcome import Conditions, Outcome, Row
from fleetform.spec.tree.own import names_values, own_digests
from fleetform.spec.tree.partial import names_in, waiting
from fleetform.spec.tree.types import declared_keys, not_a_document, type_problem
from fleetform.spec.tree.unsupported import notes

__all__ = ["Reader"]

_EXECUTION = EXECUTION_FIELDS["run"]


class Reader:
    """
    Reads the documents of one tree.

    Args:
        files: What they name.
        budget: What they may still ask for, all together.
        values: What `${{ values.x }}` stands for.
        has_marks: Whether an expression stands anywhere in a file.
    """

    def __init__(
        self,
        files: Files,
        budget: Budget,
        values: Mapping[str, Any],
        has_marks: Callable[[str], bool],
    ) -> None:
        self._files = files
        self._budget = budget
        self._values = values
        self._has_marks = has_marks

    def read(self, written: Written) -> tuple[Outcome, Conditions]:
        """What the document comes to, and on what besides its text that depends."""
        before = self._budget.left()
        self._files.answers.clear()
        outcome = self._read(written)
        spent = tuple(one - two for one, two in zip(before, self._budget.left(), strict=True))
        assert len(spent) == 3, spent
        is_sweep = bool(outcome.rows) and "matrix" in outcome.rows[0].own
        depends = is_sweep or self._has_marks(written.file)
        values = digest(self._values) if depends else ""
        return outcome, Conditions(values, spent, tuple(self._files.answers))

    def _read(self, written: Written) -> Outcome:
        node = written.node
        start = node.place.in_file(written.file)
        value = plain(node)
        if not isinstance(value, dict):
            wrong = [not_a_document(value)]
            return Outcome(place=start, problems=wrong, is_spoiled=written.is_spoiled)
        said = value.get("type")
        type_name = said if isinstance(said, str) else ""
        kind = KINDS.get(type_name)
        keys = declared_keys(value, kind.name if kind else None)
        if kind is None:
            wrong = [type_problem(value)]
            return Outcome(type_name, keys, start, wrong, is_spoiled=written.is_spoiled)
        # What is inherited may bring an expression into a file that has none.
        has_marks = written.is_inherited or self._has_marks(written.file)
        reading = read(
            value,
            kind,
            self._files,
            folder_of(node, written.file),
            has_marks=has_marks,
            values=self._values,
            budget=self._budget,
        )
        if not keys and reading.model is not None and not _has_error(reading.problems):
            # The name was an expression, and is known now.
            keys = (ResourceKey(kind.name, reading.model.name),)
        if reading.model is None:
            return Outcome(type_name, keys, start, reading.problems, is_spoiled=written.is_spoiled)
        problems = [*reading.problems, *notes(value, kind, reading.model, reading.problems)]
        own = None
        is_sound = not _has_error(problems)
        if is_sound and (written.is_inherited or (has_marks and self._takes_values(value))):
            own = self._own_digests(written, value, kind, reading)
        references = dict.fromkeys(
            one
            for document in reading.documents
            for one in mentioned(document, kind.name, has_marks=has_marks)
        )
        documents = _asking(reading)
        if kind.name == "run" and not is_sound:
            known = documents[0] if documents else {}
            references.update(dict.fromkeys(names_in(value, known)))
            documents = [waiting(value, known), *documents[1:]]
        if not keys:
            # Without a name it declares nothing; what it refers to is looked for all the same.
            return Outcome(
                type_name,
                keys,
                start,
                problems,
                is_spoiled=written.is_spoiled,
                documents=documents,
                references=list(references),
            )
        return Outcome(
            type_name,
            keys,
            start,
            problems,
            True,
            written.is_spoiled,
            reading.shared,
            documents,
            list(_rows(kind.name, reading, own)),
            list(references),
            required(references) if len(reading.documents) == 1 else None,
        )

    def _takes_values(self, value: Mapping[str, Any]) -> bool:
        return bool(self._values) and names_values(value)

    def _own_digests(
        self, written: Written, value: Mapping[str, Any], kind: Kind, reading: Reading
    ) -> dict[str, str]:
        folder = written.file.rpartition("/")[0]

        def read_again(again: Mapping[str, Any]) -> Reading:
            return read(again, kind, self._files, folder, has_marks=True)

        return own_digests(written.own, value, reading, read_again)


def _has_error(problems: Sequence[Problem]) -> bool:
    return any(one.level is Level.ERROR for one in problems)


def _asking(reading: Reading) -> Sequence[Mapping[str, Any]]:
    """The distinct documents without texts of elements: these ask for nothing by now."""
    shared = reading.shared
    asking = [
        {name: item for name, item in document.items() if name in shared or name not in TEXTS}
        for document in reading.documents
    ]
    return [shared] if len(asking) == 1 and asking[0].keys() == shared.keys() else asking


def _rows(kind: str, reading: Reading, own_digests: Mapping[str, str] | None) -> Iterator[Row]:
    for element, own in reading.elements:
        document = {**reading.shared, **own}
        whole = execution = digest(document)
        if kind == "run":
            # What is not run has no execution to tell from the rest.
            execution = digest(
                {name: value for name, value in document.items() if name in _EXECUTION}
            )
        before = whole if own_digests is None else own_digests[element.identity]
        yield Row(element.name, element.identity, own, whole, execution, before)
