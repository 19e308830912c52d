"""
Going through a schema part by part, whatever draft it is in.

Which keywords hold schemas, schemas by name, or values that only look like schemas is said here
once for what is done to a whole file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

Schema = dict[str, Any]

_NAMED = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
# A snippet may well say `properties:`, and be none.
_VALUES = frozenset(
    {"const", "default", "defaultSnippets", "enum", "examples", "x-intellij-enum-metadata"}
)


def with_properties(schema: Any, change: Callable[[str, Schema], Schema]) -> Any:
    """
    The schema with `change(name, property)` in place of each property.

    Properties below properties are not gone into: `change` does that, where it wants to.
    """
    if isinstance(schema, list):
        return [with_properties(one, change) for one in schema]
    if not isinstance(schema, dict):
        return schema
    changed: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            changed[key] = {name: change(name, one) for name, one in value.items()}
        elif key in _NAMED:
            changed[key] = {name: with_properties(one, change) for name, one in value.items()}
        else:
            changed[key] = value if key in _VALUES else with_properties(value, change)
    return changed


def without(schema: Any, keywords: Collection[str]) -> Any:
    """The schema and all below it without some keywords; a field of such a name stays."""
    if isinstance(schema, list):
        return [without(one, keywords) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept: Schema = {}
    for key, value in schema.items():
        if key in keywords:
            continue
        if key in _NAMED:
            kept[key] = {name: without(one, keywords) for name, one in value.items()}
        else:
            kept[key] = value if key in _VALUES else without(value, keywords)
    return kept
