"""
The schema files as values: one kind, and any document, in which `type` says which kind holds.
"""

from __future__ import annotations

from fleetform.spec.schema import docstrings, models, snippets
from fleetform.spec.schema.annotate import Definitions, Schema, annotated

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def kind_schema(kind: str) -> Schema:
    """The schema of documents of one type."""
    definitions = Definitions()
    return _file(annotated(kind, definitions), definitions)


def any_schema() -> Schema:
    """The schema of any document."""
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
    summaries = [docstrings.summary(models.MODELS[kind]) for kind in kinds]
    whole: Schema = {
        "title": "fleetform",
        "description": "A document of a fleetform environment.",
        "type": "object",
        "required": ["type"],
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


def _file(schema: Schema, definitions: Definitions) -> Schema:
    parts = {"$defs": dict(sorted(definitions.schemas.items()))} if definitions.schemas else {}
    return {"$schema": _DIALECT, **schema, **parts}
