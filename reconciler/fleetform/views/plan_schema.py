"""
The JSON Schema of a plan, made from the types that the plan is written by.

So it says what is printed and cannot go stale: `fleetform schema --check` compares the file with it.
"""

from __future__ import annotations

import enum
import inspect
import json
import types
from collections.abc import Mapping
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from fleetform.views.plan_document import PlanDocument

__all__ = ["plan_schema", "schema_text"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PLAIN: Mapping[Any, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    type(None): "null",
}

Schema = dict[str, Any]


def plan_schema() -> Schema:
    """Return the schema of the output of `plan --format json`, in draft 2020-12; its objects are closed."""
    definitions: dict[str, Schema] = {}
    whole = _object(PlanDocument, definitions)
    return {
        "$schema": _DIALECT,
        "title": "A plan of fleetform",
        **whole,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """The same as the file has it."""
    return json.dumps(plan_schema(), indent=1, ensure_ascii=False) + "\n"


def _object(kind: Any, definitions: dict[str, Schema]) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    required = [name for name, hint in hints.items() if get_origin(hint) is not NotRequired]
    return {
        "description": " ".join(inspect.cleandoc(kind.__doc__ or "").split()),
        "type": "object",
        "properties": {name: _schema(hint, definitions) for name, hint in hints.items()},
        "required": required,
        "additionalProperties": False,
    }


def _schema(hint: Any, definitions: dict[str, Schema]) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return _schema(arguments[0], definitions)
    if origin is Annotated:
        return _annotated(arguments, definitions)
    if is_typeddict(hint):
        return _reference(hint, definitions)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in {Union, types.UnionType}:
        return _any_of([_schema(one, definitions) for one in arguments])
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object"}
    return {} if hint is Any else {"type": _PLAIN[hint]}


def _annotated(arguments: tuple[Any, ...], definitions: dict[str, Schema]) -> Schema:
    hint, *notes = arguments
    found = _schema(hint, definitions)
    for note in notes:
        if isinstance(note, str):
            found = {"description": note, **found}
        elif isinstance(note, type) and issubclass(note, enum.Enum):
            found = {**found, "enum": [member.value for member in note]}
    return found


def _reference(kind: Any, definitions: dict[str, Schema]) -> Schema:
    name = kind.__name__.removesuffix("Body")
    if name not in definitions:
        definitions[name] = {}  # Before its parts, or one that holds itself would never end.
        definitions[name] = _object(kind, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _any_of(choices: list[Schema]) -> Schema:
    """Types alone are said in one list, as people write them."""
    if all(choice.keys() == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}
