"""
One field of the language in words: what `fleetform explain task.resources.gpu` says.

Everything is read from the kind's schema, so that the terminal, an editor and the reference say
the same. What stands below a field is gathered from all of its spellings: a mount is a text or a
mapping, and its parts are those of the mapping.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fleetform.spec import fields
from fleetform.spec.kinds.synonyms import fields_by_word
from fleetform.spec.names import nearest
from fleetform.spec.schema import MODELS, wording
from fleetform.spec.schema.annotate import DIGITS_PATTERN, EXPRESSION_PATTERN, Schema
from fleetform.spec.schema.files import kind_schema
from fleetform.spec.schema.snippets import flow
from fleetform.spec.schema.wording import summary, words

# `volumes[0].path` and `volumes.0.path`: positions in lists say nothing about the field.
_POSITION = re.compile(r"\[[^\]]*\]|(?<=\.)\d+(?=\.|$)")

_WORDS = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "object": "mapping",
    "array": "list",
}


@dataclass(frozen=True, slots=True)
class Part:
    """
    One line of what stands below a field.

    Attributes:
        name: As it is written.
        type: In a few words: `text or mapping`.
        summary: The first sentence of its description.
        required: Whether a mapping must have it.
        has_parts: Whether something stands below it in turn.
    """

    name: str
    type: str
    summary: str
    required: bool
    has_parts: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that is allowed, and what it means; the meaning is empty where none was written."""

    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """
    What there is to know of a field, or of a kind.

    Attributes:
        path: As it was asked for, without positions: `task.volumes.path`.
        type: In a few words.
        description: What it is, and what nothing carries out yet.
        spellings: What may be written, a phrase for each way.
        choices: The values, where there are only some.
        default: What leaving it out amounts to, as YAML; empty where that is nothing.
        examples: As YAML in flow style.
        unit: Of the amount that plans show; empty where it is none.
        field_class: `execution`, `control` or `cosmetic`; empty for a kind.
        on_change: What a change does, for programs; empty for a kind.
        change: The same in words.
        carried_out_by: The room that acts on it; empty where none does.
        parts: What stands below it, in the order of the model.
    """

    path: str
    type: str
    description: str
    spellings: tuple[str, ...]
    choices: tuple[Choice, ...]
    default: str
    examples: tuple[str, ...]
    unit: str
    field_class: str
    on_change: str
    change: str
    carried_out_by: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class UnknownPath:
    """
    A path that leads nowhere.

    Attributes:
        known: As far as it leads; empty where even the type is unknown.
        wrong: The part behind it.
        meant: The whole path that was probably meant; empty where nothing is close.
        parts: What stands below `known`, or the types.
    """

    known: str
    wrong: str
    meant: str
    parts: tuple[str, ...]


def kinds() -> tuple[Part, ...]:
    """All types of documents."""
    return tuple(
        Part(kind, "document", _first_sentence(summary(model)), required=False, has_parts=True)
        for kind, model in sorted(MODELS.items())
    )


def explain(path: str) -> Explanation | UnknownPath:
    """Explain the field at `path`: a type of documents, and names of fields behind dots."""
    kind, *names = [part for part in _POSITION.sub("", path).split(".") if part] or [path]
    if kind not in MODELS:
        close = nearest(kind, MODELS) or ""
        return UnknownPath(
            "", kind, ".".join([close, *names]) if close else "", tuple(sorted(MODELS))
        )
    document = _document(kind)
    schema = document
    for depth, name in enumerate(names):
        parts = _parts(schema, document)
        if name not in parts:
            known = [kind, *names[:depth]]
            return UnknownPath(".".join(known), name, _meant(known, name, parts), tuple(parts))
        schema = parts[name]
    return _explanation(".".join([kind, *names]), schema, document)


def below(path: str) -> Iterator[tuple[str, Part]]:
    """Everything below a path that is known, with its whole path: first itself, then its parts."""
    found = explain(path)
    assert isinstance(found, Explanation), path
    for part in found.parts:
        whole = f"{found.path}.{part.name}"
        yield whole, part
        if part.has_parts:
            yield from below(whole)


def complete(typed: str) -> list[str]:
    """The paths that what is typed may become."""
    above, dot, _ = typed.rpartition(".")
    if not dot:
        return [kind for kind in MODELS if kind.startswith(typed)]
    found = explain(above)
    if not isinstance(found, Explanation):
        return []
    paths = (f"{above}.{part.name}" for part in found.parts)
    return [path for path in paths if path.startswith(typed)]


@functools.cache
def _document(kind: str) -> Schema:
    return kind_schema(kind)


def _meant(known: list[str], name: str, parts: Mapping[str, Schema]) -> str:
    called = fields_by_word().get(".".join(known), {}).get(name) or nearest(name, parts)
    return ".".join([*known, called]) if called else ""


def _explanation(path: str, schema: Schema, document: Schema) -> Explanation:
    parts = _parts(schema, document)
    choices = tuple(_choices(schema, document))
    change = schema.get("x-on-change", "")
    return Explanation(
        path=path,
        type=_type(schema, document),
        description=_description(path, schema, choices),
        spellings=tuple(_spellings(schema, document)) if schema is not document else (),
        choices=choices,
        default=flow(schema["default"]) if "default" in schema else "",
        examples=tuple(flow(value) for value in schema.get("examples", ())),
        unit=schema.get("x-unit", ""),
        field_class=schema.get("x-class", ""),
        on_change=change,
        change=wording.CHANGE[change] if change else "",
        carried_out_by=schema.get("x-carried-out-by", ""),
        parts=tuple(_part(path, name, parts[name], schema, document) for name in parts),
    )


