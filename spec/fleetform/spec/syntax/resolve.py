"""
What an unquoted scalar means, by `WORDS` and `number`: the core schema of YAML 1.2, within what can be stored.

So `yes`, `no`, `on` and `off` are text, as is `12:30:00`, which YAML 1.1 counts in sixties,
and `2024-01-31`. https://yaml.org/spec/1.2.2/#103-core-schema
"""

from __future__ import annotations

import math
import re

__all__ = ["NUMBER_STARTS", "WORDS", "OutOfRangeError", "number"]

NUMBER_STARTS = frozenset("+-.0123456789")
"""The first characters of all numbers."""

WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_NUMBER = re.compile(
    r"(?P<int>[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)"
    r"|(?P<real>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_INT_MAX = 2**63 - 1
# The longest spelling of a number that fits: 64 binary digits, or a float's 17 with an exponent;
# the rest is room for zeros. Python's int() takes quadratic time and refuses 4300 digits.
_LENGTH_MAX = 400
# Fewer digits than this are less than 64 bits.
_DIGITS_SURE = 19


class OutOfRangeError(ValueError):
    """A number that no field can hold: its text is a sentence for people."""


def number(raw: str) -> str | int | float:
    """
    Return the number that the plain scalar `raw` is, or `raw` itself when it is text.

    Raises:
        OutOfRangeError: For infinities, NaN, and integers of more than 64 bits. JSON has none
            of the first two, and the ledger stores none of the third.
    """
    if raw.isdigit() and raw.isascii() and len(raw) < _DIGITS_SURE:
        return int(raw)  # Nearly all numbers are such; the expression takes four times as long.
    match = _NUMBER.fullmatch(raw)
    if match is None:
        return raw
    if match.lastgroup == "int":
        return _integer(raw)
    if match.lastgroup == "real":
        return _real(raw)
    raise OutOfRangeError("It is not a finite number.")


def _integer(raw: str) -> int:
    if len(raw) <= _LENGTH_MAX:
        # `017` is seventeen here. YAML 1.1 takes it for fifteen, which the builder warns of.
        base = {"0o": 8, "0x": 16}.get(raw[:2], 10)
        value = int(raw, base)
        if abs(value) <= _INT_MAX:
            return value
    raise OutOfRangeError("It is a whole number of more than 64 bits, which cannot be stored.")


def _real(raw: str) -> float:
    value = float(raw) if len(raw) <= _LENGTH_MAX else math.inf
    if math.isinf(value):
        raise OutOfRangeError("It is a number too large to be stored.")
    return value + 0.0  # Minus zero becomes zero: one spelling for each value.
