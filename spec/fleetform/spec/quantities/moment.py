"""
Moments: `2026-12-24T18:00Z`, `2026-12-24 18:00+01:00`; in seconds since 1970 in UTC.

A time zone has to be said. Who reads a tree sits anywhere, and a window that opens an hour
early because a server runs in another zone is found out at night.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from fleetform.spec.quantities.ranges import shown, unfit

__all__ = ["parse_moment"]

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
