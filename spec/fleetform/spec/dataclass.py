"""
The standard library's `dataclass`, which pays for a method when somebody calls it.

`dataclasses` writes the methods of a class as text and has them compiled while its module is
imported: one millisecond for a frozen class with slots, a tenth of that for all else there is to
it. A `plan` imports more than a hundred such classes and makes values of a third of them, so that
a third of its time went into methods that nobody called (ADR 21).

Here a class is made by `dataclasses`, with its fields, defaults and slots, and without the text.
Comparing, hashing and showing need none: a function over the fields' values does the same. Only
`__init__` is worth compiling, since values are made by the ten thousand; that happens when the
first one is. What the class can do is the same, and a test compares it with the standard library's;
until its first value is made, `inspect.signature` cannot say what it takes.

Type checkers see the standard library's. Of its options there are those that the house uses.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter, ge, gt, le, lt
from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = ["dataclass"]

_Methods: TypeAlias = Mapping[str, Callable[..., Any]]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        order: bool = False,
    ) -> type | Callable[[type], type]:
        """Make a data class, as `dataclasses.dataclass` with the same options does."""

        def decorate(plain: type) -> type:
            return _made(plain, is_frozen=frozen, has_slots=slots, has_order=order)

        return decorate if cls is None else decorate(cls)


def _made(plain: type, *, is_frozen: bool, has_slots: bool, has_order: bool) -> type:
    own = vars(plain)
    if "__setattr__" in own or "__delattr__" in own:
        raise TypeError(f"{plain.__name__} sets its fields by itself; that is for dataclasses")
    # Python itself puts a None there where a class compares in its own way.
    is_hashed = "__hash__" in own and (own["__hash__"] is not None or "__eq__" not in own)
    doc = plain.__doc__
    # Without one, `dataclasses` would write the signature there, for which it asks `inspect`.
    plain.__doc__ = doc or plain.__name__
    bare = dataclasses.dataclass(init=False, repr=False, eq=False, slots=has_slots)
    made: type = bare(plain)
    made.__doc__ = doc
    _add(made, {"__init__": _compiled_late(made, is_frozen=is_frozen)})
    _add(made, _shown(made))
    _add(made, _compared(made, has_order=has_order))
    if is_frozen:
        _add(made, _refusals(made))
        if has_slots:
            _add(made, {"__getstate__": _state, "__setstate__": _set_state})
    if not is_hashed:
        _put(made, "__hash__", _hash_of(made) if is_frozen else None)
    return made


def _add(cls: type, methods: _Methods) -> None:
    """Give the class methods that it does not define itself."""
    for name, method in methods.items():
        if name not in vars(cls):
            _put(cls, name, method)


def _put(cls: type, name: str, method: Callable[..., Any] | None) -> None:
    if method is not None and method not in _OF_ALL:
        method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
        method.__module__ = cls.__module__
    setattr(cls, name, method)


# -- making values --------------------------------------------------------------------------------


def _compiled_late(cls: type, *, is_frozen: bool) -> Callable[..., None]:
    def first(self: Any, *args: Any, **kwargs: Any) -> None:
        # Two threads may do so at once; both make the same.
        made = _compiled(cls, is_frozen=is_frozen)
        _put(cls, "__init__", made)
        made(self, *args, **kwargs)

    return first


def _compiled(cls: type, *, is_frozen: bool) -> Callable[..., None]:
    """The `__init__` that assigns each field in turn, as a person would write it."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    parameters = ["self"]
    lines = []
    for one in fields(cls):
        assert not one.kw_only, f"{cls.__name__}.{one.name}: no class of the house has those"
        parameters.extend(_parameter(one, known))
        value = _value(one, known)
        if value:
            lines.append(_assignment(cls, one.name, value, known, is_frozen=is_frozen))
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n  ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n  {body}", known)  # noqa: S102 -- of names alone
    made: Callable[..., None] = known["__init__"]
    return made


def _parameter(one: Field[Any], known: dict[str, Any]) -> Iterator[str]:
    if not one.init:
        return
    if one.default is not MISSING:
        known[f"_default_{one.name}"] = one.default
        yield f"{one.name}=_default_{one.name}"
    elif one.default_factory is not MISSING:
        yield f"{one.name}=_MISSING"
    else:
        yield one.name


def _value(one: Field[Any], known: dict[str, Any]) -> str:
    """What a field is set to; nothing where it has none to begin with."""
    if one.default_factory is not MISSING:
        known[f"_make_{one.name}"] = one.default_factory
        made = f"_make_{one.name}()"
        return f"{made} if {one.name} is _MISSING else {one.name}" if one.init else made
    if one.init:
        return one.name
    if one.default is not MISSING:
        known[f"_default_{one.name}"] = one.default
        return f"_default_{one.name}"
    return ""


def _assignment(cls: type, name: str, value: str, known: dict[str, Any], *, is_frozen: bool) -> str:
    if not is_frozen:
        return f"self.{name} = {value}"
    slot = getattr(vars(cls).get(name), "__set__", None)
    if slot is None:
        return f"_set(self, {name!r}, {value})"
    # What `object.__setattr__` would look for first.
    known[f"_set_{name}"] = slot
    return f"_set_{name}(self, {value})"


# -- what is done with values ---------------------------------------------------------------------


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Give a function from a value to those of some of its fields."""
    if len(names) > 1:
        return attrgetter(*names)
    # Of a single name it would be the value itself, and of none nothing.
    return lambda value: tuple(getattr(value, name) for name in names)


def _shown(cls: type) -> _Methods:
    names = [one.name for one in fields(cls) if one.repr]

    @reprlib.recursive_repr()
    def show(self: Any) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({said})"

    return {"__repr__": show}


def _compared(cls: type, *, has_order: bool) -> _Methods:
    values = _values_of([one.name for one in fields(cls) if one.compare])

    def equal(self: Any, other: object) -> Any:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    def by(compare: Callable[[Any, Any], Any]) -> Callable[[Any, object], Any]:
        def ordered(self: Any, other: object) -> Any:
            if other.__class__ is self.__class__:
                return compare(values(self), values(other))
            return NotImplemented

        return ordered

    orders = {f"__{one.__name__}__": by(one) for one in (lt, le, gt, ge)} if has_order else {}
    return {"__eq__": equal, **orders}


def _hash_of(cls: type) -> Callable[[Any], int]:
    taken = (one.compare if one.hash is None else one.hash for one in fields(cls))
    values = _values_of([one.name for one, is_in in zip(fields(cls), taken, strict=True) if is_in])

    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


def _refusals(cls: Any) -> _Methods:
    names = frozenset(one.name for one in fields(cls))

    def is_ours(self: Any, name: str) -> bool:
        # A class below that is no data class may have attributes of its own.
        return type(self) is cls or name in names

    def set_one(self: Any, name: str, value: object) -> None:
        if is_ours(self, name):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_one(self: Any, name: str) -> None:
        if is_ours(self, name):
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": set_one, "__delattr__": delete_one}


def _state(self: Any) -> list[Any]:
    """What `pickle` and `copy` take along of a value that refuses to be set."""
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: Iterable[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


# No class has one of its own.
_OF_ALL = (_state, _set_state)
