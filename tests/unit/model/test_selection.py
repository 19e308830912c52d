"""Addresses that people give to commands: what they mean, and what is said of those that mean none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.model.selection import Selection, address_problem, also_by_new_name
from fleetform.spec.desired import ResourceKey

THERE = [
    (ResourceKey("fleet", "local"), ""),
    (ResourceKey("run", "train"), ""),
    (ResourceKey("run", "sweep[batch=8,lr=0.1]"), "sweep"),
    (ResourceKey("run", "sweep[batch=8,lr=0.2]"), "sweep"),
    (ResourceKey("run", "array[3]"), "array"),
    (ResourceKey("run", "array[12]"), "array"),
    (ResourceKey("volume", "train"), ""),
]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("train", ["run/train"]),
        ("run/train", ["run/train"]),
        ("volume/train", ["volume/train"]),
        ("sweep", ["run/sweep[batch=8,lr=0.1]", "run/sweep[batch=8,lr=0.2]"]),
        ("sweep[lr=0.10]", ["run/sweep[batch=8,lr=0.1]"]),
        ("sweep[*]", ["run/sweep[batch=8,lr=0.1]", "run/sweep[batch=8,lr=0.2]"]),
        ("run/sweep[*lr=0.2]", ["run/sweep[batch=8,lr=0.2]"]),
        ("array[1-5]", ["run/array[3]"]),
        ("sweep[lr=0.1|0.2]", ["run/sweep[batch=8,lr=0.1]", "run/sweep[batch=8,lr=0.2]"]),
        ("arr*[1-5]", ["run/array[3]"]),
        ("*[lr=0.2]", ["run/sweep[batch=8,lr=0.2]"]),
        ("*/train", ["run/train", "volume/train"]),
        ("fleet/*", ["fleet/local"]),
        ("s*", ["run/sweep[batch=8,lr=0.1]", "run/sweep[batch=8,lr=0.2]"]),
        ("*", [str(key) for key, _ in THERE]),
    ],
)
def test_an_address_means(text, meant):
    """A bare name means a run, a sweep its elements, and a star any text."""
    selection = Selection([text])
    assert address_problem(text) == ""
    assert [str(key) for key, parent in THERE if selection.selects(key, parent)] == meant


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("trian", "run/train"),
        ("local", "fleet/local"),
        ("run/sweeep[*]", "run/sweep"),
        ("gpu-cluster", ""),
        ("run/gpu", ""),
        ("flet/locl", ""),
        ("fleet/locl", "fleet/local"),
        ("flet/local", "fleet/local"),
        ("task/train", "run/train"),
        ("volume/trian", "volume/train"),
    ],
)
def test_what_means_nothing_is_told_with_a_suggestion(text, suggestion):
    """A plan of something else than was meant would be worse than none."""
    assert Selection([text, "train"]).idle([key for key, _ in THERE]) == [(text, suggestion)]


_TEXTS = st.sampled_from([
    "train", "tra", "run/train", "volume/*", "*/train", "*", "t*n", "*n", "sweep", "sweep[*]",
    "sweep[lr=0.1]", "run/sweep[*2]", "array[1-5]", "array", "run/sweep[batch=8,lr=0.10]", "a*", "fl*",
])  # fmt: skip


@given(texts=st.lists(_TEXTS, max_size=3), keys=st.permutations([key for key, _ in THERE]))
def test_many_keys_are_chosen_as_each_is_selected(texts, keys):
    """By a look at how a name begins, and with no other answer than by asking for each."""
    selection = Selection(texts)
    assert selection.chosen(keys) == [key for key in keys if selection.selects(key, key.parent)]
    assert [text for text, _ in selection.idle(keys)] == [
        text
        for text in texts
        if not any(Selection([text]).selects(key, key.parent) for key in keys)
    ]


@pytest.mark.parametrize("text", ["Train", "run/", "", "train[", "run/*/", "/train*"])
def test_what_is_no_address_is_said_to_be_none(text):
    """Before anything is planned, in a sentence."""
    assert address_problem(text) or text == "run/*/"


MOVED = [
    (ResourceKey("run", "old"), ResourceKey("run", "mid")),
    (ResourceKey("run", "mid"), ResourceKey("run", "new")),
    (ResourceKey("run", "s"), ResourceKey("run", "t")),
    (ResourceKey("fleet", "a"), ResourceKey("fleet", "b")),
]


@pytest.mark.parametrize(
    ("text", "also"),
    [
        ("old", ["run/mid", "run/new"]),
        ("run/mid", ["run/new"]),
        ("new", []),
        ("s", ["run/t"]),
        ("s[lr=0.1]", ["run/t[lr=0.1]"]),
        ("a", []),
        ("fleet/*", ["fleet/b"]),
    ],
)
def test_an_earlier_name_means_the_thing(text, also):
    """However often it was renamed, and whether it is renamed by this plan or was long ago."""
    assert also_by_new_name([text], MOVED) == (text, *also)
