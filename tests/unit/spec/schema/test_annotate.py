from __future__ import annotations

import pytest

from fleetform.spec.schema.annotate import EXPRESSION_PATTERN, Definitions, annotated
from fleetform.spec.schema.files import any_schema, kind_schema


@pytest.fixture(scope="module")
def task():
    return kind_schema("task")


def test_a_field_says_what_a_change_does_and_who_acts_on_it(task):
    """For people in the description an editor shows, for programs in keywords of our own."""
    field = task["properties"]["max_duration"]
    assert field["x-class"] == "control"
    assert field["x-on-change"] == "update"
    assert field["x-unit"] == "seconds"
    assert field["x-carried-out-by"] == "agents.host"
    assert "A change: updated in place." in field["markdownDescription"]


def test_a_choice_has_its_meaning_beside_it(task):
    """In the order of the values, in the keywords of each editor."""
    (choices, _expression, _null) = task["properties"]["on_change"]["anyOf"]
    assert choices["enum"] == ["hold", "restart", "after-finish"]
    assert choices["enumDescriptions"][2] == "Re-run it after it has ended."
    assert choices["markdownEnumDescriptions"] == choices["enumDescriptions"]
    assert set(choices["x-intellij-enum-metadata"]) == set(choices["enum"])


def test_a_missed_pattern_names_examples(task):
    """Nobody is shown a regular expression."""
    texts = [one for one in task["properties"]["max_duration"]["anyOf"] if "pattern" in one]
    assert texts
    assert all("Write for example `2h`" in one["patternErrorMessage"] for one in texts)


def test_expressions_stand_where_runs_may_have_them(task):
    """In a run's numbers and choices; never in what makes elements, and in no fleet."""
    expression = {"type": "string", "pattern": EXPRESSION_PATTERN}

    def allows(schema):
        return any(expression.items() <= one.items() for one in schema.get("anyOf", [schema]))

    assert allows(task["properties"]["priority"])
    assert allows(task["properties"]["on_change"])
    assert not allows(task["properties"]["array"])
    assert not allows(kind_schema("fleet")["properties"]["sharing"])


def test_a_part_is_kept_once_for_all_kinds_that_say_the_same():
    """Names are the classes' where that is enough to tell parts apart."""
    definitions = Definitions()
    annotated("task", definitions)
    before = dict(definitions.schemas)
    annotated("task", definitions)
    assert definitions.schemas == before
    assert "Retry" in before


def test_parts_that_differ_by_place_are_kept_apart():
    """The same class is another part where a change of it does something else."""
    definitions = Definitions()
    retry = type("Retry", (), {})
    assert definitions.add("task", "retry", retry, {"x": 1}) == "Retry"
    assert definitions.add("task", "again", retry, {"x": 1}) == "Retry"
    assert definitions.add("fleet", "retry", retry, {"x": 2}) == "fleet.Retry"
    assert definitions.add("fleet", "other", retry, {"x": 3}) == "fleet.other.Retry"


def test_every_reference_leads_somewhere():
    """In the file of all kinds, where the parts of all of them stand together."""
    whole = any_schema()

    def references(value):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    named = {reference.removeprefix("#/$defs/") for reference in references(whole)}
    assert named <= set(whole["$defs"])
