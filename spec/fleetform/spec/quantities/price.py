"""
Money: `2.5` and `"2.50"` are dollars, `$2.50` as well; in micro-dollars.

Never by way of a binary fraction: 0.1 dollars are 100 000 micro-dollars, and sums of prices
have to come out even.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from fleetform.spec.quantities.ranges import shown, unfit

__all__ = ["format_price", "parse_price"]

MICRO = 1_000_000
# A billion dollars an hour: what is more was meant in another unit.
_DOLLARS_MAX = 10**9

_PRICE = re.compile(r"\$?\s*(\d{1,12}(?:\.\d{1,6})?)\s*\$?", re.ASCII)
_CLOSE = re.compile(r"\$?\s*(\d{1,12}),(\d{1,6})\s*\$?", re.ASCII)


def parse_price(value: Any) -> int:
    """Read an amount of dollars in micro-dollars; more than nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise unfit(value, "dollars, such as 2.5")
    # repr writes the shortest decimal fraction that the float was read from.
    text = value.strip() if isinstance(value, str) else _decimal_text(value)
    match = _PRICE.fullmatch(text)
    if match is None:
        comma = _CLOSE.fullmatch(text)
        if comma is not None:
            raise ValueError(f"{shown(value)} has a comma; write `{comma[1]}.{comma[2]}`.")
        if text.startswith("-"):
            raise ValueError(f"{shown(value)} is negative; remove the field for no limit.")
        raise ValueError(f"{shown(value)} is not an amount of dollars, such as 2.5.")
    micros = int(Decimal(match[1]) * MICRO)
    if not micros:
        raise ValueError("The price must be larger than 0; remove the field for no limit.")
    if micros > _DOLLARS_MAX * MICRO:
        raise ValueError(f"{shown(value)} is more than a billion dollars.")
    return micros


def format_price(micros: int) -> str:
    """Write `2.5`, `0.000001`: what `parse_price` reads back."""
    whole, rest = divmod(micros, MICRO)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")


def _decimal_text(value: float) -> str:
    if isinstance(value, int):
        # Python writes no integers of more than 4300 digits.
        return f"{value}" if abs(value) < 10**18 else "9" * 12
    return f"{Decimal(repr(value)):f}" if abs(value) < 10**18 else "9" * 12
