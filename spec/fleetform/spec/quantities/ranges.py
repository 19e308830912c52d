"""
Ranges with open ends: `2..`, `..8`, `1..8`, `{min: 1, max: 8}`, and a single value for both.

What the ends are is the caller's: `parse_range` is given the parser of one end, so that memory,
CPUs and counts have one grammar and the same advice.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = [
    "COUNT_MAX",
    "PartError",
    "Range",
    "format_range",
    "parse_count",
    "parse_int_range",
    "parse_part",
    "parse_range",
    "shown",
    "unfit",
]


# Parts of regular expressions that parsers and JSON schemas share.
#
# An editor reads them as JavaScript does, so they name the digits `[0-9]`, and upper and lower case
# one by one: other digits, and the flags of Python, have no equal there.

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


# Amounts are stored as 64-bit integers; nothing real comes near.
COUNT_MAX = 2**63 - 1

_Part = TypeVar("_Part")

_DIGITS = re.compile(DIGITS)
_MANY_DOTS = re.compile(r"\.{3,}|…")
_DASHED_LENGTH_MAX = 100
_DASHED = re.compile(r"(\d[^-+]*?)\s*(?:-|–|to)\s*(\d.*)")  # noqa: RUF001 -- people paste en dashes


class PartError(ValueError):
    """
    What is wrong with one part of an amount that is written as a mapping.

    Attributes:
        path: Names of the parts that lead to it: `("count", "min")`.
    """

    def __init__(self, detail: str, path: tuple[str, ...]) -> None:
        super().__init__(detail)
        self.path = path


def parse_part(value: Mapping[str, Any], name: str, parse: Callable[[Any], _Part]) -> _Part | None:
    """
    Read the part `name` of an amount; None where it is absent.

    Raises:
        PartError: Its value is wrong.
    """
    if value.get(name) is None:
        return None
    try:
        return parse(value[name])
    except ValueError as exc:
        path = exc.path if isinstance(exc, PartError) else ()
        raise PartError(str(exc), (name, *path)) from exc


@dataclass(frozen=True, slots=True)
class Range:
    """
    Inclusive bounds in the unit of what is measured; None is an open end, never both.

    `min` is at most `max`: `parse_range` keeps that.
    """

    min: int | None
    max: int | None

    def document(self) -> dict[str, int | None]:
        """Return the canonical form."""
        return {"min": self.min, "max": self.max}

    @classmethod
    def from_document(cls, document: Mapping[str, int | None]) -> Range:
        """Return the range whose canonical form is `document`."""
        return cls(document["min"], document["max"])


def parse_range(value: Any, parse: Callable[[Any], int], *, example: str) -> Range:
    """
    Read a range whose ends `parse` reads.

    Args:
        value: Text, a number, or a mapping of `min` and `max`.
        parse: Reads one end, raises ValueError with a sentence.
        example: A valid range of this sort, for advice.
    """
    if isinstance(value, Range):
        return value
    if isinstance(value, Mapping):
        return _ordered(*_mapping_ends(value, parse, example), shown_as=_mapping_text(value))
    if not isinstance(value, str):
        amount = parse(value)
        return Range(amount, amount)
    text = value.strip()
    if ".." not in text and "…" not in text:
        amount = _single(text, parse)
        return Range(amount, amount)
    low, high = _text_ends(text, example)
    return _ordered(
        parse(low) if low else None, parse(high) if high else None, shown_as=shown(text)
    )


def parse_int_range(value: Any) -> Range:
    """Read a range of whole numbers: `1..8`, `2`, `{min: 1}`."""
    return parse_range(value, parse_count, example="1..8")


def parse_count(value: Any) -> int:
    """Read a whole number that is not negative."""
    if isinstance(value, str):
        text = value.strip()
        if _DIGITS.fullmatch(text) and int(text) <= COUNT_MAX:
            return int(text)
        if text.startswith("-") and text[1:].isdigit():
            raise ValueError(f"{shown(value)} is negative; the least is 0.")
        raise ValueError(f"{shown(value)} is not a whole number, such as 4.")
    if isinstance(value, bool) or not isinstance(value, int):
        raise unfit(value, "a whole number, such as 4")
    if value < 0:
        raise ValueError(f"{shown(value)} is negative; the least is 0.")
    if value > COUNT_MAX:
        raise ValueError(f"{shown(value)} is too large.")
    return value


def format_range(range_: Range, format_end: Callable[[int], str] = str) -> str:
    """Write the shortest text that reads back as the same range: `8GB`, `8GB..`, `..8GB`."""
    low, high = range_.min, range_.max
    if low is not None and low == high:
        return format_end(low)
    return f"{'' if low is None else format_end(low)}..{'' if high is None else format_end(high)}"


def shown(value: object) -> str:
    """Return a value for a message: in backticks, on one line, and not too long."""
    try:
        text = _flow(value)[:100]
    except ValueError:  # Python writes no integers of more than 4300 digits.
        text = "…"
    if not text.isprintable():
        text = text.encode("unicode_escape").decode("ascii")
    return f"`{text[:60]}…`" if len(text) > 60 else f"`{text}`"


def _flow(value: object, depth: int = 2) -> str:
    """As YAML writes it on one line, and not Python; of much, as much as a message can show."""
    match value:
        case bool() | None:
            return "null" if value is None else str(value).lower()
        case Mapping() | list() | tuple() if not depth:
            return "…"
        case Mapping():
            some = itertools.islice(value.items(), 10)
            return "{" + ", ".join(f"{key}: {_flow(item, depth - 1)}" for key, item in some) + "}"
        case list() | tuple():
            return "[" + ", ".join(_flow(item, depth - 1) for item in value[:10]) + "]"
    return f"{value}"


def unfit(value: object, expected: str) -> ValueError:
    """Return the error for a value of a wrong type, in words of YAML and not of Python."""
    if value is None:
        return ValueError(f"No value is given; expected {expected}.")
    if isinstance(value, bool):
        return ValueError(f"`{str(value).lower()}` is a boolean; expected {expected}.")
    kind = "a mapping" if isinstance(value, Mapping) else "a list"
    if isinstance(value, (str, int, float)):
        kind = "text" if isinstance(value, str) else "a number"
    return ValueError(f"{shown(value)} is {kind}; expected {expected}.")


def _single(text: str, parse: Callable[[Any], int]) -> int:
    try:
        return parse(text)
    except ValueError as exc:
        meant = _meant_range(text, parse)
        if meant is None:
            raise
        raise ValueError(f"{shown(text)} is not a range; write {shown(meant)}.") from exc


def _meant_range(text: str, parse: Callable[[Any], int]) -> str | None:
    """Return the range that other tools' notations mean: `8GB+`, `>=8GB`, `8GB-16GB`."""
    # No amount is as long, and the expression takes quadratic time.
    dashed = _DASHED.fullmatch(text) if len(text) <= _DASHED_LENGTH_MAX else None
    if text.endswith("+"):
        ends = (text[:-1].strip(), "")
    elif text.startswith((">=", "<=")):
        end = text[2:].strip()
        ends = (end, "") if text[0] == ">" else ("", end)
    elif dashed is not None:
        ends = (dashed[1], dashed[2])
    else:
        return None
    try:
        for end in ends:
            if end:
                parse(end)
    except ValueError:
        return None
    return f"{ends[0]}..{ends[1]}"


