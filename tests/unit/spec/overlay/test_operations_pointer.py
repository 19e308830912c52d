"""Pointers lead where RFC 6901 says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.nodes import plain
from fleetform.spec.overlay.operations import Refusal, follow, parse_pointer, written
from unit.spec.overlay.nodes import node

# Section 5 of the RFC.
EXAMPLE = {
    "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, 'k"l': 6,
    " ": 7, "m~n": 8,
}  # fmt: skip
DOCUMENT = (
    "foo: [bar, baz]\n'': 0\na/b: 1\nc%d: 2\ne^f: 3\ng|h: 4\ni\\j: 5\nk\"l: 6\n' ': 7\nm~n: 8\n"
)


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", EXAMPLE), ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1),
        ("/c%d", 2), ("/e^f", 3), ("/g|h", 4), ("/i\\j", 5), ('/k"l', 6), ("/ ", 7), ("/m~0n", 8),
    ],
)  # fmt: skip
def test_the_examples_of_the_standard(pointer, expected):
    """Each leads to what the standard says."""
    assert plain(follow(node(DOCUMENT), parse_pointer(pointer))) == expected


@given(st.lists(st.text(max_size=4)).map(tuple))
def test_what_is_written_reads_back(steps):
    """Whatever the names are."""
    assert parse_pointer(written(steps)) == steps


@pytest.mark.parametrize(
    ("pointer", "said"),
    [
        ("foo/0", "begins with `/`"),
        ("/a~b", ", a `~` has no digit behind it."),
        ("/foo/2", "no position 2"),
        ("/foo/00", "no position in it"),
        ("/foo/-", "no position in it"),
        ("/foo/x", "no position in it"),
        ("/fo", "no field `fo`"),
        ("/a~1b/c", "a single value"),
    ],
)
def test_what_leads_nowhere_says_why(pointer, said):
    """In a sentence with the part that is wrong."""
    with pytest.raises(Refusal) as refused:
        follow(node(DOCUMENT), parse_pointer(pointer))
    assert said in refused.value.detail


def test_a_slip_is_told_the_right_name():
    """As everywhere else."""
    with pytest.raises(Refusal) as refused:
        follow(node("resources: {gpu: 1}"), parse_pointer("/resources/gpus"))
    assert refused.value.advice == "Did you mean `/resources/gpu`?"
