"""
The files of schemas, each whole: of one kind, of any document, and for editors.

Forty kinds have `tags`, `protect` and `description` in common, and the three kinds of runs most
of what they have. An editor reads the whole file, so each is written under the file's definitions
and referred to. Only whole properties are, words and all: a reference with words beside it would
be another schema, and to an alternative the YAML language server would give the reference's name
where it now says `string`.

    schemas/fleetform.json, task.json, …    draft 2020-12: any document, and one of each type
    schemas/draft-07/fleetform.json         any document, in the draft that most editors read
    schemas/schemastore/catalog-entry.json  what the public catalogue of schemas would be given

The first are for programs and for whoever reads a change of the language: they are indented, and say
what a change of a field does as keywords. The second is for editors, on one line: it says the same in
words, and has all that only an editor shows. A file of each type would give editors nothing: in the
one that they read `type` says which holds.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from fleetform.spec.schema import models, snippets, wording
from fleetform.spec.schema.annotate import Definitions, annotated
from fleetform.spec.schema.draft07 import Schema, for_editors, to_draft07, with_properties, without
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
    summaries = [wording.summary(models.MODELS[kind]) for kind in kinds]
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


# A reference takes thirty to fifty characters, and a reader a jump.
_LENGTH_MIN = 120


def shared(schema: Schema, keyword: str) -> Schema:
    """
    The file with each property that stands in it more than once under `keyword`.

    Args:
        schema: A whole file, as it is read: with `$schema` and its definitions.
        keyword: `$defs`, or what its draft says for it.

    Returns:
        A file that says the same. Properties of one name that differ are numbered in the order
        in which they come.
    """
    sharing = _Sharing(keyword)
    sharing.count(schema)
    kept = sharing.referring(schema)
    assert isinstance(kept, dict)
    definitions = {**kept.pop(keyword, {}), **sharing.definitions}
    return {**kept, **({keyword: dict(sorted(definitions.items()))} if definitions else {})}


class _Sharing:
    def __init__(self, keyword: str) -> None:
        self.definitions: Schema = {}
        self._keyword = keyword
        self._counts: Counter[str] = Counter()
        self._names: dict[str, str] = {}

    def count(self, schema: Any) -> None:
        """Count each property; what stands in equal ones counts once, since they will be one."""

        def counted(_: str, part: Schema) -> Schema:
            text = _identity(part)
            self._counts[text] += 1
            if self._counts[text] == 1:
                self.count(part)
            return part

        with_properties(schema, counted)

    def referring(self, schema: Any) -> Any:
        return with_properties(schema, self._reference)

    def _reference(self, name: str, part: Schema) -> Schema:
        text = _identity(part)
        if self._counts[text] == 1 or len(text) < _LENGTH_MIN:
            changed = self.referring(part)
            assert isinstance(changed, dict)
            return changed
        if text not in self._names:
            self._names[text] = self._free(name)
            self.definitions[self._names[text]] = self.referring(part)
        return {"$ref": f"#/{self._keyword}/{self._names[text]}"}

    def _free(self, name: str) -> str:
        """A name for a definition: the property's, which no part has; those are classes."""
        taken = set(self._names.values())
        numbered = (f"{name}.{number}" for number in range(2, len(taken) + 3))
        return next(one for one in (name, *numbered) if one not in taken)


def _identity(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))


ALL_KINDS = "fleetform.json"
"""The schema of any document."""

EDITORS = "draft-07"
"""The folder of the twin for editors."""

CATALOG_ENTRY = "schemastore/catalog-entry.json"

_FOR_EDITORS = frozenset(
    {
        "defaultSnippets",
        "doNotSuggest",
        "markdownDescription",
        "markdownEnumDescriptions",
        "patternErrorMessage",
        "x-intellij-enum-metadata",
    }
)
_FOR_PROGRAMS = frozenset({"x-carried-out-by", "x-class", "x-on-change", "x-unit"})

_ENTRY = {
    "name": "fleetform",
    "description": "Documents of a fleetform environment: fleets, volumes and runs of GPU machines",
    # `environment.yaml` and `train.yaml` are names that many programs use. The catalogue is for
    # everybody's files, so it claims only names that say fleetform.
    "fileMatch": ["*.fleetform.yaml", "*.fleetform.yml"],
    # Where the catalogue serves the schemas that lie in its own repository.
    "url": "https://json.schemastore.org/fleetform.json",
}


def generate() -> dict[str, str]:
    """The text of each file by its path in `schemas/`."""
    return dict(_generated())


@functools.cache
def _editor_text() -> str:
    twin = for_editors(to_draft07(without(any_schema(), _FOR_PROGRAMS)))
    # On one line: it lies in every environment's history, and only programs read it there.
    text = json.dumps(shared(twin, "definitions"), ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n"


def editor_files() -> dict[str, str]:
    """What an environment needs for its editors: one schema, of any document."""
    return {ALL_KINDS: _editor_text()}


@functools.cache
def _generated() -> Mapping[str, str]:
    schemas = {f"{kind}.json": kind_schema(kind) for kind in models.MODELS}
    schemas[ALL_KINDS] = any_schema()
    files = {name: _text(_for_programs(schema)) for name, schema in schemas.items()}
    files[f"{EDITORS}/{ALL_KINDS}"] = _editor_text()
    files[CATALOG_ENTRY] = _text(_ENTRY)
    return dict(sorted(files.items()))


def _for_programs(schema: Schema) -> Schema:
    bare = without(schema, _FOR_EDITORS)
    assert isinstance(bare, dict)
    return shared(bare, "$defs")


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
