from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import partial
from typing import Any, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec import dataclass as ours

Decorator = Callable[..., Callable[[type], type]]
T = TypeVar("T")


@ours.dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    """Two of a kind."""

    left: T
    right: T | None = None

    @property
    def both(self) -> tuple[T, T | None]:
        return self.left, self.right


@ours.dataclass
class Tally:
    counts: dict[str, int] = field(default_factory=dict)
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(self.counts.values())


@st.composite
def shapes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a class says of its fields, and the options that it is made with."""
    body: dict[str, Any] = {"__annotations__": {}}
    has_default = False
    for name in draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)):
        body["__annotations__"][name] = "int"
        has_default = has_default or draw(st.booleans())
        said: dict[str, Any] = {
            "repr": draw(st.booleans()),
            "compare": draw(st.booleans()),
            "hash": draw(st.sampled_from([None, True, False])),
            "init": draw(st.integers(0, 4)) > 0,
        }
        if has_default:
            given = draw(st.sampled_from([{"default": 3}, {"default_factory": lambda: 3}]))
            said |= given
        body[name] = field(**said)
    options = {name: draw(st.booleans()) for name in ("frozen", "slots", "order")}
    return body, options


def both(shape: tuple[dict[str, Any], dict[str, Any]]) -> tuple[type, type]:
    """The class made by the standard library and by the house."""
    body, options = shape

    def made(decorator: Decorator) -> type:
        again = {
            name: copy.copy(one) if isinstance(one, dataclasses.Field) else one
            for name, one in body.items()
        }
        return decorator(**options)(type("Shape", (), {**again, "__module__": __name__}))

    return made(dataclasses.dataclass), made(ours.dataclass)


def outcome(ask: Callable[[], Any]) -> object:
    """What a question comes to: its answer, or the error and its words."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 -- which one is what is compared
        return type(error), str(error)


def said_of(cls: type, values: list[int], others: list[int]) -> list[object]:
    """All that people ask of a class and its values."""
    one = outcome(lambda: cls(*values))
    said: list[object] = [
        cls.__match_args__,
        [(each.name, each.default, each.init) for each in fields(cls)],
        cls.__hash__ is None,
        hasattr(cls, "__slots__"),
    ]
    if isinstance(one, tuple):
        return [*said, one]
    other = outcome(lambda: cls(*others))
    names = [each.name for each in fields(cls)]
    said += [
        repr(one) if all(hasattr(one, name) for name in names) else "",
        outcome(lambda: one == other),
        outcome(lambda: one == 3),
        outcome(lambda: one < other),
        outcome(lambda: one >= other),
        outcome(lambda: (hash(one) == hash(other)) if one == other else None),
        outcome(lambda: asdict(one)),
        outcome(lambda: asdict(replace(one))),
        outcome(lambda: asdict(copy.deepcopy(one))),
        outcome(lambda: copy.copy(one) == one),
    ]
    for name in "a", "other":
        is_field = name in names
        for change in partial(setattr, one, name, 5), partial(delattr, one, name):
            # With slots, the standard library's stumbles over what is no field.
            found = outcome(change)
            said += [found if is_field else found is None, outcome(lambda: asdict(one))]
    return said


@given(
    shapes(),
    st.lists(st.integers(0, 2), max_size=7),
    st.lists(st.integers(0, 2), max_size=7),
)
def test_it_is_what_the_standard_library_makes(shape, values, others):
    """Whatever is asked of a class or a value, both give the same answer, errors included."""
    theirs, mine = both(shape)
    assert said_of(mine, values, others) == said_of(theirs, values, others)


def test_nothing_is_compiled_before_the_first_value():
    """That is what it is for: importing a class compiles no text."""
    probe = (
        "import sys\n"
        "from fleetform.spec.dataclass import dataclass\n"
        "compiled = []\n"
        "sys.addaudithook(lambda event, given: event == 'compile' and compiled.append(given))\n"
        "@dataclass(frozen=True, slots=True, order=True)\n"
        "class Point:\n"
        "    x: int\n"
        "print(len(compiled))\n"
        "print(Point(1), Point(2) > Point(1), len(compiled))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines() == ["0", "Point(x=1) True 1"]


def test_a_value_goes_through_pickle():
    """The language server sends values between its processes."""
    pair = Pair("a", "b")
    again = pickle.loads(pickle.dumps(pair, pickle.HIGHEST_PROTOCOL))
    assert (again, again.both) == (pair, ("a", "b"))


def test_each_value_has_a_default_of_its_own():
    """Two values share nothing that one of them may change."""
    one, two = Tally(), Tally({"b": 2})
    one.counts["a"] = 1
    assert (one.counts, one.total, two.counts, two.total) == ({"a": 1}, 0, {"b": 2}, 2)


def test_a_class_keeps_what_it_says_itself():
    """Methods and words that stand in the class are the class's."""

    @ours.dataclass(frozen=True)
    class Name:
        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Name) and self.text.lower() == other.text.lower()

        def __hash__(self) -> int:
            return hash(self.text.lower())

        def __repr__(self) -> str:
            return self.text

    assert {Name("A"): 1}[Name("a")] == 1
    assert (repr(Name("A")), Name.__doc__, Pair.__doc__) == ("A", None, "Two of a kind.")


def test_a_class_below_may_have_attributes_of_its_own():
    """What is frozen are the fields: a class that is no data class adds what it wants."""

    @ours.dataclass(frozen=True)
    class Fixed:
        x: int

    class Noted(Fixed):
        pass

    noted = Noted(1)
    noted.note = "seen"
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        noted.x = 2
    assert (noted.x, noted.note, noted == Fixed(1)) == (1, "seen", False)


def test_fields_are_inherited():
    """A data class below another has its fields first."""

    @ours.dataclass(slots=True)
    class Base:
        x: int

    @ours.dataclass(slots=True)
    class Derived(Base):
        y: int = 0

    assert repr(Derived(1, y=2)).endswith("Derived(x=1, y=2)")
    assert Derived(1) == Derived(1, 0)


def test_a_value_that_holds_itself_can_be_shown():
    """Showing one ends."""
    tally = Tally()
    tally.counts["self"] = tally
    assert repr(tally) == "Tally(counts={'self': ...}, total=0)"
