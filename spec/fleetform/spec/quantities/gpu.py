"""
GPUs: `8`, `A100`, `A100:80GB:8`, `nvidia:1..8`, `40GB..80GB:2`, `A100,H100:2`, or a mapping.

A token is known by its looks and not by its position, as in dstack: a vendor, a count (whole
numbers), memory (it has a unit), or names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fleetform.spec.quantities.memory import format_bytes, parse_memory_range
from fleetform.spec.quantities.ranges import (
    Range,
    either_case,
    format_range,
    parse_int_range,
    parse_part,
    shown,
    unfit,
)

__all__ = [
    "CAPABILITY",
    "GPU_NAMES",
    "SLICE",
    "VENDOR",
    "Gpu",
    "format_gpu",
    "gpu_document",
    "is_gpu_name",
    "model_words",
    "parse_gpu",
]


_VENDORS = {
    "nvidia": "nvidia", "amd": "amd", "intel": "intel", "google": "google", "tpu": "google",
    "tenstorrent": "tenstorrent", "tt": "tenstorrent",
}  # fmt: skip
# Prefixes of Slurm and Kubernetes; no model has such a name.
_NO_NAMES = frozenset({"gpu", "gpus", "gres", "gres/gpu", "nvidia.com/gpu", "amd.com/gpu"})
_FIELDS = ("vendor", "name", "count", "memory", "slice", "total_memory", "compute_capability")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._+-]*[A-Za-z0-9+])?", re.ASCII)

VENDOR = "|".join(map(either_case, _VENDORS))
"""The text of a vendor."""

CAPABILITY = r"([0-9]{1,3})(?:\.([0-9]{1,3}))?"
"""The text of a compute capability."""

_AMOUNT = re.compile(r"[-+<>=.…]*\d[\d\s.…+-]*|\.+|…", re.ASCII)
_SIZE = r"\d+(?:\.\d+)?\s*[KMGTP]?(?:i?B?)?"
# Longer than both ends of a range; the spaces between them take cubic time.
_MEMORY_LENGTH_MAX = 100
_MEMORY = re.compile(
    rf"[<>=]*(?:{_SIZE})?\s*(?:\.{{2,}}|…|-)?\s*(?:{_SIZE})?\+?", re.ASCII | re.IGNORECASE
)
# NVIDIA's names of MIG profiles, `1g.10gb`, `1c.3g.40gb`, `1g.10gb+me` (MIG User Guide).
SLICE = r"(?:[1-9][Cc]\.)?[1-9][Gg]\.[0-9]{1,3}[Gg][Bb](?:[+-][Mm][Ee](?:\.[Aa][Ll][Ll])?)?"
"""The text of a slice."""

_SLICE = re.compile(SLICE)
# `H100x8` and `8xH100`, as clouds and papers write eight of them.
_TIMES_BEHIND = re.compile(r"\s?[xX*]\s?([1-9]\d{0,2})$", re.ASCII)
_TIMES_BEFORE = re.compile(r"([1-9]\d{0,2})\s?[xX*]\s?(?=[A-Za-z])", re.ASCII)
# Hosts of other vendors have at most as many. `A100:80` is dstack for eighty GPUs, and nearly always a slip for 80GB.
_COUNT_UNASKED_MAX = 16


@dataclass(frozen=True, slots=True)
class Gpu:
    """
    A requirement of GPUs. Only what was said is set; a count that was not said is one or more.

    Attributes:
        vendor: Lower case; empty for any.
        names: Any of these will do; empty for any. As written: matching ignores case.
        count: GPUs a node.
        memory: Bytes of one GPU.
        total_memory: Bytes of a node's GPUs together.
        compute_capability: The least, (major, minor).
        slice: A part of a GPU, as NVIDIA names it: `1g.10gb`; then `count` counts parts. Empty
            for whole GPUs.
    """

    vendor: str = ""
    names: tuple[str, ...] = ()
    count: Range | None = None
    memory: Range | None = None
    total_memory: Range | None = None
    compute_capability: tuple[int, int] | None = None
    slice: str = ""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Gpu:
        """Return the requirement whose canonical form is `document`."""
        ranges = {
            name: Range.from_document(document[name])
            for name in ("count", "memory", "total_memory")
            if name in document
        }
        major, minor = document.get("compute_capability", (0, 0))
        return cls(
            vendor=document.get("vendor", ""),
            names=tuple(document.get("name", ())),
            compute_capability=(major, minor) if "compute_capability" in document else None,
            slice=document.get("slice", ""),
            **ranges,
        )


def parse_gpu(value: Any) -> Gpu:
    """Read a requirement of GPUs in any of its forms."""
    if isinstance(value, Gpu):
        return value
    if isinstance(value, Mapping):
        return _parse_mapping(value)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise unfit(value, "GPUs, such as `A100:80GB:2` or 2")
    gpu = Gpu()
    text = value if isinstance(value, str) else str(parse_int_range(value).min)
    for token in text.split(":"):
        gpu = _with_token(gpu, token.strip(), text)
    _ask_unlikely_count(gpu, text)
    return gpu


def gpu_document(gpu: Gpu) -> dict[str, Any]:
    """Return the canonical form; parts that were not said are absent."""
    parts: dict[str, Any] = {
        "vendor": gpu.vendor or None,
        "name": list(gpu.names) or None,
        "memory": gpu.memory and gpu.memory.document(),
        "count": gpu.count and gpu.count.document(),
        "slice": gpu.slice or None,
        "total_memory": gpu.total_memory and gpu.total_memory.document(),
        "compute_capability": gpu.compute_capability and list(gpu.compute_capability),
    }
    return {name: part for name, part in parts.items() if part is not None}


def format_gpu(gpu: Gpu) -> str:
    """
    Write `nvidia:A100:80GB:1..8`, which `parse_gpu` reads back.

    Slices, total memory and compute capability have no place in that text and are left to the
    caller.
    """
    count = gpu.count
    parts = [
        gpu.vendor,
        ",".join(gpu.names),
        "" if gpu.memory is None else format_range(gpu.memory, format_bytes),
        "" if count is None else format_range(count),
    ]
    if count is not None and count.min == count.max and _is_unlikely(gpu):
        parts[-1] = f"{count.min}..{count.max}"
    return ":".join(part for part in parts if part)


def _with_token(gpu: Gpu, token: str, text: str) -> Gpu:
    if not token:
        raise ValueError(_empty_problem(text))
    if token.lower() in _VENDORS:
        _once(gpu.vendor, "vendor", text)
        return replace(gpu, vendor=_VENDORS[token.lower()])
    if _AMOUNT.fullmatch(token):
        _once(gpu.count, "count", text)
        return replace(gpu, count=parse_int_range(token))
    if _is_memory(token):
        _once(gpu.memory, "memory", text)
        return replace(gpu, memory=parse_memory_range(token))
    if token.lower() in _NO_NAMES:
        raise ValueError(_no_name_problem(token, text))
    _once(gpu.names, "name", text, advice="; several names are separated by commas")
    if times := _times(token):
        name, count = times
        meant = ":".join(
            f"{name}:{count}" if one.strip() == token else one for one in text.split(":")
        )
        raise ValueError(f"{shown(token)} is not a GPU's name; write {shown(meant)}.")
    return replace(gpu, names=_parse_names(token.split(","), text))


def _times(written: str) -> tuple[str, str] | None:
    """Return name and count of a word that says both."""
    if before := _TIMES_BEFORE.match(written):
        return written[before.end() :], before[1]
    behind = _TIMES_BEHIND.search(written[-6:])
    name = written[: -len(behind[0])] if behind else ""
    # Models have an `x` too, with no digit before it: `RTX4090`, `GTX16`; or with none behind it: `MI300X`.
    return (name, behind[1]) if behind and any(map(str.isdigit, name)) else None


def _is_memory(token: str) -> bool:
    # `80G` and `80Gi` are taken for memory too, so that their advice is about units.
    return len(token) <= _MEMORY_LENGTH_MAX and _MEMORY.fullmatch(token) is not None


def _parse_names(names: list[str], text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for written in names:
        name = written.strip()
        if not name:
            raise ValueError(f"{shown(text)} has an empty name between its commas.")
        if name.lower() in _NO_NAMES:
            raise ValueError(f"{shown(name)} is not a GPU's name; leave it out for any model.")
        if times := _times(name):
            raise ValueError(
                f"{shown(name)} is not a GPU's name; write the name {shown(times[0])} and the count"
                f" {times[1]} each by itself."
            )
        if not _NAME.fullmatch(name):
            raise ValueError(f"{shown(name)} is not a GPU's name, such as `A100` or `RTX4090`.")
        # dstack's own spelling of a TPU; the name is what follows.
        found.setdefault(name[4:] if name.lower().startswith("tpu-") and name[4:] else name)
    return tuple(found)


def _parse_mapping(value: Mapping[str, Any]) -> Gpu:
    unknown = sorted(str(key) for key in value if key not in _FIELDS)
    if unknown:
        raise ValueError(
            f"{shown(unknown[0])} is not part of `gpu`; it has {', '.join(_FIELDS[:-1])}"
            f" and {_FIELDS[-1]}."
        )
    if value.get("slice") is not None and value.get("memory") is not None:
        raise ValueError("A slice has its memory in its name; leave out `memory`.")
    return Gpu(
        vendor=parse_part(value, "vendor", _parse_vendor) or "",
        names=parse_part(value, "name", _parse_name_field) or (),
        count=parse_part(value, "count", parse_int_range),
        memory=parse_part(value, "memory", parse_memory_range),
        total_memory=parse_part(value, "total_memory", parse_memory_range),
        compute_capability=parse_part(value, "compute_capability", _parse_capability),
        slice=parse_part(value, "slice", _parse_slice) or "",
    )


def _parse_vendor(value: Any) -> str:
    vendor = str(value).lower()
    if vendor and vendor not in _VENDORS:
        known = ", ".join(sorted(set(_VENDORS.values())))
        raise ValueError(f"{shown(vendor)} is not a known vendor of GPUs: {known}.")
    return _VENDORS.get(vendor, "")


def _parse_name_field(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return _parse_names(value.split(","), value)
    if isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value):
        return _parse_names(list(value), ", ".join(value))
    raise unfit(value, "a GPU's name, or a list of names")


def _parse_capability(value: Any) -> tuple[int, int]:
    if isinstance(value, (list, tuple)) and len(value) == 2:
        value = f"{value[0]}.{value[1]}"
    match = re.fullmatch(CAPABILITY, str(value))
    if match is None or isinstance(value, bool):
        raise ValueError(f"{shown(value)} is not a compute capability, such as `8.0`.")
    return int(match[1]), int(match[2] or 0)


def _parse_slice(value: Any) -> str:
    text = value.strip().lower() if isinstance(value, str) else ""
    if not _SLICE.fullmatch(text):
        raise ValueError(f"{shown(value)} is not a slice of a GPU, such as `1g.10gb`.")
    return text


def _ask_unlikely_count(gpu: Gpu, text: str) -> None:
    count = gpu.count
    if count is None or count.min != count.max or not _is_unlikely(gpu) or ".." in text:
        return
    number = f"{count.max}"
    meant = [f"{number}GB" if token.strip() == number else token for token in text.split(":")]
    exact = [
        f"{number}..{number}" if token.strip() == number else token for token in text.split(":")
    ]
    raise ValueError(
        f"{shown(text)} asks for {number} GPUs on one node. If memory is meant, write"
        f" {shown(':'.join(meant))}; if it is {number} GPUs, write {shown(':'.join(exact))}."
    )


def _is_unlikely(gpu: Gpu) -> bool:
    return (
        gpu.memory is None
        and gpu.count is not None
        and gpu.count.max is not None
        and gpu.count.max > _COUNT_UNASKED_MAX
        and not _is_tenstorrent(gpu)
    )


def _is_tenstorrent(gpu: Gpu) -> bool:
    # A Galaxy of this vendor has 32 in one host.
    names = [name.lower() for name in gpu.names]
    return gpu.vendor == "tenstorrent" or any(name.startswith("tt-") for name in names)


def _once(part: object, noun: str, text: str, *, advice: str = "") -> None:
    if part:
        raise ValueError(f"{shown(text)} sets the {noun} twice{advice}.")


def _no_name_problem(token: str, text: str) -> str:
    rest = ":".join(part for part in text.split(":") if part.strip().lower() not in _NO_NAMES)
    said = f"{shown(token)} in {shown(text)}" if token != text else shown(token)
    amount = not rest or _AMOUNT.fullmatch(rest.strip())
    why = "which is of any model" if amount else f"without the `{token.lower()}:` of others"
    return f"{said} is not a GPU's name; write {shown(rest or '1')}, {why}."


def _empty_problem(text: str) -> str:
    if not text.strip():
        return "`gpu` is empty; write for example `A100:80GB:2`, or 0 for none."
    return f"{shown(text)} has nothing on one side of a colon; write for example `A100:80GB:2`."


# Names of GPUs and other accelerators that are on sale, for the advice on a name that is none.
#
# New models appear at any time, so an unknown name is never refused. A configuration, a catalogue
# and a driver may spell one model differently (`RTX4090`, `rtx_4090`, `NVIDIA GeForce RTX 4090`);
# `model_words` leaves what they have in common.

# The models that the product pages of the vendors list, in the spelling of dstack and of its
# catalogue gpuhunt (https://github.com/dstackai/gpuhunt), which leave out the brand and spaces.
_NVIDIA = """
    A2 A10 A10G A10M A16 A30 A40 A100 A100X A800 B100 B200 B300 GB10 GB200 GB300 GH200 H20 H100
    H100NVL H200 H200NVL H800 K20 K40 K80 L2 L4 L20 L40 L40G L40S M4 M10 M40 M60 P4 P6 P40 P100
    T4 T4G V100 V100S
    A2000 A4000 A4500 A5000 A5500 A6000 RTXA2000 RTXA4000 RTXA4500 RTXA5000 RTXA5500 RTXA6000
    RTX2000Ada RTX4000Ada RTX4500Ada RTX5000Ada RTX5880Ada RTX6000Ada RTX3000 RTX4000 RTX5000
    RTX6000 RTX8000 RTXPRO2000 RTXPRO4000 RTXPRO4500 RTXPRO5000 RTXPRO6000 RTXPRO6000MaxQ
    RTXPRO6000WK
    P1000 P2000 P4000 P5000 P6000 GP100 GV100 T400 T600 T1000 TitanX TitanXp TitanV TitanRTX
    GTX970 GTX980 GTX980Ti GTX1050 GTX1050Ti GTX1060 GTX1070 GTX1070Ti GTX1080 GTX1080Ti GTX1650
    GTX1660 GTX1660Ti
    RTX2060 RTX2070 RTX2080 RTX2080Ti RTX3050 RTX3060 RTX3060Ti RTX3070 RTX3070Ti RTX3080
    RTX3080Ti RTX3090 RTX3090Ti RTX4060 RTX4060Ti RTX4070 RTX4070Ti RTX4080 RTX4090 RTX4090D
    RTX5050 RTX5060 RTX5060Ti RTX5070 RTX5070Ti RTX5080 RTX5090 RTX5090D
    Orin Xavier Thor
