"""
Read one document through the model of its kind.

This is the part of loading that needs the models, and the only one: it is imported when the first
document has to be read that no cache knows.

**The digest of what a document itself says**, apart from all that is inherited, tells a rerun from
`stale`. A finished run is run again when its own document changed, and only marked when a base, a
patch, a profile or a value of the environment did: one line of those may reach a thousand runs. So
that digest covers the fields that the document itself says, in their canonical form (another
spelling is no change), with its files. What is only inherited is not in it, and a document of a base
says nothing of its own. With nothing inherited this is the digest of the whole document, so that an
environment may begin to patch and nothing runs again.

**References of a document with errors** are read from its text: a field with one wrong entry has no
canonical form, and a document with a wrong name declares nothing. What else they name is looked for
all the same, so that one look shows all mistakes of a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fleetform.spec import interpolate
from fleetform.spec.canonical import digest
from fleetform.spec.desired import ResourceKey
from fleetform.spec.fields import EXECUTION_FIELDS
from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds import KINDS, Kind
from fleetform.spec.names import EXPRESSION_MARK, name_problem, split_element
from fleetform.spec.nodes import MappingNode, Node, SequenceNode, plain
from fleetform.spec.overlay.documents import Written, is_foreign, origin
from fleetform.spec.overlay.profiles import FIELD as PROFILE
from fleetform.spec.references import Reference, mentioned, required
from fleetform.spec.tree.budget import Budget
from fleetform.spec.tree.cache import Conditions, Outcome, Row
from fleetform.spec.tree.document_problems import notes, rewritten_numbers
from fleetform.spec.tree.elements import TEXTS, Reading, read
from fleetform.spec.tree.files import Files
from fleetform.spec.tree.sources import declared_keys, not_a_document, type_problem

__all__ = ["Reader", "folder_of", "names_in", "names_values", "own_digests", "waiting"]


def folder_of(node: Node, file: str) -> str | tuple[str, ...]:
    """
    The folder of a document's file, relative to the environment's.

    One for each entry of its `files:`, where a patch or a profile wrote some of them.
    """
    listed = node.get("files") if isinstance(node, MappingNode) else None
    if listed is None or not is_foreign(listed):
        return _folder(file)
    items = listed.items if isinstance(listed, SequenceNode) else (listed,)
    return tuple(_folder(origin(_named(item), file)) for item in items)


def _named(item: Node) -> Node:
    """What says the path: an entry itself, or its `local_path`."""
    path = item.get("local_path") if isinstance(item, MappingNode) else None
    return item if path is None else path


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


# What elements are made from. They are those of the whole document, or there would be none to
# compare with; the elements' names tell the rest.
_MAKES_ELEMENTS = frozenset({"name", "array", "matrix", "key"})
# What an element has of its own in canonical form.
_PARAMETERS = frozenset({"index", "matrix"})
_NAMESPACE = "values"


def own_digests(
    own: Node | None,
    value: Mapping[str, Any],
    reading: Reading,
    read: Callable[[Mapping[str, Any]], Reading],
) -> dict[str, str]:
    """
    The digest of what the document itself says, for each element by its identity.

    Args:
        own: What the environment's own tree says of it; None: nothing.
        value: The whole document, with what is inherited.
        reading: That document, read.
        read: Reads another value in its place.
    """
    said = _said(own)
    kept = {name: item for name, item in said.items() if name == PROFILE or names_values(item)}
    typed = {name: item for name, item in said.items() if name not in kept}
    again = read(_own_value(value, typed)) if typed else reading
    if again.model is None or any(one.level is Level.ERROR for one in again.problems):
        # By itself it is no document: a profile has the other half of one of its fields. As it
        # is written, then; its files by their content all the same.
        files = {"files": reading.shared["files"]} if "files" in reading.shared else {}
        kept, typed, again = {**said, **_only(files, said)}, {}, reading
    # What a document comes to beside its fields, such as the limit in `array: 1-9%2`.
    names = {*typed, *_PARAMETERS, *(again.shared.keys() - value.keys() if typed else ())}
    shared = {**_only(again.shared, names), **kept}
    return {
        element.identity: digest({**shared, **_only(fields, names)})
        for element, fields in again.elements
    }


def names_values(value: Any) -> bool:
    """Whether a value of the environment is named anywhere in a JSON value."""
    found = interpolate.references(interpolate.compile_value(value))
    return any(namespace == _NAMESPACE for _, (namespace, _) in found)


def _said(own: Node | None) -> dict[str, Any]:
    said = plain(own) if own is not None else {}
    return {
        name: item
        for name, item in said.items()
        # A null says that something is not there, which canonical forms do not.
        if name not in _MAKES_ELEMENTS and item is not None
    }


def _own_value(value: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """
    A document that can be read: what it lacks is inherited, and left out of the digest.

    But for what reaches into fields of its own, variables, and what costs: files.
    """
    inherited = {name: item for name, item in value.items() if name not in {"env", "files"}}
    return {**inherited, **typed}


def _only(fields: Mapping[str, Any], names: Any) -> dict[str, Any]:
    return {name: item for name, item in fields.items() if name in names}


_LISTS = {"fleets": "fleet", "queue": "queue", "volumes": "volume", "depends_on": "run"}
"""Fields of a run that may hold names next to a wrong entry, and the kind of what they name."""


def names_in(value: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[Reference]:
    """
    The names in fields of a run that have no canonical form.

    Args:
        value: The document as it is written.
        known: Its canonical form as far as it has one: these fields are read from there.
    """
    for field, kind in _LISTS.items():
        if field not in value or field in known:
            continue
        for text in _texts(value[field]):
            name = text
            if field == "volumes":
                name, colon, _ = text.partition(":")
                if not colon:
                    continue  # A path of the host.
            # A name that is wrong is told as such.
            if EXPRESSION_MARK not in name and name_problem(split_element(name)[0]) is None:
                yield Reference(kind, name, field)


def waiting(value: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    The document as the search for cycles sees it: its name, and what it waits for, right or wrong.

    Wrong names lead to each other like right ones, and the cycle remains when they are corrected.
    """
    name = value.get("name")
    if not isinstance(name, str) or EXPRESSION_MARK in name:
        return known
    if "depends_on" in known:
        return {**known, "name": name}
    runs = [{"run": text} for text in _texts(value.get("depends_on"))]
    return {**known, "name": name, **({"depends_on": {"runs": runs}} if runs else {})}


def _texts(value: Any) -> Iterator[str]:
    """Names that stand in a value: alone, in a list, or under the key that holds them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Mapping):
        for key in ("run", "runs", "name"):
            yield from _texts(value.get(key))


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
        problems = [
            *reading.problems,
            *rewritten_numbers(node),
            *notes(value, kind, reading.model, reading.problems),
        ]
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
