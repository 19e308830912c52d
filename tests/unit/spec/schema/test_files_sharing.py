from __future__ import annotations

import json
from typing import Any

import pytest

from fleetform.spec.schema import ALL_KINDS, generate
from fleetform.spec.schema.draft07 import for_editors, to_draft07
from fleetform.spec.schema.files import EDITORS, any_schema, shared

LONG = {"type": "string", "description": "Words for people. " * 10}
OTHER = {"type": "integer", "description": "Words for people. " * 10}


def unfolded(schema: Any, whole: dict[str, Any], keyword: str) -> Any:
    """The schema with what they refer to in place of all references, and without definitions."""
    if isinstance(schema, list):
        return [unfolded(one, whole, keyword) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if set(schema) == {"$ref"}:
        name = schema["$ref"].removeprefix(f"#/{keyword}/")
        return unfolded(whole[keyword][name], whole, keyword)
    return {key: unfolded(value, whole, keyword) for key, value in schema.items() if key != keyword}


def test_equal_properties_stand_once():
    """Below one object or several; what is short or stands once stays where it is."""
    whole = {
        "properties": {
            "tags": LONG,
            "image": {"properties": {"tags": LONG, "once": OTHER, "short": {"type": "string"}}},
        }
    }
    reference = {"$ref": "#/$defs/tags"}
    assert shared(whole, "$defs") == {
        "properties": {
            "tags": reference,
            "image": {
                "properties": {"tags": reference, "once": OTHER, "short": {"type": "string"}}
            },
        },
        "$defs": {"tags": LONG},
    }


def test_properties_of_one_name_that_differ_are_kept_apart():
    """The second of a name has a number."""
    parts = [{"properties": {"size": one}} for one in (LONG, OTHER, LONG, OTHER)]
    assert shared({"anyOf": parts}, "definitions")["definitions"] == {
        "size": LONG,
        "size.2": OTHER,
    }


def test_what_stands_only_in_equal_properties_stays_in_them():
    """They are one, so there is nothing to share below them."""
    outer = {"properties": {"inner": LONG}}
    whole = {"anyOf": [{"properties": {"outer": outer}}, {"properties": {"outer": outer}}]}
    assert shared(whole, "$defs")["$defs"] == {"outer": outer}


def test_a_value_that_looks_like_a_schema_is_none():
    """What a snippet inserts has fields of its own."""
    body = {"properties": {"tags": LONG, "more": {"properties": {"tags": LONG}}}}
    whole = {"defaultSnippets": [{"body": body}], "examples": [body]}
    assert shared(whole, "$defs") == whole


@pytest.mark.parametrize(
    ("write", "keyword"),
    # Written in the test: each worker of a run imports this module, and one runs the test.
    [(any_schema, "$defs"), (lambda: for_editors(to_draft07(any_schema())), "definitions")],
    ids=["2020-12", "draft-07"],
)
def test_the_schema_of_any_document_says_the_same(write, keyword):
    """An editor that follows references has before it what it had without them, word by word."""
    schema = write()
    short = shared(schema, keyword)
    assert unfolded(short, short, keyword) == unfolded(schema, schema, keyword)


@pytest.mark.parametrize("name", [ALL_KINDS, f"{EDITORS}/{ALL_KINDS}", "task.json"])
def test_no_definition_is_left_over(name):
    """Each is referred to."""
    text = generate()[name]
    whole = json.loads(text)
    keyword = "$defs" if "$defs" in whole else "definitions"
    for definition in whole[keyword]:
        assert json.dumps(f"#/{keyword}/{definition}") in text
