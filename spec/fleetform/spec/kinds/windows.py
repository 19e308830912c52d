"""
Spans of time: for maintenance of hosts, and for reservations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import PlainValidator, WithJsonSchema, model_validator

from fleetform.spec.field_facts import unit
from fleetform.spec.kinds.base import Model, refuse
from fleetform.spec.quantities.moment import parse_moment

Moment = Annotated[
    int,
    PlainValidator(parse_moment),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^\s*(\d{4}-\d\d-\d\d[Tt ]+\d\d:\d\d(:\d\d)?\s*([Zz]|[+-]\d\d(:?\d\d)?)|.*\$\{\{.*)\s*$",
            "examples": ["2026-12-24T18:00Z", "2026-12-24 18:00+01:00"],
        }
    ),
    unit("moment"),
]
"""A point in time with its time zone; seconds since 1970 in UTC."""


class Window(Model):
    """A period from `begin` to `end`."""

    begin: Moment
    """
    The begin, as a time with its time zone; `from` is the same field. Example: `2026-12-24T18:00Z`.
    """

    end: Moment
    """
    The end, as a time with its time zone; `to` is the same field. Example: `2026-12-24T20:00Z`.
    """

    @model_validator(mode="after")
    def _is_forward(self) -> Self:
        if self.end <= self.begin:
            raise refuse("contradiction", "It ends before it begins.", "Swap the two.")
        return self


_ALIASES = {"from": "begin", "to": "end", "for": "duration"}


def window(value: Any) -> Any:
    """`from`, `to` and `for` as `begin`, `end` and `duration`."""
    if not isinstance(value, Mapping):
        return value
    named: dict[Any, Any] = {}
    for key, item in value.items():
        name = _ALIASES.get(key, key)
        if name in named:
            raise refuse("said-twice", f"`{key}` is already set by another field.", "Keep one.")
        named[name] = item
    return named
