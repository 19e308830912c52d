"""
The schema files as values: one kind, and any document, in which `type` says which kind holds.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from fleetform.spec.schema import docstrings, models, snippets
from fleetform.spec.schema.annotate import Definitions, Schema, annotated
from fleetform.spec.tree.sources import IMPLIED_TYPES

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def kind_schema(kind: str) -> Schema:
    """The schema of documents of one type."""
    definitions = Definitions()
    return _file(annotated(kind, definitions), definitions)


@functools.cache
def any_schema() -> Schema:
    """The schema of any document. Shared: not to be changed."""
    definitions = Definitions()
    kinds = {kind: annotated(kind, definitions) for kind in sorted(models.MODELS)}
    rules: list[Schema] = [
        {
            "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
            "then": {key: value for key, value in schema.items() if key != "defaultSnippets"},
        }
        for kind, schema in kinds.items()
    ]
    # Whole documents are for a file that has no type yet.
    offered = [one for kind in kinds for one in snippets.document_snippets(kind)]
    rules.append({"if": {"required": ["type"]}, "else": {"defaultSnippets": offered}})
    rules.append(_type_rule(kinds))
    summaries = [docstrings.summary(models.MODELS[kind]) for kind in kinds]
    whole: Schema = {
        "title": "fleetform",
        "description": "A document of a fleetform environment.",
        "type": "object",
        "properties": {
            "type": {
                "description": "The kind of the document.",
                "enum": list(kinds),
                "enumDescriptions": summaries,
                "markdownEnumDescriptions": summaries,
                "x-intellij-enum-metadata": {
                    kind: {"description": text} for kind, text in zip(kinds, summaries, strict=True)
                },
            }
        },
        "allOf": rules,
    }
    return _file(whole, definitions)


def _type_rule(kinds: Mapping[str, Schema]) -> Schema:
    """A document has a type, except where the only field of a file implies it for what it lists."""
    listed: Schema = {}
    for name, kind in IMPLIED_TYPES.items():
        if kind in kinds:
            entry = {key: value for key, value in kinds[kind].items() if key != "defaultSnippets"}
            needed = [one for one in entry.get("required", ()) if one != "type"]
            listed[name] = {"type": "array", "items": {**entry, "required": needed}}
    if not listed:
        return {"required": ["type"]}
    return {
        "if": {
            "not": {"required": ["type"]},
            "anyOf": [{"required": [name]} for name in listed],
        },
        "then": {"properties": listed, "additionalProperties": False},
        "else": {"required": ["type"]},
    }


def _file(schema: Schema, definitions: Definitions) -> Schema:
    parts = {"$defs": dict(sorted(definitions.schemas.items()))} if definitions.schemas else {}
    return {"$schema": _DIALECT, **schema, **parts}
