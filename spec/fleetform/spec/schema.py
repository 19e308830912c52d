"""
JSON Schema (draft 2020-12) of the language, from the models.

Types come from pydantic, words from the docstrings under the fields, and what a change does
from `fields`. Editors read the files; loading does not, so a schema only has to accept every
valid document and catch what an editor should underline: names, choices, shapes.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fleetform.spec import fields
from fleetform.spec.documents import read_documents
from fleetform.spec.environment import EnvironmentDocument
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.base import Model
from fleetform.spec.nodes import plain

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

MODELS: Mapping[str, type[Model]] = {
    "environment": EnvironmentDocument,
    **{name: kind.model for name, kind in KINDS.items()},
}
"""By what `type:` says."""

# Where an expression may stand for a value of another type than text, and where not.
_EXPRESSION = {"type": "string", "pattern": r"\$\{\{"}
# What pydantic calls the bounds that stand behind a validator of our own.
_BOUNDS = {"ge": "minimum", "le": "maximum"}
_FIXED = frozenset({"type", "name", "array", "matrix", "key"})
_DIGITS = {"type": "string", "pattern": r"^\s*[0-9]+\s*$"}


def generate() -> dict[str, str]:
    """The files of `schemas/` by name, one a kind and one for any document."""
    schemas = {name: _kind_schema(name) for name in sorted(MODELS)}
    whole = _any_schema(schemas)
    files = {f"{name}.json": schema for name, schema in schemas.items()} | {"fleetform.json": whole}
    return {
        name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in sorted(files.items())
    }


def stale(folder: Path) -> list[str]:
    """Names of files in `folder` that are missing, or not what `generate` says."""
    return [name for name, text in generate().items() if _read(folder / name) != text]


def write(folder: Path) -> None:
    """Put the files into `folder`; those that are current keep their time."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in stale(folder):
        (folder / name).write_text(generate()[name], encoding="utf-8")


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def documentation(model: type[Model]) -> dict[str, str]:
    """The docstring under each field, those of the bases included, in the order of the model."""
    texts: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if issubclass(owner, Model) and owner is not Model:
            texts.update(_docstrings(owner))
    return {name: texts[name] for name in model.model_fields if name in texts}


def _docstrings(owner: type[Model]) -> Iterator[tuple[str, str]]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef), owner
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(following, ast.Expr):
            continue
        if isinstance(statement.target, ast.Name) and isinstance(following.value, ast.Constant):
            yield statement.target.id, inspect.cleandoc(str(following.value.value))


def examples(text: str) -> list[Any]:
    """The values behind `Example:` in a field's docstring."""
    _, _, listed = text.partition("Example:")
    spans = re.findall(r"`([^`]+)`", listed)
    values = []
    for span in spans:
        nodes, findings = read_documents(span.encode(), "example")
        assert len(nodes) == 1, (span, findings)
        values.append(plain(nodes[0]))
    return values


def _kind_schema(name: str) -> dict[str, Any]:
    model = MODELS[name]
    schema = model.model_json_schema(mode="validation")
    definitions = schema.pop("$defs", {})
    classes = {one.__name__: one for one in _models(model)}
    _annotate(schema, model, name, "", definitions, classes, set())
    return {
        "$schema": _DIALECT,
        "title": name,
        "description": _summary(model),
        **{
            key: _tidy(value)
            for key, value in schema.items()
            if key not in {"title", "description"}
        },
        **(
            {"$defs": {key: _tidy(value) for key, value in definitions.items()}}
            if definitions
            else {}
        ),
    }


def _models(model: type[Model]) -> Iterator[type[Model]]:
    """All models of our own: definitions are found among them by name."""
    seen = [Model]
    for one in seen:
        seen.extend(one.__subclasses__())
    yield from seen


def _summary(model: type[Model]) -> str:
    text = inspect.cleandoc(model.__doc__ or "")
    return " ".join(text.partition("Example:")[0].split())


