"""
The schema of one kind: pydantic's, with what the docstrings and the table of fields say.

Every property is described by its path, since one model may stand at several: `retry.delay` of
a fleet and of a run are changed in different ways. So a definition is made for each place a model
stands at, and places that come out alike share one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetform.spec import fields
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.base import Model
from fleetform.spec.quantities.ranges import DIGITS, EXPRESSION, whole_text
from fleetform.spec.schema import models, snippets, wording
from fleetform.spec.schema.wording import Words

Schema = dict[str, Any]

# Where an expression may stand for a value of another type than text, and where not.
EXPRESSION_PATTERN = EXPRESSION
DIGITS_PATTERN = whole_text(DIGITS)
_EXPRESSION: Schema = {"type": "string", "pattern": EXPRESSION_PATTERN}
_DIGITS: Schema = {"type": "string", "pattern": DIGITS_PATTERN}
_NULL: Schema = {"type": "null"}
_FIXED = frozenset({"type", "name", "array", "matrix", "key"})
# What pydantic calls the bounds that stand behind a validator of our own.
_BOUNDS = {"ge": "minimum", "le": "maximum"}
# Under these keywords stand rules between fields, which describe none of them.
_RULES = frozenset({"dependentSchemas", "not"})
# Under these keywords stand values and not schemas.
_VALUES = frozenset({"examples", "default", "enum", "const", "required", "type"})
# What pydantic says for programs, and a docstring says better.
_DROPPED = frozenset({"title", "description", "$defs", models.MARK})


SAME_AS = "x-same-as"
"""The keyword by which a model's schema says that a property is another one's second spelling."""


class Definitions:
    """
    The parts of a file, by name; equal parts are one.

    A part is named by its class, and by its kind and place as well where that name is taken by
    another part.
    """

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}

    def add(self, kind: str, path: str, model: type[Model], schema: Schema) -> str:
        """Keep `schema`; returns the name it is kept under."""
        names = (model.__name__, f"{kind}.{model.__name__}", f"{kind}.{path}.{model.__name__}")
        for name in names:
            if self.schemas.setdefault(name, schema) == schema:
                return name
        raise AssertionError(f"two parts at {kind}.{path}")


def annotated(kind: str, definitions: Definitions) -> Schema:
    """
    The schema of a kind's documents, without `$schema` and `$defs`.

    Args:
        kind: A key of `MODELS`.
        definitions: Takes the parts; several kinds may share one.
    """
    return _Annotator(kind, definitions).document()


class _Annotator:
    def __init__(self, kind: str, definitions: Definitions) -> None:
        self._kind = kind
        self._raw = models.raw_schema(kind)
        self._definitions = definitions
        self._open: list[str] = []

    def document(self) -> Schema:
        model = models.MODELS[self._kind]
        schema = self._object(self._raw, "")
        return {
            "title": self._kind,
            "description": wording.summary(model),
            **schema,
            "defaultSnippets": snippets.document_snippets(self._kind),
        }

    def _object(self, raw: Schema, path: str) -> Schema:
        """An object's schema, its properties described by the docstrings of its model."""
        model = models.marked_model(raw)
        texts = wording.documentation(model) if model is not None else {}
        dropped = _DROPPED if model is not None else frozenset({"title"})
        schema = {
            key: self._properties(value, path, texts)
            if key == "properties"
            else self._part(value, path)
            for key, value in raw.items()
            if key not in dropped
        }
        return _tidy_alternatives({**schema, **{key: raw[key] for key in _RULES & raw.keys()}})

    def _properties(self, raw: Schema, path: str, texts: Mapping[str, str]) -> Schema:
        above = f"{path}." if path else ""
        return {
            name: self._property(value, f"{above}{name}", _text(name, value, texts))
            for name, value in raw.items()
        }

    def _property(self, raw: Schema, path: str, text: str) -> Schema:
        bare = {key: value for key, value in raw.items() if key not in {"description", SAME_AS}}
        schema = self._part(bare, path)
        if path == "type":
            # An editor shows it in the list of types, where only what a kind is helps to choose.
            text = wording.summary(models.MODELS[self._kind])
        words = wording.words(text, _choices(schema))
        if models.shares_run_fields(self._kind) and path.partition(".")[0] not in _FIXED:
            schema = _allow_expressions(schema)
        schema = _with_messages(schema, wording.example_texts(text))
        if "$ref" in schema:
            # In draft-07 nothing beside a `$ref` counts.
            schema = {"allOf": [schema]}
        schema = _explained(schema, words.choices)
        if _NULL in raw.get("anyOf", ()):
            schema = _or_null(schema)
        # A second spelling is accepted, and one is enough to offer.
        hidden = {"doNotSuggest": True} if SAME_AS in raw else {}
        return {**schema, **self._about(path, text, words), **hidden}

    def _about(self, path: str, text: str, words: Words) -> Schema:
        """Keywords of a field other than its shape."""
        row = fields.row(self._kind, path)
        default = _default(self._kind, path)
        found = wording.examples(text)
        offered = snippets.field_snippets(self._kind, path, text)
        return {
            **self._descriptions(path, text, words),
            **({} if default is None else {"default": default}),
            **({"examples": found} if found else {}),
            **({"defaultSnippets": offered} if offered else {}),
            "x-class": str(row.field_class),
            "x-on-change": str(row.on_change),
            **({"x-unit": row.unit} if row.unit else {}),
            **({"x-carried-out-by": row.supported_by} if row.supported_by else {}),
        }

    def _descriptions(self, path: str, text: str, words: Words) -> Schema:
        if not words.whole:
            return {}
        unsupported = wording.unsupported_sentence(self._kind, path)
        facts = [
            wording.default_sentence(_default(self._kind, path)),
            wording.change_sentence(fields.row(self._kind, path)),
            # Of the others an editor makes a list of its own.
            wording.examples_sentence(wording.compound_examples(text)),
        ]
        return {
            "description": " ".join(filter(None, (words.whole, unsupported))),
            "markdownDescription": "\n\n".join(
                filter(None, (words.lead, unsupported, " ".join(filter(None, facts))))
            ),
        }

    def _part(self, raw: Any, path: str) -> Any:
        """Any other schema below a field, at the field's path."""
        if isinstance(raw, list):
            return [self._part(value, path) for value in raw]
        if not isinstance(raw, dict):
            return raw
        if "$ref" in raw:
            return {"$ref": self._reference(raw["$ref"], path)}
        if "properties" in raw:
            return self._object(raw, path)
        schema = {
            _BOUNDS.get(str(key), str(key)): value if key in _VALUES else self._part(value, path)
            for key, value in raw.items()
            if not (key == "title" or (key == "default" and value is None))
        }
        return _tidy_alternatives(schema)

    def _reference(self, reference: str, path: str) -> str:
        assert reference not in self._open, f"{reference} contains itself"
        raw = self._raw["$defs"][reference.rpartition("/")[2]]
        model = models.marked_model(raw)
        assert model is not None, reference
        self._open.append(reference)
        schema = self._object(raw, path)
        self._open.pop()
        # Without a description: an editor would show it in place of the field's.
        return f"#/$defs/{self._definitions.add(self._kind, path, model, schema)}"


