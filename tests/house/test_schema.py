"""Each kind is complete for an editor: a document to begin with, and a meaning for each choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fleetform.spec.kinds import KINDS
from fleetform.spec.nodes import plain
from fleetform.spec.schema import ALL_KINDS, MODELS, generate, snippets
from fleetform.spec.schema.annotate import Definitions, annotated
from fleetform.spec.schema.files import EDITORS
from fleetform.spec.syntax import read_documents

EXAMPLES = Path(__file__).parents[1] / "data" / "kinds"

# Fields whose choices are proper names: a sentence on `3.12` or `vscode` would say it again.
PROPER_NAMES = {"arch", "days", "ide", "kinds", "method", "python"}
# Spellings of nothing, which the field's own words explain, and types, which their models do.
ELSEWHERE = ("off", False, -1, *MODELS)


def choices(schema: Any, path: str):
    """Every list of choices, with the field it belongs to."""
    if isinstance(schema, list):
        for one in schema:
            yield from choices(one, path)
    elif isinstance(schema, dict):
        if len(schema.get("enum", ())) > 1:
            yield path, schema
        for key, value in schema.items():
            if key == "properties":
                for name, field in value.items():
                    yield from choices(field, f"{path}.{name}")
            elif key not in {"default", "examples", "defaultSnippets"}:
                yield from choices(value, path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_a_snippet(kind):
    """An editor offers a whole document of the kind: the example in the docstring of its model."""
    labels = [one["label"] for one in snippets.document_snippets(kind)]
    assert labels[:1] == [kind], f"write an `Example:` into the docstring of the model of `{kind}`"
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize("kind", MODELS)
def test_each_choice_says_what_it_means(kind):
    """The docstring of a field that has choices has a sentence on each: "`hold`: nothing before …"."""
    definitions = Definitions()
    document = annotated(kind, definitions)
    silent = set()
    for top, schema in [(kind, document), *definitions.schemas.items()]:
        for path, field in choices(schema, top):
            if path.rpartition(".")[2] not in PROPER_NAMES:
                texts = field.get("enumDescriptions", [""] * len(field["enum"]))
                told = zip(field["enum"], texts, strict=True)
                silent |= {
                    f"{path}: {value}"
                    for value, text in told
                    if not text and value not in ELSEWHERE
                }
    assert sorted(silent) == [], "write a sentence `<value>: ...` in the docstring of each field"


def test_the_twin_for_editors_accepts_the_examples():
    """What is valid in draft 2020-12 is valid in the draft-07 form as well."""
    schema = json.loads(generate()[f"{EDITORS}/{ALL_KINDS}"])
    jsonschema.Draft7Validator.check_schema(schema)
    twin = jsonschema.Draft7Validator(schema)
    for path in sorted(EXAMPLES.glob("*.yaml")):
        nodes, _ = read_documents(path.read_bytes(), path.name)
        for value in map(plain, nodes):
            found = [error.message for error in twin.iter_errors(value)]
            assert found == [], f"{path.name}: {value['type']}"
