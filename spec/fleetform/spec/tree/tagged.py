"""
Values of `spec.desired` as JSON and back, by the names of their classes.

Only classes of that module are ever made, so that what comes from a disk can be wrong and
nothing worse. Any other is refused when it is written: then nothing is kept,
and nothing is lost but time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from fleetform.spec import desired

__all__ = ["read_value", "write_value"]

_CLASSES: Mapping[str, type[Any]] = {
    name: one
    for name, one in vars(desired).items()
    if isinstance(one, type) and one.__module__ == desired.__name__
}
_PLAIN = frozenset({str, int, float, bool, type(None)})
_TUPLE, _LIST, _SET, _DICT = "()", "[]", "{}", "{:}"


def write_value(value: Any) -> Any:
    """
    Raises:
        TypeError: Something in it is of no class that could be read again.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return [_TUPLE, *map(write_value, value)]
    if kind is list:
        return [_LIST, *map(write_value, value)]
    if kind is frozenset:
        return [_SET, *map(write_value, sorted(value))]
    if kind is dict:
        return [_DICT, *([write_value(key), write_value(item)] for key, item in value.items())]
    if _CLASSES.get(kind.__name__) is not kind:
        raise TypeError(f"{kind.__name__} is no value that is kept")
    if is_dataclass(value):
        return [kind.__name__, *(write_value(getattr(value, one.name)) for one in fields(value))]
    return [kind.__name__, *map(write_value, value)]


def read_value(said: Any) -> Any:
    """
    The value that was written.

    Raises:
        KeyError: It names a class that is none of these.
        TypeError: It is nothing that `write_value` has written.
    """
    if type(said) is not list:
        return said
    tag, *items = said
    if tag == _TUPLE:
        return tuple(map(read_value, items))
    if tag == _LIST:
        return list(map(read_value, items))
    if tag == _SET:
        return frozenset(map(read_value, items))
    if tag == _DICT:
        return {read_value(key): read_value(item) for key, item in items}
    return _CLASSES[tag](*map(read_value, items))
