"""Each kind is complete: an example, documentation, and a row for each field."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from fleetform.model.run import from_document
from fleetform.spec import field_table_generator, fields, schema
from fleetform.spec.kinds import BACKEND_TYPES, RESOURCES, KindName
from fleetform.spec.kinds import KINDS as TYPES
from fleetform.spec.kinds.base import Model, written_fields
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "tests" / "data" / "kinds"
KINDS = sorted(schema.MODELS)
ANY = schema.ALL_KINDS


# A validator of the schema of any document takes as long to make as a hundred questions to it.
@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Of a file in `schemas/`, as it would be written now."""
    return jsonschema.Draft202012Validator(json.loads(schema.generate()[name]))


def documents(kind: str) -> list[dict[str, Any]]:
    """The example documents of a type; those of all backends stand in one file."""
    file = "backend" if kind in BACKEND_TYPES else kind
    nodes, findings = read_documents((EXAMPLES / f"{file}.yaml").read_bytes(), f"{file}.yaml")
    assert not findings
    read = [plain(node) for node in nodes]
    return [value for value in read if value["type"] == kind]


def parts(model: type[Model]) -> list[type[Model]]:
    """The model and the models of its fields, in any depth."""
    found = [model]
    for one in found:
        for field in one.model_fields.values():
            found.extend(inner for inner in classes_in(field.annotation) if inner not in found)
    return found