"""
_AMD = """
    MI25 MI50 MI60 MI100 MI210 MI250 MI250X MI300 MI300A MI300X MI308X MI325X MI350X MI355X
    V340 V520 V620 V710 W6800 W7800 W7900 RX6800 RX6800XT RX6900XT RX7600 RX7700XT RX7800XT
    RX7900XT RX7900XTX RX9070 RX9070XT
"""
_INTEL = """
    Gaudi Gaudi2 Gaudi3 Max1100 Max1450 Max1550 Flex140 Flex170 A380 A750 A770 B570 B580 B50 B60
"""
# `v5litepod` and `v5e` are two names of one.
_GOOGLE = "v2 v3 v4 v5e v5litepod v5p v6e v7 v7x TPU7x"
_TENSTORRENT = "N150 N150d N150s N300 N300d N300s P100a P150 P150a P150b P300"

_BRANDS = frozenset({"nvidia", "tesla", "geforce", "quadro", "amd", "radeon", "instinct", "intel"})
"""Words before the model that people leave out. `RTX` is not one: there are T4 and RTX 4000."""

GPU_NAMES = {
    name.lower(): name for name in f"{_NVIDIA} {_AMD} {_INTEL} {_GOOGLE} {_TENSTORRENT}".split()
}
"""Each model as it is written, by its name in lower case."""


def model_words(name: str) -> list[str]:
    """Return the words of a model's name in lower case, without the brand."""
    words = [word for word in re.split(r"[^a-z0-9.]+", name.lower()) if word]
    return [word for word in words if word not in _BRANDS] or words


def is_gpu_name(name: str) -> bool:
    """Tell whether a name begins with that of a known model: `A100-SXM4-80GB` does."""
    built = ""
    for word in model_words(name):
        built += word
        # Cards of one series may be named without it: `4090`.
        if built in GPU_NAMES or f"rtx{built}" in GPU_NAMES or f"gtx{built}" in GPU_NAMES:
            return True
    return False