def _description(path: str, schema: Schema, choices: tuple[Choice, ...]) -> str:
    """What it is, without the sentences about choices, which stand in a list of their own."""
    kind, _, field = path.partition(".")
    unsupported = (
        wording.unsupported_sentence(kind, field)
        if field
        else wording.unsupported_kind_sentence(kind)
    )
    said = schema.get("description", "").removesuffix(unsupported)
    lead = words(said, [choice.value for choice in choices if choice.meaning]).lead
    return " ".join(filter(None, (lead, unsupported)))


def _part(path: str, name: str, schema: Schema, above: Schema, document: Schema) -> Part:
    required = any(name in one.get("required", ()) for one in _objects(above, document))
    return Part(
        name=name,
        type=_type(schema, document),
        summary=_summary(f"{path}.{name}", schema.get("description", "")),
        required=required,
        has_parts=bool(_parts(schema, document)),
    )


def _parts(schema: Schema, document: Schema) -> dict[str, Schema]:
    """The fields below a field, by name; second spellings of one are left out."""
    found: dict[str, Schema] = {}
    for one in _objects(schema, document):
        for name, part in one.get("properties", {}).items():
            if not part.get("doNotSuggest"):
                found.setdefault(name, part)
    return found


def _objects(schema: Schema, document: Schema) -> Iterator[Schema]:
    """The mappings that may stand at a field, also as entries of a list."""
    for one in _alternatives(schema, document):
        if "properties" in one:
            yield one
        if isinstance(one.get("items"), dict):
            yield from _objects(one["items"], document)


def _alternatives(schema: Schema, document: Schema) -> Iterator[Schema]:
    """The shapes that a field may have, references followed."""
    nested = [*schema.get("anyOf", ()), *schema.get("allOf", ()), *schema.get("oneOf", ())]
    if "$ref" in schema:
        nested.append(document["$defs"][schema["$ref"].rpartition("/")[2]])
    if not nested:
        yield schema
    for one in nested:
        yield from _alternatives(one, document)


def _is_said(schema: Schema) -> bool:
    """Whether a shape is worth a word: digits in quotes are a number all the same."""
    return schema.get("pattern") not in {DIGITS_PATTERN, EXPRESSION_PATTERN}


def _type(schema: Schema, document: Schema) -> str:
    shapes = [one for one in _alternatives(schema, document) if _is_said(one)]
    named = dict.fromkeys(word for one in shapes for word in _type_words(one))
    return _either(list(named)) or "anything"


def _type_words(shape: Schema) -> list[str]:
    if "enum" in shape or "const" in shape:
        values = shape.get("enum", [shape.get("const")])
        return [_WORDS[name] for name in dict.fromkeys(_json_type(value) for value in values)]
    said = shape.get("type", [])
    return [_WORDS[name] for name in ([said] if isinstance(said, str) else said) if name in _WORDS]


def _json_type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "integer" if isinstance(value, int) else "string"


def _spellings(schema: Schema, document: Schema) -> Iterator[str]:
    phrases = [_spelling(one, document) for one in _alternatives(schema, document)]
    expression = [
        one for one in _alternatives(schema, document) if one.get("pattern") == EXPRESSION_PATTERN
    ]
    yield from dict.fromkeys(phrase for phrase in phrases if phrase)
    if expression:
        yield "an expression, `${{ … }}`"


def _spelling(shape: Schema, document: Schema) -> str:
    """One way to write a field, in words; empty where it is no way of its own."""
    if not _is_said(shape):
        return ""
    if "const" in shape or "enum" in shape:
        return _either([f"`{flow(value)}`" for value in shape.get("enum", [shape.get("const")])])
    said = " or ".join(_type_words(shape))
    if said in {"integer", "number"}:
        note = shape.get("description", "").rstrip(".").lower()
        article = "an" if said == "integer" else "a"
        return f"{article} {said}{_bounds(shape)}{f': {note}' if note else ''}"
    if said == _WORDS["boolean"]:
        return "`true` or `false`"
    if "properties" in shape:
        return f"a mapping of {_listed(list(shape['properties']))}"
    if said == "mapping":
        return "a mapping of names of your own"
    if said == "list":
        return _list_spelling(shape.get("items", {}), document)
    return said


def _list_spelling(entries: Schema, document: Schema) -> str:
    if any("enum" in one for one in _alternatives(entries, document)):
        return "a list of such values"
    return f"a list, each entry {_type(entries, document)}" if entries else "a list"


def _bounds(shape: Schema) -> str:
    least, most = shape.get("minimum"), shape.get("maximum")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    return f" from {least}" if least is not None else ""


def _choices(schema: Schema, document: Schema) -> Iterator[Choice]:
    listed: dict[str, str] = {}
    for one in _alternatives(schema, document):
        shape = one.get("items", one) if "enum" not in one else one
        for number, value in enumerate(shape.get("enum", ())):
            meanings = shape.get("enumDescriptions", ())
            listed.setdefault(flow(value), meanings[number] if number < len(meanings) else "")
    yield from (Choice(value, meaning) for value, meaning in listed.items())


def _summary(path: str, description: str) -> str:
    """The first sentence, behind the fact that the field is not supported yet."""
    kind, _, field = path.partition(".")
    said = _first_sentence(description)
    return f"Not supported yet. {said}" if field in fields.unsupported(kind) else said


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _either(names: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
