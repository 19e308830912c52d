"""
What the pointer rests on, in words: a resource, an expression, a value, a field.

The first of them that applies is said, and only that: a language server for YAML that runs beside
this one adds the schema's words below.
"""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from fleetform.lsp.cursor import Here, document_at, here
from fleetform.lsp.meaning import NAMESPACES, known, meaning
from fleetform.lsp.references import Declaration, Expression, Mention, expressions
from fleetform.lsp.session import Cursor
from fleetform.lsp.text import Encoding, Extent, range_of
from fleetform.spec import fields
from fleetform.spec.environment import EnvironmentDocument
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.base import Model, models_in, written_fields
from fleetform.spec.nodes import plain
from fleetform.spec.schema.wording import (
    change_sentence,
    documentation,
    unsupported_sentence,
    words,
)

__all__ = ["hover"]


# What a field is, from the docstring in its model.
# The schema says the same to editors that read it. This is for those where only this server runs,
# so it costs little: a model's source is parsed once, when somebody first asks.
def field_doc(type_name: str, path: Sequence[str | int]) -> str:
    """The words about a field of a document, and what a change of it does; empty if unknown."""
    if type_name == "environment":
        model: type[Model] = EnvironmentDocument
    elif type_name in KINDS:
        model = KINDS[type_name].model
    else:
        return ""
    names = [step for step in path if isinstance(step, str)]
    if not names:
        return ""
    candidates: list[type[Model]] = [model]
    for name in names[:-1]:
        fields_of = [written_fields(one) for one in candidates]
        annotations = [one[name].annotation for one in fields_of if name in one]
        candidates = [found for one in annotations for found in models_in(one)]
    owner = next((one for one in candidates if names[-1] in written_fields(one)), None)
    text = documentation(owner).get(names[-1], "") if owner else ""
    if not text:
        return ""
    dotted = ".".join(names)
    sentences = (
        words(text).whole,
        unsupported_sentence(type_name, dotted),
        f"_{change_sentence(fields.row(type_name, dotted))}_",
    )
    return "\n\n".join(sentence for sentence in sentences if sentence)


# As much of a document as fits a pop-up.
_LINES_MAX = 14


def hover(cursor: Cursor, encoding: Encoding) -> types.Hover | None:
    """What to show; None where there is nothing to say."""
    found = _of_name(cursor) or _of_expression(cursor) or _of_field(cursor)
    if found is None:
        return None
    words, extent = found
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, words),
        range_of(extent, cursor.text, encoding),
    )


def _of_name(cursor: Cursor) -> tuple[str, Extent] | None:
    mention = cursor.tree.index.at(cursor.file, cursor.offset)
    if mention is None:
        return None
    declared = cursor.tree.index.declarations(mention.key)
    if mention.is_declaration:
        return _callers(cursor, mention), mention.extent
    if not declared:
        return f"No document declares the {mention.key.kind} `{mention.key.name}`.", mention.extent
    return "\n\n".join(_summary(cursor, file, one) for file, one in declared), mention.extent


def _summary(cursor: Cursor, file: str, declared: Declaration) -> str:
    """A declared resource: what it is, where, and the beginning of its document."""
    text = cursor.tree.index.files[file].text
    line = text.point(declared.name.start, Encoding.UTF32).line + 1
    lines = text.slice(declared.whole).splitlines()
    if len(lines) > _LINES_MAX:
        lines = [*lines[:_LINES_MAX], "# …"]
    body = "\n".join(lines)
    parts = (
        f"**{declared.type}** `{declared.key.name}` · {file}:{line}",
        declared.description,
        f"```yaml\n{body}\n```",
    )
    return "\n\n".join(part for part in parts if part)


def _callers(cursor: Cursor, mention: Mention) -> str:
    """Of a declaration: who refers to it."""
    index = cursor.tree.index
    files = [
        found.file for found in index.mentions(mention.key) if not found.mention.is_declaration
    ]
    if not files:
        return f"The {mention.key.kind} `{mention.key.name}`. Nothing refers to it."
    times = "once" if len(files) == 1 else f"{len(files)} times"
    listed = ", ".join(sorted(set(files))[:5])
    more = ", …" if len(set(files)) > 5 else ""
    return f"The {mention.key.kind} `{mention.key.name}`, referred to {times}: {listed}{more}."


def _of_expression(cursor: Cursor) -> tuple[str, Extent] | None:
    root = document_at(cursor.text, cursor.offset)
    found = next(
        (one for one in expressions(root, cursor.text) if one.whole.holds(cursor.offset)), None
    ) if root else None  # fmt: skip
    if root is None or found is None:
        return None
    said = known(root, cursor.tree.index).get(found.namespace, {}).get(found.key)
    words = said.words if said else ""
    return _expression_words(found, words), found.whole


def _expression_words(expression: Expression, words: str) -> str:
    name = f"`{expression.namespace}.{expression.key}`"
    return f"{name}: {words or NAMESPACES.get(expression.namespace, 'unknown name')}"


def _of_field(cursor: Cursor) -> tuple[str, Extent] | None:
    found = here(cursor.text, cursor.offset)
    if found is None:
        return None
    words = [_value_words(found)]
    if found.is_key:
        words.append(field_doc(found.type, found.path))
    said = "\n\n".join(word for word in words if word)
    return (said, found.extent) if said else None


def _value_words(found: Here) -> str:
    said = meaning(found.kind, found.path, plain(found.node))
    return f"**{said}**" if said else ""
