"""
Memory and disk: `8GB`, `1.5TB`, `512MB`, a bare number of GB; in bytes.

Units are powers of 1024, as dstack and `nvidia-smi` count them: 8GB is 8 589 934 592 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from fleetform.spec.quantities.ranges import (
    COUNT_MAX,
    Range,
    either_case,
    parse_part,
    parse_range,
    shown,
    unfit,
)

__all__ = ["SIZE", "format_bytes", "parse_disk", "parse_memory", "parse_memory_range"]

# KB and B are not dstack's: they are here so that what a host reports can be written exactly.
_UNITS = {"TB": 2**40, "GB": 2**30, "MB": 2**20, "KB": 2**10, "B": 1}
_NUMBER = r"[0-9]{1,30}(?:\.[0-9]{1,30})?"

SIZE = rf"{_NUMBER}\s*(?:{'|'.join(map(either_case, _UNITS))})?"
"""The text of one size."""

_SIZE = re.compile(rf"({_NUMBER})\s*([A-Za-z]*)", re.ASCII)
# How other tools write the same: Kubernetes `8Gi`, IEC `8GiB`, Slurm and docker `8G`.
_MEANT = {
    f"{letter}{suffix}": f"{letter}B" for letter in "TGMK" for suffix in ("", "I", "IB", "BYTES")
}


def parse_memory(value: Any) -> int:
    """Read one size, in bytes. What is finer than a byte is dropped."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise unfit(value, "a size, such as `8GB`")
    text = value.strip() if isinstance(value, str) else _number_text(value)
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(_size_problem(text))
    number, unit = match[1], match[2].upper() or "GB"
    if unit not in _UNITS:
        raise ValueError(_unit_problem(text, number, match[2]))
    amount = int(Decimal(number) * _UNITS[unit])
    if amount > COUNT_MAX:
        raise ValueError(f"{shown(text)} is too large.")
    return amount


def parse_memory_range(value: Any) -> Range:
    """Read a range of sizes: `8GB..`, `..1TB`, `16..32GB`, `{min: 8GB}`."""
    return parse_range(value, parse_memory, example="8GB..64GB")


def parse_disk(value: Any) -> Range:
    """Read a disk's range of sizes, or dstack's mapping `{size: 100GB..}`."""
    if isinstance(value, Mapping) and "size" in value:
        unknown = sorted(str(key) for key in value if key != "size")
        if unknown:
            raise ValueError(f"{shown(unknown[0])} is not part of a disk; it has `size`.")
        return parse_part(value, "size", parse_memory_range) or parse_memory_range(None)
    return parse_memory_range(value)


def format_bytes(amount: int) -> str:
    """
    Write a size exactly, in the largest unit that needs at most two decimals: `8GB`, `1.5TB`.

    Exactly, because a plan that shows `8GB → 8GB` helps nobody.
    """
    assert amount >= 0, amount
    for unit, size in _UNITS.items():
        hundredths, rest = divmod(amount * 100, size)
        if rest == 0 and amount >= size:
            return f"{_trimmed(hundredths)}{unit}"
    return "0GB"


def _trimmed(hundredths: int) -> str:
    whole, rest = divmod(hundredths, 100)
    return f"{whole}.{rest:02d}".rstrip("0").rstrip(".")


def _number_text(value: float) -> str:
    # repr of a float may be `1e-05`; Decimal writes it out. NaN and infinities fail to match.
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) else _int_text(value)


def _int_text(value: int) -> str:
    # Python refuses to print numbers of more than 4300 digits; this one is refused anyway.
    return str(value) if abs(value) <= COUNT_MAX else "9" * 31


def _size_problem(text: str) -> str:
    if not text:
        return "The size is empty; write for example `8GB`."
    if text.startswith("-"):
        return f"{shown(text)} is negative; a size is 0 or more."
    if ".." in text:
        return f"{shown(text)} is a range; one size is expected here, such as `8GB`."
    if "," in text:
        return f"{shown(text)} has a comma; decimals have a point: {shown(text.replace(',', '.'))}."
    return f"{shown(text)} is not a size; write for example `8GB`, `512MB` or `1.5TB`."


def _unit_problem(text: str, number: str, unit: str) -> str:
    meant = _MEANT.get(unit.upper())
    if meant is not None:
        return (
            f"{shown(text)} has the unit {shown(unit)}; write `{number}{meant}`,"
            " which counts in powers of 1024 as well."
        )
    return f"{shown(text)} has the unit {shown(unit)}; units are MB, GB and TB."
