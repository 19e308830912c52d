"""Merging is RFC 7386's, but for variables, and keeps the places of values."""

from __future__ import annotations

import pytest
from hypothesis import given

from fleetform.spec.nodes import lookup, plain
from fleetform.spec.overlay.documents import foreign
from fleetform.spec.overlay.merge import merge, merge_document
from unit.spec.overlay.nodes import MAPPINGS, VALUES, from_value, mapping, node


def by_the_standard(target, patch):
    """Section 2, on plain values."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = by_the_standard(target.get(name), value)
    return target


# Appendix A.
EXAMPLES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), EXAMPLES)
def test_the_examples_of_the_standard(target, patch, expected):
    """Each comes to what the standard says."""
    assert plain(merge(from_value(target), from_value(patch))) == expected


@given(VALUES, VALUES)
def test_any_values_are_merged_as_the_standard_says(target, patch):
    """Not only those of its examples."""
    merged = merge(from_value(target), from_value(patch))
    assert plain(merged) == by_the_standard(target, patch)


@given(MAPPINGS, MAPPINGS)
def test_documents_without_variables_are_merged_alike(target, patch):
    """The exception is for `env` alone."""
    merged = merge_document(from_value(target), from_value(patch))
    assert plain(merged) == by_the_standard(target, patch)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ("[A=1, B=2]", "[B=3]", {"A": "1", "B": "3"}),
        ("[A=1, B=2]", "{B: 3}", {"A": "1", "B": 3}),
        ("{A: 1, B: 2}", "[B=3, C=x=y]", {"A": 1, "B": "3", "C": "x=y"}),
        ("{A: 1, B: 2}", "{B: null}", {"A": 1}),
        ("[A=1, B=2]", "{A: null}", {"B": "2"}),
        ("[A=1, TOKEN]", "[B=2]", ["A=1", "TOKEN", "B=2"]),
        ("{A: 1}", "[TOKEN]", ["A=1", "TOKEN"]),
        ("[TOKEN]", "[TOKEN=x]", {"TOKEN": "x"}),
        # What is no set of variables is a value like any other, and its model says what is wrong.
        ("[A=1, 2]", "[B=2]", ["B=2"]),
        ("[A=1, A=2]", "[B=2]", ["B=2"]),
        ("text", "{B: 2}", {"B": 2}),
    ],
)
def test_variables_are_merged_by_name(target, patch, expected):
    """However the two sides spell them."""
    merged = merge_document(mapping(f"env: {target}"), mapping(f"env: {patch}"))
    assert plain(merged) == {"env": expected}


def test_a_value_keeps_the_place_where_it_was_written():
    """Of each in the file that it stands in, and of the key where the value has none."""
    document = mapping("type: task\nresources:\n  cpu: 2\n  gpu: 1\nvolumes: [a:/a]\nenv: [A=1]\n")
    patch = foreign(node("resources: {gpu: 2}\nvolumes:\n  - b:/b\nenv: [B=2]\n"), "patch.yaml")
    merged = merge_document(document, patch)

    def at(*path, of="value"):
        place = lookup(merged, path, file="tree.yaml", of=of)
        return place.file, place.line, place.column

    assert at("resources", "cpu") == ("tree.yaml", 3, 8)
    assert at("resources", "gpu") == ("patch.yaml", 1, 18)
    assert at("resources") == ("tree.yaml", 2, 1)
    assert at("volumes") == ("patch.yaml", 2, 1)
    assert at("volumes", 0) == ("patch.yaml", 3, 5)
    assert at("env", "A") == ("tree.yaml", 6, 7)
    assert at("env", "B") == ("patch.yaml", 4, 7)
