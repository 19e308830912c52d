"""One spelling for each value, and a digest that stays."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.canonical import VERSION, canonical_json, digest

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(inner) for inner in value] if isinstance(value, list) else value


def test_the_form_is_known():
    """Keys are sorted, nothing is spaced, letters stay letters, floats are the shortest."""
    value = {"b": [1, 1.0, 0.1, True, None], "a": "é\n", "A": {}}
    assert canonical_json(value) == '{"A":{},"a":"é\\n","b":[1,1.0,0.1,true,null]}'


def test_the_digest_is_known():
    """A digest that is in somebody's ledger must never change with a release: it would rerun."""
    assert VERSION == "fleetform-1"
    known = "14b16829e239a4a3936425fcdea88e2109246ea9bde735abe5bbf739f67a72b2"
    assert digest({"commands": ["python train.py --lr 0.1"], "nodes": 2, "é": 0.5}) == known


def test_the_digest_is_the_same_under_any_hash_seed():
    """Two processes with other hash seeds agree."""
    program = (
        "from fleetform.spec.canonical import digest;"
        "print(digest({name: name for name in ('b', 'a', 'c')}))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


@given(values)
def test_order_does_not_count(value: Any):
    """The same fields in another order have the same form."""
    assert canonical_json(reordered(value)) == canonical_json(value)
    assert digest(reordered(value)) == digest(value)


@given(values)
def test_nothing_is_lost(value: Any):
    """The form reads back as the value, types of numbers included."""
    again = json.loads(canonical_json(value))
    assert again == value
    assert canonical_json(again) == canonical_json(value)


def test_one_and_one_point_zero_are_two_values():
    """A program that is given `1.0` can tell it from `1`."""
    assert digest(1) != digest(1.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_is_not_finite_is_a_bug(value: Any):
    """JSON has no such numbers."""
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1: "a"}, [{None: 1}], {"a": {2: 3}}, {"a": b""}, {"a": {1}}])
def test_what_json_does_not_have_is_a_bug(value: Any):
    """A key that is a number would be written like the text, and two values share a digest."""
    with pytest.raises(TypeError):
        canonical_json(value)
