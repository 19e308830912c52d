from __future__ import annotations

from fleetform.spec.schema.draft07 import with_properties, without


def test_properties_are_found_wherever_a_schema_stands():
    """In alternatives, entries, conditions and definitions, and not in values."""
    one = {"properties": {"name": {"type": "string"}}}
    found = []

    def noted(name, part):
        found.append(name)
        return part

    schema = {
        "anyOf": [one, {"items": one}],
        "if": one,
        "definitions": {"properties": one},
        "default": one,
        "examples": [one],
    }
    assert with_properties(schema, noted) == schema
    assert found == ["name"] * 4


def test_a_keyword_goes_and_a_field_of_its_name_stays():
    """`properties` holds names, and values are what they are."""
    schema = {
        "x-unit": "bytes",
        "properties": {"x-unit": {"type": "string", "x-unit": "bytes"}},
        "enum": [{"x-unit": 1}],
    }
    assert without(schema, {"x-unit"}) == {
        "properties": {"x-unit": {"type": "string"}},
        "enum": [{"x-unit": 1}],
    }
