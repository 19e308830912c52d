"""Names, elements and addresses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.names import (
    NAME,
    Address,
    element_name,
    indexed_name,
    name_problem,
    nearest,
    parameter_value,
    parse_address,
    scalar_text,
    split_element,
)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "empty"),
        ("a", "at least two"),
        ("a" * 42, "the most is 41"),
        ("train\n", "newline"),
        (" train", "space"),
        ("Train_Model", "`train-model` would do"),
        ("9lives", "begins with `9`"),
        ("my run", "a space"),
        ("café", "`é`"),
        ("a\x00b", "U+0000"),
        (7, "a number"),
        (None, "nothing"),
        (True, "is a boolean;"),
        ([], "a list"),
    ],
)
def test_a_wrong_name_is_explained(name: object, said: str):
    """The sentence says what is wrong, and what would do where that is plain."""
    problem = name_problem(name)
    assert problem is not None
    assert said in problem
    assert problem.endswith(".")
    assert "\n" not in problem


def test_a_newline_at_the_end_is_no_name():
    """dstack takes `train` and a newline for a name; here the whole text has to match."""
    assert name_problem("train\n") is not None


def test_elements_are_named_by_canonical_values():
    """However a value is spelled and in whatever order, it is the same element."""
    assert element_name("sweep", {"lr": 0.10, "batch": 32}) == "sweep[batch=32,lr=0.1]"
    assert element_name("sweep", {"batch": 32, "lr": 1e-1}) == "sweep[batch=32,lr=0.1]"
    assert indexed_name("array", 3) == "array[3]"


def test_odd_values_are_quoted():
    """Text with any other character is quoted, so that no two elements share a name."""
    assert element_name("s", {"a": "x,b=1"}) == 's[a="x,b=1"]'
    assert element_name("s", {"a": ""}) == 's[a=""]'
    assert element_name("s", {"a": 'say "hi"]'}) == r's[a="say \"hi\"]"]'
    assert element_name("s", {"a": "\x1b[31m"}) == r's[a="\u001b[31m"]'
    assert element_name("s", {"a": "東京"}) == 's[a="東京"]'
    assert element_name("s", {"a": True, "b": None}) == "s[a=true,b=null]"


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text())
def test_the_spelling_of_a_parameter_means_nothing(value: Any) -> None:
    """A value and its text are one parameter, and what stands for both has the same text."""
    text = scalar_text(value)
    meant = parameter_value(text)
    assert parameter_value(value) == meant
    assert scalar_text(meant) == text
    if not isinstance(value, str):
        assert (type(meant), meant) == (type(value), value)


@pytest.mark.parametrize(
    "text", ["0.10", "1_000", " 1", "+1", "01", "inf", "nan", "True", "1.", ""]
)
def test_what_only_looks_like_a_number_is_text(text: str) -> None:
    """A program that is given it can tell it from the number."""
    assert parameter_value(text) == text
    assert isinstance(parameter_value(text), str)


def test_only_scalars_are_parameters():
    """A list has no canonical text; whoever asks for one has a bug."""
    with pytest.raises(TypeError, match="a list"):
        scalar_text([1])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("train", Address("", "train")),
        ("run/train", Address("run", "train")),
        ("array[3]", Address("", "array", indices=((3, 3),))),
        ("run/array[3-17,20]", Address("run", "array", indices=((3, 17), (20, 20)))),
        ("sweep[lr=0.1]", Address("", "sweep", params=(("lr", "0.1"),))),
        ("sweep[lr=0.1|0.2]", Address("", "sweep", params=(("lr", "0.1"), ("lr", "0.2")))),
        ('sweep[lr=0.1,data="a/b"]', Address("", "sweep", (("data", "a/b"), ("lr", "0.1")))),
    ],
)
def test_addresses_are_read(text: str, address: Address):
    """An address is a name, with its kind or an element if wanted, and is written as it is read."""
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("/train", "no kind"),
        ("Run/train", "no kind"),
        ("run/", "empty"),
        ("run/Train", "begins with"),
        ("sweep[", "bracket"),
        ("sweep[]", "bracket"),
        ("sweep[lr]", "neither"),
        ("sweep[lr=]", "no value"),
        ("sweep[lr=a b]", "comma"),
        ("sweep[lr=1,]", "neither"),
        ("sweep[lr=1,lr=2]", "twice"),
        ("array[9-3]", "`3-9`"),
        ('sweep[a="\\x"]', "JSON"),
    ],
)
def test_a_wrong_address_is_explained(text: str, said: str):
    """The sentence says which part is wrong."""
    with pytest.raises(ValueError) as caught:
        parse_address(text)
    assert said in str(caught.value)


def test_an_address_selects():
    """A document's name means all of its elements, a parameter all elements that have it."""
    assert parse_address("sweep").selects("run", "sweep[lr=0.1]")
    assert not parse_address("fleet/sweep").selects("run", "sweep")
    assert parse_address("sweep[lr=0.10]").selects("run", "sweep[batch=32,lr=0.1]")
    assert parse_address("sweep[lr=1e-1,batch=32]").selects("run", "sweep[batch=32,lr=0.1]")
    assert not parse_address("sweep[lr=0.2]").selects("run", "sweep[batch=32,lr=0.1]")
    assert parse_address("sweep[lr=0.2|0.10]").selects("run", "sweep[batch=32,lr=0.1]")
    assert not parse_address("sweep[batch=8|16,lr=0.1]").selects("run", "sweep[batch=32,lr=0.1]")
    assert not parse_address("sweep[lr=0.1]").selects("run", "sweep")
    assert parse_address("array[3-17]").selects("run", "array[10]")
    assert not parse_address("array[3-17]").selects("run", "array[18]")
    assert not parse_address("array[3]").selects("run", "array[lr=3]")


