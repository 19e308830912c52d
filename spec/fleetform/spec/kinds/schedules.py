"""
Times: cron expressions, moments and windows.

The grammar is that of cron(5) as Debian has it: five fields, weekdays from Sunday, 0 or 7. dstack
gives the same five fields to a library that counts weekdays from Monday: names, `mon-fri`, have
the same meaning in both, and numbers do not.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    WithJsonSchema,
    model_validator,
)

from fleetform.spec.kinds.base import Flag, Model, listed, read_by, refuse
from fleetform.spec.names import counted
from fleetform.spec.quantities.duration import parse_moment
from fleetform.spec.quantities.ranges import EXPRESSION, either_case, shown, whole_text

_FIELDS = ("minute", "hour", "day of the month", "month", "weekday")
_DAY = 2
_VALUES = ("0 to 59", "0 to 23", "1 to 31, or `L` for the last", "1 to 12, or `jan` to `dec`", "0 to 7, or `sun` to `sat`")  # fmt: skip
_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * sun",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


_STEP = "(?:/0*[1-9][0-9]*)?"


def _field(numbers: str, names: Sequence[str] = (), special: str = "") -> str:
    """A field of an expression: `*`, numbers or names, ranges and steps of them, or a list."""
    value = f"(?:{'|'.join([f'0*(?:{numbers})', *map(either_case, names)])})"
    others = special and f"|{special.format(value=value)}"
    entry = rf"(?:(?:\*|{value}(?:-{value})?){_STEP}{others})"
    return f"{entry}(?:,{entry})*"


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# `L` is the last day of a month, `LW` the last working day, `5L` the last Friday, and `5#2` the
# second one. `cronsim` reads the expressions, and a test compares it with this pattern.
_PATTERNS = (
    _field("[1-5]?[0-9]"),
    _field("1?[0-9]|2[0-3]"),
    _field("[1-9]|[12][0-9]|3[01]", special=f"[Ll][Ww]?{_STEP}"),
    _field("[1-9]|1[0-2]", _MONTHS),
    _field("[0-7]", _WEEKDAYS, special="{value}#0*[1-5]|0*[0-7][Ll]"),
)
CRON = r"\s+".join(_PATTERNS)
"""The text of a cron expression; a pattern does not tell which dates exist."""


def cron_expression(value: str) -> str:
    """An expression of cron in its one spelling."""
    expression = " ".join(value.split())
    parts = expression.split(" ")
    if expression.lower() in _NAMED:
        raise refuse(
            "bad-value",
            f"{shown(value)} is not supported as a cron expression.",
            f"Write `{_NAMED[expression.lower()]}`.",
        )
    if len(parts) != len(_FIELDS):
        raise refuse(
            "bad-value",
            f"{shown(value)} has {counted(len(parts), 'field') if expression else 'no fields'}; cron has five.",
            f"Write {', '.join(_FIELDS)}: `30 2 * * mon-fri`.",
        )
    problem = _problem(expression)
    if problem:
        raise refuse(
            "bad-value", f"{shown(value)}: {problem}.", "Write for example `30 2 * * mon-fri`."
        )
    return expression


def _problem(expression: str) -> str:
    """What is wrong with the expression; empty if it is right."""
    # Few configurations have schedules, and each start would pay for the import.
    from cronsim import CronSim, CronSimError

    try:
        # The time is arbitrary: a date that never occurs is refused at any time.
        CronSim(expression, dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    except CronSimError as exc:
        names = ("minute", "hour", "day-of-month", "month", "day-of-week")
        number = names.index(str(exc).removeprefix("Bad "))
        part = expression.split(" ")[number]
        if number == _DAY and re.fullmatch(_PATTERNS[number], part):
            return f"the day of the month {shown(part)} occurs in none of these months"
        return f"{shown(part)} is not a {_FIELDS[number]}, which is {_VALUES[number]}"
    return ""


def never_ends(cron: str, seconds: int, timezone: str) -> bool:
    """Tell whether each period that begins at `cron` lasts at least until the next one begins."""
    from zoneinfo import ZoneInfo

    from cronsim import CronSim

    # Two hours of an expression for each minute; a gap of a day is found at once.
    times = CronSim(cron, dt.datetime(2026, 1, 1, tzinfo=ZoneInfo(timezone)))
    before = next(times)
    for _ in range(_STARTS_LOOKED_AT):
        after = next(times)
        if after.timestamp() - before.timestamp() > seconds:
            return False
        before = after
    return True


_STARTS_LOOKED_AT = 120


Cron = Annotated[
    str,
    AfterValidator(cron_expression),
    WithJsonSchema({"type": "string", "pattern": f"{whole_text(CRON)}|{EXPRESSION}"}),
]


class Schedule(Model):
    """Times at which a run starts repeatedly."""

    cron: Annotated[tuple[Cron, ...], *listed(Cron)]
    """
    One or several cron expressions in UTC: minute, hour, day of the month, month and weekday.
    Weekdays are names, or numbers from 0 for Sunday. Example: `30 2 * * mon-fri`, `["0 6 * * *", "0
    18 * * *"]`.
    """

    catch_up: Flag | None = None
    """
    Whether the last missed start is made up for, for example after a night without a controller.
    Default: `false`. Example: `true`.
    """


Moment = Annotated[
    int,
    *read_by(
        parse_moment,
        {
            "type": "string",
            "pattern": r"^\s*(\d{4}-\d\d-\d\d[Tt ]+\d\d:\d\d(:\d\d)?\s*([Zz]|[+-]\d\d(:?\d\d)?)|.*\$\{\{.*)\s*$",
            "examples": ["2026-12-24T18:00Z", "2026-12-24 18:00+01:00"],
        },
        "moment",
    ),
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
