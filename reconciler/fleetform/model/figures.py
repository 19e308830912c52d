"""
Amounts in sentences for people: rounded, with few digits.

Not for documents: `spec.quantities` writes what reads back to the same value, this does not.
Pure rooms that do not know each other share it, so that one amount looks the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from fleetform.spec.names import counted

__all__ = ["cores", "counted", "cpus", "decimal", "dollars", "first_of", "moment", "size", "span"]

_UNITS = (("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


def first_of(names: Sequence[str], limit: int) -> str:
    """Write the first names, and count the others: `train, eval and 3 more`."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")


def cpus(millicores: int) -> str:
    """Write `1 CPU`, `0.25 CPUs`, `16 CPUs`."""
    return f"{cores(millicores)} {'CPU' if millicores == 1000 else 'CPUs'}"


def cores(millicores: int) -> str:
    """Write a number of CPUs exactly: people compare `0.25` with what they declared."""
    whole, rest = divmod(millicores, 1000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".")


def size(size_bytes: int) -> str:
    """Write bytes in the largest unit that leaves 1 or more, rounded down; units are binary."""
    for unit, unit_bytes in _UNITS:
        if size_bytes >= unit_bytes:
            return f"{decimal(size_bytes, unit_bytes)}{unit}"
    return f"{size_bytes}B"


def dollars(micros: int) -> str:
    """
    Write micro-dollars as `$2.40`, in cents; less than 10 cents with up to four digits: `$0.0042`.

    Rounded up: a limit that people read, and write into `max_price`, must not be below the amount.
    """
    return _dollars(micros, 2 if micros >= 100_000 else 4)


def unit_price(micros: int) -> str:
    """Write the price of one of several with up to four digits, rounded up, so that a sum can be checked: `$1.006`."""
    return _dollars(micros, 4)


def _dollars(micros: int, digits: int) -> str:
    whole, rest = divmod(-(-micros // 10 ** (6 - digits)), 10**digits)
    written = f"{rest:0{digits}}"
    return f"${whole}.{written[:2]}{written[2:].rstrip('0')}"


def span(span_ms: int) -> str:
    """Write a duration with two units at most: `0.4s`, `12s`, `3m05s`, `2h07m`, `3d04h`."""
    if span_ms < 10_000:
        return f"{decimal(max(span_ms, 0), 1000)}s"
    seconds = span_ms // 1000
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02}s"
    hours = seconds // 3600
    if hours < 48:
        return f"{hours}h{seconds % 3600 // 60:02}m"
    return f"{hours // 24}d{hours % 24:02}h"


def moment(at_ms: int) -> str:
    """Write Unix milliseconds as `2026-11-21T10:26:30Z`."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def decimal(amount: int, unit: int) -> str:
    """Write amount / unit with one digit after the point, rounded down; less than 0.1 with three."""
    if 0 < amount * 10 < unit:
        return f"0.{amount * 1000 // unit:03}".rstrip("0").rstrip(".")
    whole, tenth = divmod(amount * 10 // unit, 10)
    return str(whole) if tenth == 0 else f"{whole}.{tenth}"
