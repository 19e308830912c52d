"""
Going through a schema part by part, and its form in draft 07.

Which keywords hold schemas, schemas by name, or values that only look like schemas is said here
once for what is done to a whole file.

The twin accepts every document that the original accepts. Where draft-07 has no words for a
restriction (`unevaluatedProperties`, bounds on `contains`) it is left out: an editor then misses
an underline, and loading still tells.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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


_DIALECT = "http://json-schema.org/draft-07/schema#"

# By what stands under a keyword: one schema, a list of them, or schemas by name. All others hold
# values, which may look like schemas and are none.
_ONE = frozenset(
    {"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
)
_MANY = frozenset({"allOf", "anyOf", "oneOf"})
_CONVERTED = frozenset({"patternProperties", "properties"})
# Values that may have a key `examples` of their own.
_DATA = frozenset({"const", "default", "defaultSnippets", "enum"})
# Restrictions without a counterpart.
_LOST = frozenset({"unevaluatedItems", "unevaluatedProperties", "minContains", "maxContains"})
# They change what a `$ref` means, so leaving them out would be wrong in both directions.
_UNKNOWN = frozenset({"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$vocabulary"})


def to_draft07(schema: Mapping[str, Any]) -> Schema:
    """The twin of a whole file."""
    translated = _schema({key: value for key, value in schema.items() if key != "$schema"})
    assert isinstance(translated, dict)
    return {"$schema": _DIALECT, **translated}


def _schema(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema  # `true` or `false`
    assert not _UNKNOWN & schema.keys(), sorted(schema)
    known = {key: value for key, value in schema.items() if key not in _LOST}
    if schema.get("minContains") == 0:
        # None need to be there: with a bound below only, nothing is asked.
        known.pop("contains", None)
    translated: Schema = {}
    for key, value in known.items():
        translated.update(_keyword(key, value, known))
    _join_dependencies(translated, known)
    if "$ref" not in translated or len(translated) == 1:
        return translated
    # In draft-07 nothing beside a `$ref` counts, so it moves one level down.
    reference = {"$ref": translated.pop("$ref")}
    definitions = {key: translated.pop(key) for key in ("definitions",) if key in translated}
    return {**translated, "allOf": [*translated.get("allOf", ()), reference], **definitions}


def _keyword(key: str, value: Any, siblings: Mapping[str, Any]) -> Schema:
    if key == "$ref":
        return {"$ref": value.replace("#/$defs/", "#/definitions/")}
    if key == "$defs":
        return {"definitions": _each(_schema, value)}
    if key == "prefixItems":
        return {"items": [_schema(one) for one in value]}
    if key == "items" and "prefixItems" in siblings:
        return {"additionalItems": _schema(value)}
    if key in {"dependentRequired", "dependentSchemas"}:
        return {}
    if key in _ONE:
        return {key: _schema(value)}
    if key in _MANY:
        return {key: [_schema(one) for one in value]}
    return {key: _each(_schema, value)} if key in _CONVERTED else {key: value}


def _each(change: Callable[[Any], Any], schemas: Mapping[str, Any]) -> Schema:
    return {name: change(schema) for name, schema in schemas.items()}


def _join_dependencies(translated: Schema, schema: Mapping[str, Any]) -> None:
    """Put the two keywords that draft-07 has under one name back together."""
    required: Mapping[str, list[str]] = schema.get("dependentRequired", {})
    dependencies: Schema = {name: list(names) for name, names in required.items()}
    for name, dependent in schema.get("dependentSchemas", {}).items():
        inner = _schema(dependent)
        if name in dependencies:
            inner = {"allOf": [{"required": dependencies[name]}, inner]}
        dependencies[name] = inner
    if dependencies:
        translated["dependencies"] = dependencies


def for_editors(schema: Any) -> Any:
    """
    The schema as the YAML language server shows it best; it accepts the same.

    Examples that are lists or mappings would be offered as `[object Object]`; there are snippets
    of them. What an alternative says of itself would hide the words of the field. Alternatives
    that the server cannot tell apart it would show all at once: so one of them is told apart, by
    a keyword that means nothing to a scalar.
    """
    if isinstance(schema, list):
        return [for_editors(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    simple = [one for one in schema.get("examples", ()) if not isinstance(one, dict | list)]
    kept: Schema = {}
    for key, value in schema.items():
        if key in _CONVERTED | {"definitions"}:
            kept[key] = _each(for_editors, value)
        elif key != "examples":
            kept[key] = value if key in _DATA else for_editors(value)
    if "anyOf" in kept:
        kept["anyOf"] = _silent(kept["anyOf"])
    return {**kept, **({"examples": simple} if simple else {})}


def _silent(alternatives: list[Schema]) -> list[Schema]:
    bare = [
        {key: value for key, value in one.items() if key != "description"} for one in alternatives
    ]
    if not any("properties" in one for one in bare):
        bare[-1]["properties"] = {}
    return bare