def _annotate(
    schema: dict[str, Any],
    model: type[Model],
    kind: str,
    prefix: str,
    definitions: dict[str, Any],
    classes: Mapping[str, type[Model]],
    seen: set[str],
) -> None:
    """Add words, examples, defaults and effects to each property, parts included."""
    texts = documentation(model)
    for name, property_schema in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        for reference in _references(property_schema):
            if reference not in seen:
                seen.add(reference)
                _annotate(
                    definitions[reference],
                    classes[reference],
                    kind,
                    f"{path}.",
                    definitions,
                    classes,
                    seen,
                )
        with_expressions = kind == "task" and path.split(".", maxsplit=1)[0] not in _FIXED
        described = _describe(property_schema, texts.get(name, texts.get("on", "")), kind, path)
        if with_expressions:
            described = _allow_expressions(described)
        schema["properties"][name] = described


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _describe(schema: dict[str, Any], text: str, kind: str, path: str) -> dict[str, Any]:
    described = _tidy(schema)
    run_kind = KINDS[kind].name if kind in KINDS else kind
    words = " ".join(text.partition("Example:")[0].split())
    extra: dict[str, Any] = {"description": words} if words else {}
    default = fields.DEFAULTS.get(run_kind, {}).get(path)
    if default is not None:
        extra["default"] = default
    found = examples(text)
    if found:
        extra["examples"] = found
    unit = fields.unit(kind, path)
    extra["x-class"] = fields.field_class(kind, path)
    extra["x-on-change"] = fields.on_change(kind, path)
    if unit:
        extra["x-unit"] = unit
    if "$ref" in described:
        described = {"allOf": [described]}
    return {**described, **extra}


def _tidy(schema: Any) -> Any:
    """
    The schema without what pydantic says for programs: titles, nulls, names of its bounds.

    A null is allowed when loading, with a warning; an editor had better not offer it.
    """
    if isinstance(schema, list):
        return [_tidy(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    tidy: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "default" and value is None:
            continue
        if key in {"properties", "$defs"}:
            tidy[key] = {inner: _tidy(value[inner]) for inner in value}
        elif key in {"examples", "default", "enum", "const"}:
            tidy[key] = value
        else:
            tidy[_BOUNDS.get(str(key), str(key))] = _tidy(value)
    if "anyOf" in tidy:
        kept = [one for one in tidy["anyOf"] if one != {"type": "null"}]
        if len(kept) == 1:
            del tidy["anyOf"]
            return {**kept[0], **tidy}
        tidy["anyOf"] = kept
    return tidy


def _allow_expressions(schema: dict[str, Any]) -> dict[str, Any]:
    """The property's schema, with `${{ … }}` where a number, a choice or a truth value stands."""
    alternatives = schema.get("anyOf", [schema])
    closed = [
        one for one in alternatives if one.get("type") in {"integer", "boolean"} or "enum" in one
    ]
    if not closed:
        return schema
    words = {
        key: value
        for key, value in schema.items()
        if key in {"description", "default", "examples"} or key.startswith("x-")
    }
    bare = [{key: value for key, value in one.items() if key not in words} for one in alternatives]
    digits = [_DIGITS] if any(one.get("type") == "integer" for one in closed) else []
    return {"anyOf": [*bare, *digits, _EXPRESSION], **words}


def _any_schema(schemas: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Any document: `type` decides which of the kinds' schemas holds."""
    definitions: dict[str, Any] = {}
    rules = []
    for name, schema in schemas.items():
        definitions.update(schema.get("$defs", {}))
        definitions[name] = {
            key: value for key, value in schema.items() if key not in {"$schema", "$defs"}
        }
        rules.append(
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": {"$ref": f"#/$defs/{name}"},
            }
        )
    return {
        "$schema": _DIALECT,
        "title": "fleetform",
        "description": "A document of a fleetform environment.",
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"description": "The kind of the document.", "enum": sorted(schemas)}
        },
        "allOf": rules,
        "$defs": dict(sorted(definitions.items())),
    }
