"""
The text that a plan's digest is of, written by code of its own.

Nothing of it comes from `plan`: the form of each kind of value is made of the fields that it has, so
that a field which the planner's own text leaves out makes another digest. Documents are written by
the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from json.encoder import encode_basestring
from operator import attrgetter
from typing import Any

from fleetform.model.plan import FieldChange, Plan
from fleetform.spec.canonical import plain_json
from fleetform.spec.desired import ResourceKey, Rules

_UNSEALED = frozenset({"annex", "digest"})


_Form = tuple[str, Callable[[Any], tuple[Any, ...]]]


def text_of(plan: Plan) -> Iterator[str]:
    """The text in parts, none of which is longer than one change."""
    said = {one.name: getattr(plan, one.name) for one in fields(plan) if one.name not in _UNSEALED}
    said["format"] = "fleetform-plan"
    before = "{"
    for name in sorted(said):
        yield f'{before}"{name}":'
        before = ","
        if isinstance(said[name], tuple):
            yield "["
            for number, one in enumerate(said[name]):
                yield f",{_text(one)}" if number else _text(one)
            yield "]"
        else:
            yield _text(said[name])
    yield "}"


def _text(value: Any) -> str:
    return _WRITERS[type(value)](value)


class _Writers(dict[type, Callable[[Any], str]]):
    """How values of a type are written, found out when the first of them is met."""

    def __missing__(self, kind: type) -> Callable[[Any], str]:
        if issubclass(kind, str):
            write: Callable[[Any], str] = encode_basestring  # Actions and reasons are texts.
        elif is_dataclass(kind):
            write = _written_by(_form(kind))
        else:
            # Documents, and whatever else JSON has: what it has not is refused there.
            write = plain_json
        self[kind] = write
        return write


def _form(kind: type) -> _Form:
    """A text with a place for each field, by name, and what reads the fields in that order."""
    names = sorted(one.name for one in fields(kind))
    places = ",".join([f'"{name}":%s' for name in names])
    read = attrgetter(*names)
    return f"{{{places}}}", read if len(names) > 1 else lambda value: (read(value),)


def _written_by(form: _Form) -> Callable[[Any], str]:
    text, read = form
    return lambda value: text % tuple([_WRITERS[type(one)](one) for one in read(value)])


def _field(one: FieldChange) -> str:
    sides = [one.after] if one.after_set else []
    if one.before_set:
        sides.append(one.before)
    return _field_form(*_REST(one)) % tuple([_WRITERS[type(side)](side) for side in sides])


_REST = attrgetter(
    "after_set", "before_set", "field_class", "forces", "path", "sensitive", "unknown"
)


@lru_cache(maxsize=1024)
def _field_form(
    after_set: bool,
    before_set: bool,
    field_class: str,
    forces: bool,
    path: str,
    sensitive: bool,
    unknown: bool,
) -> str:
    """
    All but the values of a field: what a hundred thousand changes share.

    A side that is not set is not said, and what nearly no field is, neither.
    """
    sides = {"after": after_set, "before": before_set}
    said = {"class": field_class, "forces": forces, "path": path}
    rare = {"sensitive": sensitive, "unknown": unknown}
    rest = said | {name: True for name, is_said in rare.items() if is_said}
    places = [f'"{name}":%s' for name, is_set in sides.items() if is_set]
    return f"{{{','.join([*places, plain_json(rest)[1:-1].replace('%', '%%')])}}}"


def _key(key: ResourceKey) -> str:
    return f"[{encode_basestring(key.kind)},{encode_basestring(key.name)}]"


def _listed(values: tuple[Any, ...]) -> str:
    if not values:
        return "[]"
    return f"[{','.join([_WRITERS[type(one)](one) for one in values])}]"


# Looked up by the interpreter itself: most fields of a change are one of these.
_CONSTANTS = {None: "null", True: "true", False: "false"}


_KNOWN: dict[type, Callable[[Any], str]] = {
    bool: _CONSTANTS.__getitem__,
    type(None): _CONSTANTS.__getitem__,
    FieldChange: _field,
    ResourceKey: _key,
    Rules: lambda rules: plain_json(rules.document()),
    str: encode_basestring,
    tuple: _listed,
}


_WRITERS = _Writers(_KNOWN)