def _text(name: str, raw: Schema, texts: Mapping[str, str]) -> str:
    """The docstring of a field, or what a schema written by hand says in its place."""
    same = raw.get(SAME_AS)
    if same is not None:
        return f"Another spelling of `{same}`. {texts.get(same, '')}".strip()
    return str(texts.get(name, raw.get("description", "")))


def _or_null(schema: Schema) -> Schema:
    """
    The property's schema, with null for a field that is not set.

    Beside the type where there is one, so that an editor shows one alternative and not two.
    """
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], _NULL]}
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, _NULL]}


def _tidy_alternatives(schema: Schema) -> Schema:
    """
    The schema without null, which `_property` adds, without a choice of one, and with the bounds
    of a number at the number.
    """
    if "anyOf" not in schema:
        return schema
    bounds = {key: value for key, value in schema.items() if key in _BOUNDS.values()}
    kept = [
        {**one, **bounds} if one.get("type") in ("integer", "number") else one
        for one in schema["anyOf"]
        if one != _NULL
    ]
    rest = {key: value for key, value in schema.items() if key not in {"anyOf", *bounds}}
    return {**kept[0], **rest} if len(kept) == 1 else {**rest, "anyOf": kept}


def _default(kind: str, path: str) -> str | int | bool | None:
    of = KINDS[kind].name if kind in KINDS else kind
    return fields.DEFAULTS.get(of, {}).get(path)