def _text_ends(text: str, example: str) -> tuple[str, str]:
    if _MANY_DOTS.search(text):
        fixed = _MANY_DOTS.sub("..", text)
        raise ValueError(f"{shown(text)} has three dots; a range has two: {shown(fixed)}.")
    ends = [end.strip() for end in text.split("..")]
    if len(ends) > 2:
        raise ValueError(f"{shown(text)} has more than two ends; write for example `{example}`.")
    if not any(ends):
        raise ValueError(
            f"{shown(text)} has no bounds; write for example `{example}`, or leave it out."
        )
    return ends[0], ends[1]


def _mapping_ends(
    value: Mapping[str, Any], parse: Callable[[Any], int], example: str
) -> tuple[int | None, int | None]:
    unknown = sorted(str(key) for key in value if key not in {"min", "max"})
    if unknown:
        raise ValueError(f"{shown(unknown[0])} is not part of a range; it has `min` and `max`.")
    if value.get("min") is None and value.get("max") is None:
        raise ValueError(
            f"The range has neither `min` nor `max`; write for example `{example}`,"
            " or leave it out."
        )
    return parse_part(value, "min", parse), parse_part(value, "max", parse)


def _mapping_text(value: Mapping[str, Any]) -> str:
    return shown("{" + ", ".join(f"{key}: {value[key]}" for key in value) + "}")


def _ordered(low: int | None, high: int | None, *, shown_as: str) -> Range:
    if low is not None and high is not None and low > high:
        raise ValueError(f"{shown_as} begins above its end; swap the two.")
    return Range(low, high)
