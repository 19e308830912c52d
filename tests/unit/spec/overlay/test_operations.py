"""Steps are those of RFC 6902, all or none, and leave values where they were written."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.nodes import lookup, plain
from fleetform.spec.overlay.documents import foreign
from fleetform.spec.overlay.operations import apply, parse_operations, written
from unit.spec.overlay.nodes import KEYS, MAPPINGS, VALUES, from_value, node


class Inapplicable(Exception):
    """The standard's way makes an error of it."""


def resolve(document, steps):
    for step in steps:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif (
            isinstance(document, list)
            and step.isdigit()
            and str(int(step)) == step
            and int(step) < len(document)
        ):
            document = document[int(step)]
        else:
            raise Inapplicable
    return document


def strictly_equal(one, other):
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(strictly_equal(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(strictly_equal, one, other))
    return one == other


def steps_of(pointer):
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def by_the_standard(document, operations):
    """Section 4, in place on a copy of plain values."""
    whole = {"": copy.deepcopy(document)}

    def add(steps, value):
        parent = resolve(whole, steps[:-1])
        last = steps[-1]
        if isinstance(parent, dict):
            parent[last] = value
        elif isinstance(parent, list) and last == "-":
            parent.append(value)
        elif (
            isinstance(parent, list)
            and last.isdigit()
            and str(int(last)) == last
            and int(last) <= len(parent)
        ):
            parent.insert(int(last), value)
        else:
            raise Inapplicable

    def remove(steps):
        if len(steps) == 1:
            raise Inapplicable
        value, parent = resolve(whole, steps), resolve(whole, steps[:-1])
        parent.pop(int(steps[-1]) if isinstance(parent, list) else steps[-1])
        return value

    for one in operations:
        path = ["", *steps_of(one["path"])]
        source = ["", *steps_of(one["from"])] if "from" in one else []
        if one["op"] == "add":
            add(path, copy.deepcopy(one["value"]))
        elif one["op"] == "remove":
            remove(path)
        elif one["op"] == "replace":
            resolve(whole, path)
            if len(path) > 1:
                parent = resolve(whole, path[:-1])
                parent[int(path[-1]) if isinstance(parent, list) else path[-1]] = one["value"]
            else:
                whole[""] = one["value"]
        elif one["op"] == "move":
            if path[: len(source)] == source and len(path) > len(source):
                raise Inapplicable
            add(path, remove(source))
        elif one["op"] == "copy":
            add(path, copy.deepcopy(resolve(whole, source)))
        elif not strictly_equal(resolve(whole, path), one["value"]):
            raise Inapplicable
    return whole[""]


def carried_out(document, operations):
    """What we make of it; None where a step does not fit."""
    parsed, problems = parse_operations(from_value(operations))
    assert problems == []
    changed, problem = apply(from_value(document), parsed)
    return (plain(changed), None) if problem is None else (None, problem)


# Appendix A, but for what is no patch at all.
EXAMPLES = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}], {"foo": ["bar", "qux", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo", "foo": "bar"}),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    ({"foo": ["all", "grass", "cows", "eat"]}, [{"op": "move", "from": "/foo/1", "path": "/foo/3"}], {"foo": ["all", "cows", "eat", "grass"]}),
    ({"baz": "qux", "foo": ["a", 2, "c"]}, [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}], {"baz": "qux", "foo": ["a", 2, "c"]}),
    ({"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "bar"}], None),
    ({"foo": "bar"}, [{"op": "add", "path": "/child", "value": {"grandchild": {}}}], {"foo": "bar", "child": {"grandchild": {}}}),
    ({"foo": "bar"}, [{"op": "add", "path": "/baz/bat", "value": "qux"}], None),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": "10"}], None),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}], {"foo": ["bar", ["abc", "def"]]}),
]  # fmt: skip


@pytest.mark.parametrize(("document", "operations", "expected"), EXAMPLES)
def test_the_examples_of_the_standard(document, operations, expected):
    """Each comes to what the standard says."""
    assert carried_out(document, operations)[0] == expected


pointers = st.lists(KEYS | st.sampled_from(["0", "1", "2"]), max_size=3).map(tuple).map(written)
operations = st.lists(
    st.one_of(
        st.fixed_dictionaries({"op": st.sampled_from(["add", "replace", "test"]), "path": pointers, "value": VALUES}),
        st.fixed_dictionaries({"op": st.just("remove"), "path": pointers}),
        st.fixed_dictionaries({"op": st.sampled_from(["move", "copy"]), "path": pointers, "from": pointers}),
    ),
    max_size=4,
)  # fmt: skip


@given(MAPPINGS, operations)
def test_any_steps_are_carried_out_as_the_standard_says(document, steps):
    """What it makes an error of is one, and all else comes to the same."""
    found, problem = carried_out(document, steps)
    try:
        expected = by_the_standard(document, steps)
    except Inapplicable:
        assert problem is not None
        assert problem.code == "patch-failed"
    else:
        # As text: to Python 1 is True.
        assert problem is None, problem
        assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)


def test_all_or_nothing():
    """A document that one step does not fit is as it was."""
    document = node("nodes: 1")
    steps, _ = parse_operations(
        node("[{op: replace, path: /nodes, value: 2}, {op: remove, path: /node}]")
    )
    left, problem = apply(document, steps)
    assert left is document
    assert problem is not None
    assert problem.path == (1, "path")
    assert problem.advice == "Did you mean `/nodes`?"


def test_values_keep_the_place_where_they_were_written():
    """What is added is the patch's, what is moved still that of where it was."""
    document = node("a: 1\nb: [x, y]\n")
    patch = foreign(
        node("- {op: add, path: /c, value: {d: 2}}\n- {op: move, from: /b/1, path: /e}\n"), "p.yaml"
    )
    steps, _ = parse_operations(patch)
    changed, _ = apply(document, steps)

    def at(*path, of="value"):
        place = lookup(changed, path, file="tree.yaml", of=of)
        return place.file, place.line, place.column

    assert at("a") == ("tree.yaml", 1, 4)
    assert at("c", "d") == ("p.yaml", 1, 34)
    assert at("c", of="key") == ("p.yaml", 1, 19)
    assert at("e") == ("tree.yaml", 2, 8)
    assert at("e", of="key") == ("p.yaml", 2, 32)


@pytest.mark.parametrize(
    ("patch", "path", "said"),
    [
        ("{op: add}", (), "A patch is a list of steps."),
        ("[add]", (0,), "A step of a patch is a mapping."),
        ("[{path: /a}]", (0, "op"), "has no `op`"),
        ("[{op: repalce, path: /a}]", (0, "op"), "is not an operation of a patch."),
        ("[{op: add, path: /a}]", (0,), "`add` needs `value:`."),
        ("[{op: move, path: /a}]", (0,), "`move` needs `from:`."),
        ("[{op: remove, path: /a, value: 1}]", (0, "value"), "`remove` has no field `value`."),
        ("[{op: remove, path: a.b}]", (0, "path"), "begins with `/`"),
        ("[{op: remove, path: 1}]", (0, "path"), "is a pointer"),
        ("[{op: copy, from: b, path: /a}]", (0, "from"), "begins with `/`"),
    ],
)
def test_what_is_no_step_says_why(patch, path, said):
    """At its place in the patch."""
    _, (problem, *_) = parse_operations(node(patch))
    assert problem.code == "bad-patch"
    assert problem.path == path
    assert said in problem.detail


def test_copies_of_copies_have_an_end():
    """Forty doublings are a terabyte, and are refused before it is there."""
    steps = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(40)]
    _, problem = carried_out({"a": [1]}, steps)
    assert problem is not None
    assert "more than 400000 values" in problem.detail


def test_depth_has_an_end():
    """What is too deep for a file is too deep for a patch."""
    steps = [{"op": "copy", "from": "", "path": "/a"} for _ in range(100)]
    _, problem = carried_out({"a": 1}, steps)
    assert problem is not None
    assert "64 levels" in problem.detail