def classes_in(annotation: Any) -> list[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return [annotation]
    return [
        inner for argument in getattr(annotation, "__args__", ()) for inner in classes_in(argument)
    ]


def test_each_kind_has_a_name_and_a_row():
    """The names that a type checker knows are those of the table, and each reference leads to one."""
    assert set(get_args(KindName)) == set(RESOURCES)
    named = {kind for row in RESOURCES.values() for kind in row.refers.values()}
    assert named <= set(RESOURCES)


def test_types_of_one_kind_differ_in_their_models_only():
    """What a run refers to does not depend on whether it is a task or a service."""
    for row in TYPES.values():
        assert replace(row, path="") == replace(RESOURCES[row.name], path="")


@pytest.mark.parametrize("kind", KINDS)
def test_example_is_valid(kind):
    """The example of a kind is a valid document of it."""
    for value in documents(kind):
        schema.MODELS[kind].model_validate(value)


@pytest.mark.parametrize("kind", KINDS)
def test_example_has_every_field(kind):
    """The example sets every field of the kind's model, and of the models in it."""
    read = [schema.MODELS[kind].model_validate(value) for value in documents(kind)]
    said: dict[type[Model], set[str]] = {}

    def collect(value):
        if isinstance(value, Model):
            said.setdefault(type(value), set()).update(value.model_fields_set)
            for name in value.model_fields_set:
                collect(getattr(value, name))
        elif isinstance(value, tuple):
            for item in value:
                collect(item)

    for model in read:
        collect(model)
    for model in parts(schema.MODELS[kind]):
        missing = set(model.model_fields) - said.get(model, set())
        assert not missing, (
            f"tests/data/kinds/{kind}.yaml has no value for {missing} of {model.__name__}"
        )


@pytest.mark.parametrize("kind", KINDS)
def test_fields_have_rows(kind):
    """Every field of a model has a row that says what a change of it does, and no row is left over."""
    name = fields.KIND_OF_TYPE.get(kind, kind)
    top = set(written_fields(schema.MODELS[kind]))
    rows = {path for path in fields.ROWS[name] if "." not in path}
    assert top <= rows, "run `make generate`"
    # Types of one kind have some fields each, and all of them together.
    same = [one for one in KINDS if fields.KIND_OF_TYPE.get(one, one) == name]
    all_tops = {field for one in same for field in written_fields(schema.MODELS[one])}
    # Of the canonical form of an element; nobody writes it.
    assert rows - all_tops == ({"index"} if name == "run" else set())


def test_each_supported_field_of_a_run_is_read():
    """What hosts, placement or the life of a run act on reaches them through `model/run.py`."""
    document = _Asked()
    from_document("train", document)
    for path, facts in fields.ROWS["run"].items():
        if facts.supported_by in {"agents.host", "lifecycle", "schedule"} and "." not in path:
            # Of two fields the only supported value is the default.
            is_default = path in {"on_silence", "on_upstream_change"}
            assert path in document.asked or is_default, f"`from_document` does not read `{path}`"


class _Asked(dict[str, Any]):
    """An empty document that remembers which fields are read."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return default


def test_the_generated_table_is_current():
    """`spec/field_table.py` has what the annotations of the models say."""
    made = field_table_generator.text()
    assert field_table_generator.FILE.read_text(encoding="utf-8") == made, "run `make generate`"


@pytest.mark.parametrize("kind", KINDS)
def test_fields_have_documentation(kind):
    """Every field says in a docstring what it is, with an example that can be read as YAML."""
    for model in parts(schema.MODELS[kind]):
        if model.__name__ == "Nodes":
            continue  # A value of its own spelling, which no document writes as a model.
        texts = schema.documentation(model)
        assert set(texts) == set(written_fields(model)), model.__name__
        for name, text in texts.items():
            is_fixed = name == "type"
            assert is_fixed or schema.examples(text), f"{model.__name__}.{name}"


@pytest.mark.parametrize("kind", KINDS)
def test_documented_examples_are_valid(kind):
    """A value behind `Example:` is accepted by the field that it documents."""
    (whole, *_) = documents(kind)
    if kind == "task":
        whole = {
            "type": "task",
            "name": "train",
            "commands": ["true"],
            "matrix": {"lr": [1], "seed": [1]},
        }
    model = schema.MODELS[kind]
    for name, text in schema.documentation(model).items():
        for value in schema.examples(text):
            model.model_validate({**whole, name: value})


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_are_fields(kind):
    """A default that is shown belongs to a field that exists."""
    generated = json.loads(schema.generate()[f"{kind}.json"])
    name = fields.KIND_OF_TYPE.get(kind, kind)
    shown = {path for path in fields.DEFAULTS[name] if _has(kind, path)}
    assert _count_defaults(generated) == len(shown)


def _has(kind: str, path: str) -> bool:
    """Whether the type has the field, at least the top of its path."""
    return path.partition(".")[0] in schema.MODELS[kind].model_fields


def _count_defaults(value: Any, *, are_names: bool = False) -> int:
    """How often a schema says `default`, where it is no name of a field or a choice."""
    if isinstance(value, list):
        return sum(_count_defaults(item) for item in value)
    if not isinstance(value, dict):
        return 0
    names = {"properties", "x-intellij-enum-metadata", "$defs"}
    return ("default" in value and not are_names) + sum(
        _count_defaults(item, are_names=key in names and not are_names)
        for key, item in value.items()
    )


def test_schemas_are_current():
    """The files in `schemas/` are what the models say; `make generate` rewrites them."""
    folder = ROOT / "schemas"
    stale = [
        name
        for name, text in schema.generate().items()
        if (folder / name).read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make generate`"


def test_the_schema_of_any_document_is_a_schema():
    """Its keywords have values of the right form; those of the types are made of the same parts."""
    jsonschema.Draft202012Validator.check_schema(validator(ANY).schema)


@pytest.mark.parametrize("kind", KINDS)
def test_schema_accepts_the_example(kind):
    """A valid document is valid for the schema of its kind and for the schema of any document."""
    for name in (f"{kind}.json", ANY):
        for value in documents(kind):
            assert [error.message for error in validator(name).iter_errors(value)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_schema_refuses_unknown_fields(kind):
    """A field that does not exist is refused, at the top and in each part."""
    is_valid = validator(ANY).is_valid
    (value, *_) = documents(kind)
    assert not is_valid({**value, "max_duraton": "2h"})
    for name, inner in value.items():
        # Names in these are the author's own.
        if isinstance(inner, dict) and name not in {
            "tags",
            "env",
            "matrix",
            "host_tags",
            "gpus",
            "values",
        }:
            assert not is_valid({**value, name: {**inner, "no_such_field": 1}}), name