def _enums(schema: Any) -> Iterator[Schema]:
    """The places in a field's own schema that list choices; those of fields below are theirs."""
    if isinstance(schema, list):
        for one in schema:
            yield from _enums(one)
    elif isinstance(schema, dict):
        if "enum" in schema:
            yield schema
        for key, value in schema.items():
            if key != "properties" and key not in _VALUES:
                yield from _enums(value)


def _choices(schema: Schema) -> list[str]:
    return [value for one in _enums(schema) for value in one["enum"] if isinstance(value, str)]


def _with_messages(schema: Any, texts: Sequence[str]) -> Any:
    """
    The schema with what to write where a pattern is missed, in place of the pattern itself.

    The field's own examples say it best; then those of its alternatives would only be repeated.
    """
    if not texts or not isinstance(schema, dict | list):
        return schema
    if isinstance(schema, list):
        return [_with_messages(one, texts) for one in schema]
    explained = {
        key: value if key in {"properties", *_VALUES} else _with_messages(value, texts)
        for key, value in schema.items()
        if key != "examples"
    }
    if "pattern" in schema:
        explained["patternErrorMessage"] = wording.pattern_sentence(texts)
    return explained


def _explained(schema: Any, choices: Mapping[str, str]) -> Any:
    """
    The schema with the meaning of each choice.

    Three spellings, because each editor reads another: the YAML language server shows
    `enumDescriptions` in its list and in the hover, JetBrains its own keyword. `oneOf` of
    constants, as the standard would have it, neither of them shows.
    """
    if not choices or not isinstance(schema, dict | list):
        return schema
    if isinstance(schema, list):
        return [_explained(one, choices) for one in schema]
    explained = {
        key: value if key == "properties" or key in _VALUES else _explained(value, choices)
        for key, value in schema.items()
    }
    listed = [value for value in schema.get("enum", ()) if value in choices]
    if listed:
        texts = [
            choices.get(value, "") if isinstance(value, str) else "" for value in schema["enum"]
        ]
        explained["enumDescriptions"] = texts
        explained["markdownEnumDescriptions"] = texts
        explained["x-intellij-enum-metadata"] = {
            value: {"description": choices[value]} for value in listed
        }
    return explained


def _allow_expressions(schema: Schema) -> Schema:
    """The property's schema, with `${{ … }}` where a number, a choice or a boolean is allowed."""
    alternatives = schema.get("anyOf", [schema])
    closed = [one for one in alternatives if _is_closed(one)]
    if not closed:
        return schema
    has_number = any(one.get("type") == "integer" for one in closed)
    # A field with a pattern of its own says which numbers may be text.
    has_text = any("pattern" in one for one in alternatives)
    digits = [_DIGITS] if has_number and not has_text else []
    added = [one for one in (*digits, _EXPRESSION) if one not in alternatives]
    return {"anyOf": [*alternatives, *added]}


def _is_closed(schema: Schema) -> bool:
    return "enum" in schema or "const" in schema or schema.get("type") in ("integer", "boolean")
