"""
Durations: `90` seconds, `45s`, `5m`, `2h`, `1d`, `1w`, `1h30m`; in seconds.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from fleetform.spec.quantities.ranges import shown, unfit

__all__ = [
    "DURATION",
    "OFF",
    "OFF_WORDS",
    "SECONDS_MAX",
    "format_duration",
    "parse_duration",
    "parse_moment",
]


OFF = -1
"""What `off` is in a canonical document: no limit, or never. Integers have no other spare value."""

# A hundred years: what is longer was meant to be `off`.
SECONDS_MAX = 100 * 365 * 86_400

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NUMBER = "[0-9]{1,12}"

DURATION = rf"{_NUMBER}|(?=[0-9])" + "".join(rf"(?:{_NUMBER}\s*{unit}\s*)?" for unit in _SECONDS)
"""The text of a duration: seconds, or numbers with units from the largest to the smallest."""

OFF_WORDS = ("off", f"{OFF}")
"""The texts that mean `OFF`."""

_TEXT = re.compile(DURATION, re.ASCII)
_UNORDERED = re.compile(r"(?:\d{1,12}\s*[wdhms]\s*)+", re.ASCII)
_PART = re.compile(r"(\d+)\s*([wdhms]?)", re.ASCII)
_DECIMAL = re.compile(r"(\d{1,9}\.\d{1,3})\s*([wdhms])", re.ASCII)
# How Slurm writes one. `2:30` is left out: minutes there, and hours to most people.
_CLOCK = re.compile(r"(?:(\d{1,4})-)?(\d{1,4}):(\d\d):(\d\d)")
# What people call the units elsewhere; months and years have no fixed length.
_WORDS = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "min": "m", "mins": "m", "minute": "m", "minutes": "m",
    "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
    "day": "d", "days": "d", "week": "w", "weeks": "w",
}  # fmt: skip


def parse_duration(value: Any, *, off: bool = False) -> int:
    """
    Read a duration in seconds.

    Args:
        value: Text, or a number of seconds.
        off: Whether `off` may be said; it is `OFF`, and so is `false` and dstack's `-1`.
    """
    if off and (value is False or value == OFF or _is_off(value)):
        return OFF
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise _unfit(value, off=off)
    text = str(value).strip() if isinstance(value, str) or abs(value) < 10**18 else "9" * 12
    if not _TEXT.fullmatch(text):
        raise ValueError(_text_problem(text, off=off))
    seconds = sum(int(number) * _SECONDS[unit or "s"] for number, unit in _PART.findall(text))
    if seconds > SECONDS_MAX:
        raise ValueError(f"{shown(text)} is longer than a hundred years{_or_off(off)}.")
    return seconds


def format_duration(seconds: int) -> str:
    """Write `2h`, `1h30m`, `10d`, `0s`, `off`: what `parse_duration` reads back."""
    if seconds == OFF:
        return "off"
    assert seconds >= 0, seconds
    parts = []
    for unit in ("d", "h", "m", "s"):  # Weeks are read and not written: 8d says more than 1w1d.
        count, seconds = divmod(seconds, _SECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _unfit(value: object, *, off: bool) -> ValueError:
    if isinstance(value, float):
        return ValueError(
            f"{shown(value)} is not a whole number of seconds; write for example `90m`."
        )
    if value is False:
        return ValueError("`off` is not allowed here; write a duration, such as `2h`.")
    return unfit(value, f"a duration, such as `2h`{_or_off(off)}")


def _text_problem(text: str, *, off: bool) -> str:
    expected = f"write for example `90s`, `5m`, `2h` or `1h30m`{_or_off(off)}."
    if not text:
        return f"The duration is empty; {expected}"
    if _UNORDERED.fullmatch(text):
        return f"{shown(text)} names its units out of order or twice; write `1h30m`."
    if text.startswith("-"):
        return f"{shown(text)} is negative; write a duration such as `300` or `5m`{_or_off(off)}."
    if text in {"off", "never", "none"}:
        return f"{shown(text)} is not a duration{_or_off(off)}; {expected}"
    decimal = _DECIMAL.fullmatch(text)
    if decimal is not None:
        exact = float(decimal[1]) * _SECONDS[decimal[2]]
        return f"{shown(text)} has decimals; write `{format_duration(round(exact))}`."
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        exact = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        return f"{shown(text)} is written as on a clock; write `{format_duration(exact)}`."
    number, word = re.fullmatch(r"(\d*)\s*(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]  # Every text matches.
    if number and word == "M":
        return f"{shown(text)} is unclear; write `{number}m` for minutes, or days for months."
    unit = _WORDS.get(word.lower(), word.lower())
    if number and unit in _SECONDS:
        return f"{shown(text)} has the unit {shown(word)}; write `{number}{unit}`."
    if number and unit in {"y", "year", "years", "mo", "month", "months"}:
        days = int(number) * (365 if unit.startswith("y") else 30)
        return f"{shown(text)} has no fixed length; count in days, such as `{days}d`."
    return f"{shown(text)} is not a duration; {expected}"


def _is_off(value: Any) -> bool:
    return isinstance(value, str) and value.strip() in OFF_WORDS


def _or_off(off: bool) -> str:
    return ", or `off`" if off else ""


# Moments: `2026-12-24T18:00Z`, `2026-12-24 18:00+01:00`; in seconds since 1970 in UTC.
#
# A time zone has to be said. Who reads a tree sits anywhere, and a window that opens an hour
# early because a server runs in another zone is found out at night.

_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ]+(\d\d:\d\d(?::\d\d)?))?\s*([Zz]|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)


def parse_moment(value: Any) -> int:
    """Read a moment in seconds since 1970 in UTC."""
    if not isinstance(value, str):
        raise unfit(value, "a moment, such as `2026-12-24T18:00Z`")
    match = _MOMENT.fullmatch(value.strip())
    if match is None:
        raise ValueError(
            f"{shown(value)} is not a moment; write for example `2026-12-24T18:00Z` or"
            " `2026-12-24 18:00+01:00`."
        )
    day, clock, zone = match.groups()
    if clock is None:
        raise ValueError(f"{shown(value)} has no time of day; write `{day}T00:00Z`.")
    if zone is None:
        raise ValueError(
            f"{shown(value)} has no time zone; write `{day}T{clock}Z` for UTC, or an"
            f" offset such as `{day}T{clock}+01:00`."
        )
    try:
        moment = dt.datetime.fromisoformat(f"{day}T{clock}{zone.upper()}")
    except ValueError:
        raise ValueError(f"{shown(value)} is not a valid date.") from None
    seconds = int(moment.timestamp())
    if seconds < 0:
        raise ValueError(f"{shown(value)} is before 1970.")
    return seconds
