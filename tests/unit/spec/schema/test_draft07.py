from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.schema.draft07 import for_editors, to_draft07

KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-2, 5), st.sampled_from(["", "x", "yy", "zzz"])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)

LEAVES = st.one_of(
    st.booleans(),
    st.builds(dict, type=st.sampled_from(["string", "integer", "object", "array", "boolean"])),
    st.builds(dict, enum=st.lists(VALUES, min_size=1, max_size=3)),
    st.builds(dict, const=VALUES),
    st.builds(dict, minimum=st.integers(-1, 3)),
    st.builds(dict, minLength=st.integers(0, 2)),
    st.just({"$ref": "#/$defs/one"}),
)


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(KEYS, inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "properties": named,
            "additionalProperties": inner,
            "propertyNames": inner,
            "prefixItems": several,
            "items": inner,
            "contains": inner,
            "dependentRequired": st.dictionaries(KEYS, st.lists(KEYS, max_size=2, unique=True), max_size=2),
            "dependentSchemas": st.dictionaries(KEYS, inner, max_size=2),
            "required": st.lists(KEYS, max_size=2, unique=True),
            "$ref": st.just("#/$defs/one"),
        },
    )  # fmt: skip


SCHEMAS = st.recursive(LEAVES, deeper, max_leaves=10)


@given(
    schema=SCHEMAS, one=LEAVES.filter(lambda leaf: leaf != {"$ref": "#/$defs/one"}), value=VALUES
)
def test_the_twin_accepts_the_same_values(schema, one, value):
    """Whatever a schema is made of, its twin in draft-07 says the same of any value."""
    whole = {"allOf": [schema], "$defs": {"one": one}}
    twin = to_draft07(whole)
    jsonschema.Draft7Validator.check_schema(twin)
    original = jsonschema.Draft202012Validator(whole).is_valid(value)
    assert jsonschema.Draft7Validator(twin).is_valid(value) == original


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"unevaluatedProperties": False}, {"a": 1}),
        ({"contains": {"const": 1}, "minContains": 0}, [2]),
        ({"contains": {"const": 1}, "maxContains": 1}, [1, 1]),
    ],
)
def test_what_draft07_cannot_say_is_allowed(schema, value):
    """The twin accepts more, and never less."""
    assert jsonschema.Draft7Validator(to_draft07(schema)).is_valid(value)


def test_what_would_change_a_reference_is_refused():
    """A keyword that the translation does not know is a mistake of whoever wrote the schema."""
    with pytest.raises(AssertionError):
        to_draft07({"properties": {"a": {"$dynamicRef": "#node"}}})


def test_values_that_look_like_schemas_are_left_alone():
    """A constant may have a key `$ref` or `$defs`; it is a value all the same."""
    schema = {"const": {"$ref": "#/$defs/one"}, "default": {"$defs": {}, "prefixItems": []}}
    assert to_draft07(schema) == {"$schema": "http://json-schema.org/draft-07/schema#", **schema}


def test_editors_are_shown_examples_that_they_can_show():
    """Lists and mappings are left out of `examples`; a field of that name stays."""
    schema = {
        "examples": ["x", [1], {"a": 1}],
        "properties": {"examples": {"type": "string", "examples": [{"a": 1}]}},
        "default": {"examples": [[1]]},
    }
    assert for_editors(schema) == {
        "properties": {"examples": {"type": "string"}},
        "default": {"examples": [[1]]},
        "examples": ["x"],
    }
