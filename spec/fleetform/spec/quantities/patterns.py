"""
Parts of regular expressions that parsers and JSON schemas share.

An editor reads them as JavaScript does, so they name the digits `[0-9]`, and upper and lower case
one by one: other digits, and the flags of Python, have no equal there.
"""

from __future__ import annotations

import re

EXPRESSION = r"\$\{\{"
"""The begin of an expression. A text that contains one is read after it is resolved."""

DIGITS = r"[0-9]{1,19}"
"""A whole number that is not negative; see `parse_count`."""


def whole_text(pattern: str) -> str:
    """The pattern of a text that the parser strips of spaces."""
    return rf"^\s*(?:{pattern})\s*$"


def exact_text(pattern: str) -> str:
    """The pattern of a text without spaces around it. `$` of Python also matches before a newline."""
    return rf"^(?:{pattern})$(?!\n)"


def range_of(end: str) -> str:
    """A range with such ends, of which one may be missing, or a single value; see `parse_range`."""
    return rf"(?:{end})(?:\s*\.\.\s*(?:{end})?)?|\.\.\s*(?:{end})"


def either_case(word: str) -> str:
    """The word in upper case, lower case, or a mix of both."""
    return "".join(
        f"[{letter.upper()}{letter.lower()}]" if letter.isalpha() else re.escape(letter)
        for letter in word
    )


def from_one_to(most: int) -> str:
    """The numbers from 1 to `most` as text; schemas compare no numbers in text."""
    digits = str(most)
    shorter = [rf"[1-9][0-9]{{0,{len(digits) - 2}}}"] if len(digits) > 1 else []
    as_long = [
        rf"{digits[:place]}[{least}-{int(digit) - 1}]" + "[0-9]" * (len(digits) - place - 1)
        for place, digit in enumerate(digits)
        if int(digit) > (least := 0 if place else 1)
    ]
    return f"0*(?:{'|'.join([*shorter, *as_long, digits])})"
