"""
CPUs: `2..`, `4`, `0.5`, `x86:4`, `{arch: arm, count: 4..}`; in millicores.

dstack counts whole CPUs; here a job may ask for a part of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from fleetform.spec.quantities.ranges import (
    COUNT_MAX,
    Range,
    either_case,
    format_range,
    parse_part,
    parse_range,
    range_of,
    shown,
    unfit,
)

__all__ = [
    "ARCHITECTURE",
    "CORES",
    "CPU",
    "Cpu",
    "cpu_document",
    "format_cpu",
    "format_millicores",
    "parse_cpu",
]

_ARCHITECTURES = ("arm", "x86")
_MEANT = {
    "arm64": "arm",
    "aarch64": "arm",
    "x86_64": "x86",
    "x86-64": "x86",
    "amd64": "x86",
    "x64": "x86",
}

CORES = r"[0-9]{1,15}(?:\.[0-9]{1,3}0*)?"
"""The text of a number of CPUs."""

ARCHITECTURE = "|".join(map(either_case, _ARCHITECTURES))
"""The text of an architecture."""

_RANGE = f"(?:{range_of(CORES)})"
CPU = rf"(?:(?:{ARCHITECTURE})\s*:\s*)?{_RANGE}|(?:{_RANGE}\s*:\s*)?(?:{ARCHITECTURE})"
"""The text of a requirement: a number or a range, an architecture, or both."""

_CORES = re.compile(CORES)
_AMOUNT = re.compile(r"[-+<>=]*[\d.…]")


@dataclass(frozen=True, slots=True)
class Cpu:
    """
    A requirement of CPUs. `count` is in millicores, None when only `arch` was said; `arch` is
    `x86`, `arm`, or empty for any.
    """

    count: Range | None
    arch: str = ""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Cpu:
        """Return the requirement whose canonical form is `document`."""
        count = Range.from_document(document) if "min" in document else None
        return cls(count, document.get("arch", ""))


def parse_cpu(value: Any) -> Cpu:
    """Read a requirement of CPUs in any of its forms."""
    if isinstance(value, Cpu):
        return value
    if isinstance(value, Mapping) and not set(value) & {"min", "max"}:
        return _parse_mapping(value)
    if not isinstance(value, str):
        return Cpu(_parse_cores_range(value))
    count: Range | None = None
    arch = ""
    for token in value.split(":"):
        part = token.strip()
        if not part:
            raise ValueError(_empty_problem(value))
        if _AMOUNT.match(part):
            if count is not None:
                raise ValueError(f"{shown(value)} sets the number of CPUs twice.")
            count = _parse_cores_range(part)
        elif arch:
            raise ValueError(f"{shown(value)} sets the architecture twice.")
        else:
            arch = _parse_arch(part, value)
    return Cpu(count, arch)


def cpu_document(cpu: Cpu) -> dict[str, Any]:
    """Return the canonical form: `min` and `max` when a count was said, `arch` when one was."""
    document: dict[str, Any] = {} if cpu.count is None else {**cpu.count.document()}
    if cpu.arch:
        document["arch"] = cpu.arch
    return document


def format_cpu(cpu: Cpu) -> str:
    """Write `x86:4..`, which `parse_cpu` reads back."""
    count = "" if cpu.count is None else format_range(cpu.count, format_millicores)
    return ":".join(part for part in (cpu.arch, count) if part)


def format_millicores(millicores: int) -> str:
    """Write cores with up to three decimals: 500 is `0.5`, 2000 is `2`."""
    assert millicores >= 0, millicores
    whole, rest = divmod(millicores, 1000)
    return f"{whole}.{rest:03d}".rstrip("0").rstrip(".")


def _parse_cores_range(value: Any) -> Range:
    return parse_range(value, _parse_cores, example="2..8")


def _parse_cores(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise unfit(value, "CPUs, such as 4 or `2..`")
    if isinstance(value, int) and abs(value) > COUNT_MAX:
        raise ValueError("The number of CPUs is too large.")
    text = value.strip() if isinstance(value, str) else f"{Decimal(repr(value)):f}"
    if not _CORES.fullmatch(text):
        raise ValueError(_cores_problem(text))
    return int(Decimal(text) * 1000)


def _parse_mapping(value: Mapping[str, Any]) -> Cpu:
    unknown = sorted(str(key) for key in value if key not in {"arch", "count"})
    if unknown:
        raise ValueError(
            f"{shown(unknown[0])} is not part of `cpu`; it has `arch` and `count`,"
            " or `min` and `max`."
        )
    if value.get("arch") is None and value.get("count") is None:
        raise ValueError("`cpu` has neither `arch` nor `count`; write for example `cpu: 4`.")
    arch = parse_part(value, "arch", lambda written: _parse_arch(str(written), str(written)))
    return Cpu(parse_part(value, "count", _parse_cores_range), arch or "")


def _parse_arch(text: str, whole: str) -> str:
    arch = text.lower()
    if arch in _ARCHITECTURES:
        return arch
    meant = _MEANT.get(arch)
    if meant is not None:
        fixed = re.sub(re.escape(text), meant, whole, count=1)
        raise ValueError(
            f"{shown(whole)} has the architecture {shown(text)}; write {shown(fixed)}."
        )
    raise ValueError(
        f"{shown(text)} is neither a number of CPUs nor an architecture (`x86`, `arm`);"
        " write for example `4`, `2..` or `x86:4`."
    )


def _empty_problem(value: str) -> str:
    if not value.strip():
        return "`cpu` is empty; write for example 4 or `2..`."
    return f"{shown(value)} has nothing on one side of a colon; write for example `x86:4`."


def _cores_problem(text: str) -> str:
    if text.startswith("-"):
        return f"{shown(text)} is negative; the least is 0."
    if re.fullmatch(r"\d{1,12}m", text, re.ASCII):
        return f"{shown(text)} counts in millicores; write `{format_millicores(int(text[:-1]))}`."
    if re.fullmatch(r"\d*\.\d+", text, re.ASCII):
        return f"{shown(text)} is finer than a thousandth of a CPU, or lacks the digit before its point."
    return f"{shown(text)} is not a number of CPUs; write for example 4, `0.5` or `2..`."