params = st.dictionaries(
    st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True),
    st.text(max_size=12) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none(),
    min_size=1,
    max_size=4,
)  # fmt: skip


@given(params)
def test_an_element_is_found_by_its_own_name(given_params: dict[str, Any]):
    """Whatever its values, an element's name is an address that selects it and has its values."""
    name = element_name("sweep", given_params)
    assert name.isprintable()
    address = parse_address(name)
    assert address.selects("run", name)
    assert dict(address.params) == {key: scalar_text(value) for key, value in given_params.items()}
    assert split_element(name) == ("sweep", name[len("sweep[") : -1])


@given(params, params)
def test_other_values_have_other_names(first: dict[str, Any], second: dict[str, Any]):
    """Two elements share a name only if all of their values have the same text."""

    def texts(values: dict[str, Any]) -> dict[str, str]:
        return {key: scalar_text(value) for key, value in values.items()}

    same = element_name("s", first) == element_name("s", second)
    assert same == (texts(first) == texts(second))


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_explained(text: str):
    """Names, addresses and slips never fail in another way than by a sentence."""
    problem = name_problem(text)
    assert (problem is None) == bool(NAME.fullmatch(text))
    nearest(text, ["train", "max_duration"])
    try:
        parse_address(text)
    except ValueError:
        assert problem is not None


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("comands", "commands"),
        ("maxDuration", "max_duration"),
        ("max-duration", "max_duration"),
        ("RESOURCES", "resources"),
        ("resorces", "resources"),
        ("xyzzy", None),
        ("c" * 10_000, None),
        ("", None),
    ],
)
def test_the_nearest_word_is_proposed(word: str, meant: str | None):
    """A slip leads to the field that was meant, a strange word to none."""
    assert nearest(word, ["commands", "max_duration", "resources", "env"]) == meant


def test_the_nearest_word_does_not_depend_on_order():
    """The same proposal is made whatever the order of the candidates."""
    assert nearest("tran", ["train", "trans"]) == nearest("tran", ["trans", "train"])


def test_letters_in_the_wrong_order_are_likelier_than_another_letter():
    """`us-esat-1` differs from `us-west-1` in fewer places than from the region that is meant."""
    assert nearest("us-esat-1", ["us-east-1", "us-east-2", "us-west-1"]) == "us-east-1"
