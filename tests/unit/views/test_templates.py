"""The text that many elements' values were made from: found where there is one, and proved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec import interpolate
from fleetform.views.templates import Sample, families, reproduces


def scope(**matrix: Any) -> interpolate.Scope:
    return {"matrix": matrix, "run": {"name": "s"}, "env": {}}


def samples(values: Mapping[Any, Any]) -> list[Sample]:
    """One element a learning rate, with nothing before."""
    return [Sample(None, value, scope(lr=lr), scope(lr=lr)) for lr, value in values.items()]


CASES = [
    ({1: "a1", 2: "a2", 3: "a3"}, "a${{ matrix.lr }}"),
    # What all have is text, also where it is the parameter of one of them.
    ({1: "1 of 1", 2: "1 of 2", 3: "1 of 3"}, "1 of ${{ matrix.lr }}"),
    ({1: "x1", 11: "x11", 111: "x111"}, "x${{ matrix.lr }}"),
    ({1: "111", 2: "112", 3: "113"}, "11${{ matrix.lr }}"),
    ({0.1: "--lr 0.1", 1e-05: "--lr 1e-05"}, "--lr ${{ matrix.lr }}"),
    ({"": "run  now", "--fast": "run --fast now"}, "run ${{ matrix.lr }} now"),
    # A secret is named as it stands in the document, and what only looks like one of ours is escaped.
    ({1: "${{ secrets.a }} 1", 2: "${{ secrets.a }} 2"}, "${{ secrets.a }} ${{ matrix.lr }}"),
    ({1: "${{ matrix.lr }} 1", 2: "${{ matrix.lr }} 2"}, "$${{ matrix.lr }} ${{ matrix.lr }}"),
    ({1: ["a", {"b": "1"}], 2: ["a", {"b": "2"}]}, ["a", {"b": "${{ matrix.lr }}"}]),
    ({1: 1, 2: 2}, "${{ matrix.lr }}"),
]


@pytest.mark.parametrize(("values", "template"), CASES)
def test_the_template_of_one_parameter(values: Mapping[Any, Any], template: Any) -> None:
    """Where one text gives every value, that is what is found."""
    (found,) = families(samples(values), members_min=2)
    assert found.after == template
    assert len(found.members) == len(values)


NO_TEMPLATE = [
    {1: "a", 2: "b", 3: "c"},
    # Another spelling is another value to whoever runs it.
    {0.1: "1e-1", 0.2: "2e-1"},
    {0.1: "0.10", 0.2: "0.20", 0.30000000000000004: "0.3"},
    # Memory is declared in gigabytes and compared in bytes.
    {1: 1 << 30, 2: 2 << 30},
    {1: True, 0: False},
    {1: "1", 2: 2},
]


@pytest.mark.parametrize("values", NO_TEMPLATE)
def test_what_has_no_template(values: Mapping[Any, Any]) -> None:
    """Values that no text gives are left to be shown one by one."""
    covered = list(families(samples(values), members_min=2))
    assert all(len(found.members) < len(values) for found in covered)


def test_one_patched_element_is_apart() -> None:
    """A value that was slipped in among a thousand is not among those of the template."""
    values: dict[Any, str] = {lr: f"train --lr {lr}" for lr in range(1000)}
    values[500] = "rm -rf /; train --lr 500"
    (found,) = families(samples(values), members_min=4)
    assert found.after == "train --lr ${{ matrix.lr }}"
    assert set(range(1000)) - set(found.members) == {500}


@pytest.mark.parametrize("patched", [0, 333, 666, 999])
def test_the_first_that_is_tried_may_be_the_patched_one(patched: int) -> None:
    """No place in the sweep hides the template of the others."""
    values: dict[Any, str] = {lr: f"train --lr {lr}" for lr in range(1000)}
    values[patched] = "something else"
    (found,) = families(samples(values), members_min=4)
    assert len(found.members) == 999


def test_one_text_for_both_sides_says_that_only_parameters_changed() -> None:
    """Elements that take the place of others have another value from the same text."""
    pairs = [
        Sample(
            f"--lr 0.1 -b {batch}",
            f"--lr 0.2 -b {batch}",
            scope(lr=0.1, batch=batch),
            scope(lr=0.2, batch=batch),
        )
        for batch in range(6)
    ]
    (found,) = families(pairs, members_min=4)
    assert found.before == found.after == "--lr ${{ matrix.lr }} -b ${{ matrix.batch }}"


def test_a_search_that_would_take_for_ever_ends() -> None:
    """Texts made of nothing but a parameter's characters are given up, and shown as they are."""
    many = [
        Sample(None, "1" * 4000 + end, {}, scope(a="1", b="11", c="111", d=d))
        for d, end in (("1", "x"), ("11", "y"), ("111", "z"), ("1111", "x"))
    ]
    assert list(families(many, members_min=4)) == []


WORDS = st.sampled_from(
    ["1", "16", "0.1", "a", "$", "{", "}}", "${{ ", "${{ matrix.lr }}", " ", "\n", "$$"]
)
REFERENCES = st.sampled_from(["${{ matrix.lr }}", "${{ matrix.batch }}", "${{ run.name }}"])
PARAMETERS = st.sampled_from([1, 16, 11, 0.1, 1e-05, "", "a", "a1", True, "${{ matrix.lr }}"])


@given(
    st.lists(REFERENCES | WORDS.map(lambda word: word.replace("${{", "$${{")), max_size=6),
    st.lists(st.tuples(PARAMETERS, PARAMETERS), min_size=2, max_size=8),
    st.dictionaries(st.integers(0, 7), st.text(alphabet="a1$", max_size=3), max_size=2),
)
def test_every_template_gives_exactly_the_values(
    parts: list[str], parameters: list[tuple[Any, Any]], patched: Mapping[int, str]
) -> None:
    """Whatever was guessed: a family's members have the value that its template renders to."""
    compiled = interpolate.compile_text("".join(parts))
    known: list[Sample] = []
    for place, (lr, batch) in enumerate(parameters):
        named = {**scope(lr=lr, batch=batch), "run": {"name": f"s[{place}]"}}
        try:
            value = interpolate.render(compiled, named)
        except KeyError:
            value = "".join(parts)
        known.append(Sample(None, patched.get(place, value), named, named))
    for found in families(known, members_min=2):
        for place in found.members:
            assert reproduces(found.after, known[place].after, known[place].scope_after)
            if isinstance(found.after, str):
                written = interpolate.compile_text(found.after)
                assert interpolate.render(written, known[place].scope_after) == known[place].after
