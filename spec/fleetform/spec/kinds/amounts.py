"""
Amounts as fields: the parsers of `quantities`, with what the schema says of each.

The schema's patterns are looser than the parsers on purpose: an editor should complete and
catch gross slips, and the exact message comes from loading. Descriptions in it have the form of
a field's docstring, examples included.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import PlainValidator, WithJsonSchema

from fleetform.spec.kinds.base import refuse
from fleetform.spec.quantities import (
    OFF,
    Cpu,
    Gpu,
    Range,
    parse_cpu,
    parse_disk,
    parse_duration,
    parse_gpu,
    parse_memory,
    parse_memory_range,
)

_Amount = TypeVar("_Amount")

_SIZE = r"\s*[0-9]+(\.[0-9]+)?\s*([TGMKtgmk]?[Bb])?\s*"
_EXPRESSION = {"type": "string", "pattern": r"\$\{\{"}


def _size_schema(example: str) -> dict[str, Any]:
    text = {"type": "string", "pattern": rf"^({_SIZE})?(\.\.({_SIZE})?)?$", "examples": [example]}
    number = {"type": "number", "minimum": 0, "description": "Gigabytes."}
    return {"text": text, "number": number}


_LEAST = "The least amount. Default: no minimum. Example: `{}`."
_MOST = "The largest amount. Default: no maximum. Example: `{}`."


def part(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """A part of an amount that may be left out: null says the same."""
    alternatives = schema.get("anyOf", [schema])
    return {"anyOf": [*alternatives, {"type": "null"}], "description": description}


def _ends(schema: dict[str, Any], least: str, most: str) -> dict[str, Any]:
    return {"min": part(schema, _LEAST.format(least)), "max": part(schema, _MOST.format(most))}


def _range_schema(example: str) -> dict[str, Any]:
    end = _size_schema("8GB")
    mapping = {
        "type": "object",
        "properties": _ends({"anyOf": [end["text"], end["number"]]}, "8GB", "64GB"),
        "additionalProperties": False,
        "minProperties": 1,
    }
    return {"anyOf": [*_size_schema(example).values(), mapping, _EXPRESSION]}


_COUNT = {"type": "integer", "minimum": 0}
_COUNT_TEXT = {"type": "string", "pattern": r"^\s*([0-9]+)?\s*(\.\.\s*([0-9]+)?)?\s*$"}
_COUNT_RANGE = {
    "anyOf": [
        _COUNT,
        _COUNT_TEXT,
        {
            "type": "object",
            "properties": _ends(_COUNT, "1", "8"),
            "additionalProperties": False,
            "minProperties": 1,
        },
    ]
}

_CPU_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {
            "type": "string",
            "pattern": r"^[A-Za-z0-9.:\s]+$",
            "examples": ["2..", "0.5", "4..8", "x86:4"],
        },
        {
            "type": "object",
            "properties": {
                **_ends({"type": ["number", "string"]}, "2", "8"),
                "arch": part(
                    {
                        "anyOf": [
                            {"enum": ["x86", "arm"]},
                            {"type": "string", "pattern": "^([Xx]86|[Aa][Rr][Mm])$"},
                        ]
                    },
                    "The architecture. Default: any. Example: `arm`.",
                ),
                "count": part(
                    {"type": ["number", "string", "object"]},
                    "Number of CPUs, or a range. Example: `2..`, `{min: 2, max: 8}`.",
                ),
            },
            "additionalProperties": False,
            "minProperties": 1,
        },
        _EXPRESSION,
    ]
}

_GPU_SCHEMA = {
    "anyOf": [
        _COUNT,
        {"type": "string", "minLength": 1, "examples": ["A100:80GB:1..8", "24GB..", "nvidia:2"]},
        {
            "type": "object",
            "properties": {
                "vendor": part(
                    {"type": "string"},
                    "The vendor. Default: the vendor of `name`, or any. Example: `nvidia`, `amd`.",
                ),
                "name": part(
                    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                    "The model, or a list of models of which any one satisfies. Example: `A100`, `[A100, H100]`.",
                ),
                "memory": part(
                    _range_schema("80GB"),
                    "Memory of one GPU, or a range. Example: `80GB`, `40GB..`.",
                ),
                "count": part(
                    _COUNT_RANGE,
                    "Number of GPUs of each node, or a range. Default: one or more. Example: `8`, `1..8`.",
                ),
                "slice": part(
                    {
                        "type": "string",
                        "pattern": r"^\s*([1-9]c\.)?[1-9]g\.[0-9]+gb([+-]me(\.all)?)?\s*$",
                    },
                    "A MIG slice of a GPU, as NVIDIA names it; `count` is then the number of slices. Example: `1g.10gb`.",
                ),
                "total_memory": part(
                    _range_schema("160GB.."),
                    "Memory of all GPUs of a node together, or a range. Example: `160GB..`.",
                ),
                "compute_capability": part(
                    {"type": ["number", "string", "array"]},
                    "The least compute capability. Example: `8.0`.",
                ),
            },
            "additionalProperties": False,
            "minProperties": 1,
        },
    ]
}

_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "description": "Seconds."},
        {
            "type": "string",
            "pattern": r"^\s*([0-9]+|([0-9]+\s*[wdhms]\s*)+)\s*$",
            "examples": ["90s", "5m", "2h", "1h30m"],
        },
        _EXPRESSION,
    ]
}


def _offable(schema: dict[str, Any]) -> dict[str, Any]:
    minus_one = {"type": "string", "pattern": r"^\s*-1\s*$"}
    return {"anyOf": [*schema["anyOf"], {"enum": ["off", False, -1]}, minus_one]}


def _remembered(parse: Callable[[Any], _Amount]) -> Callable[[Any], _Amount]:
    """
    The parser with a memory for texts: ten thousand documents say `8GB..` and little else.

    Texts only, because `1`, `1.0` and `true` are equal to a memory and not to a parser.
    """
    parse_text = functools.lru_cache(maxsize=1024)(parse)
    return lambda value: parse_text(value) if type(value) is str else parse(value)


def _exact(range_: Range, what: str) -> int:
    if range_.min is None or range_.min != range_.max:
        raise refuse("wrong-type", f"The capacity of a host is one amount of {what}, not a range.")
    return range_.min


def _capacity_cpu(value: Any) -> int:
    cpu = parse_cpu(value)
    if cpu.arch or cpu.count is None:
        raise refuse(
            "wrong-type",
            "The capacity of a host is a number of CPUs; their architecture is detected.",
            "Write for example `8`.",
        )
    return _exact(cpu.count, "CPUs")


def _capacity_gpu(value: Any) -> Gpu:
    gpu = parse_gpu(value)
    if gpu.total_memory or gpu.compute_capability or gpu.slice:
        raise refuse(
            "wrong-type",
            "The GPUs of a host are whole GPUs: name, memory of one GPU, and count.",
            "Write for example `A100:80GB:8`.",
        )
    if len(gpu.names) > 1:
        raise refuse("wrong-type", "The GPUs of a host have one name.")
    if gpu.count is None:
        raise refuse(
            "wrong-type", "The number of GPUs of the host is missing.", "Write `A100:80GB:8`."
        )
    _exact(gpu.count, "GPUs")
    if gpu.memory is not None:
        _exact(gpu.memory, "GPU memory")
    return gpu


def _duration(value: Any) -> int:
    return parse_duration(value)


def _limit(value: Any) -> int | None:
    seconds = parse_duration(value, off=True)
    return None if seconds == OFF else seconds


_AMOUNT_SCHEMA = {"anyOf": [*_size_schema("64GB").values(), _EXPRESSION]}

Cpus = Annotated[Cpu, PlainValidator(_remembered(parse_cpu)), WithJsonSchema(_CPU_SCHEMA)]
MemoryRange = Annotated[
    Range, PlainValidator(_remembered(parse_memory_range)), WithJsonSchema(_range_schema("8GB.."))
]
DiskRange = Annotated[
    Range,
    PlainValidator(_remembered(parse_disk)),
    WithJsonSchema(
        {
            "anyOf": [
                *_range_schema("100GB..")["anyOf"],
                {
                    "type": "object",
                    "properties": {"size": _range_schema("100GB..")},
                    "additionalProperties": False,
                    "required": ["size"],
                },
            ]
        }
    ),
]
Size = Annotated[int, PlainValidator(_remembered(parse_memory)), WithJsonSchema(_AMOUNT_SCHEMA)]
Gpus = Annotated[Gpu, PlainValidator(_remembered(parse_gpu)), WithJsonSchema(_GPU_SCHEMA)]
Duration = Annotated[int, PlainValidator(_remembered(_duration)), WithJsonSchema(_DURATION_SCHEMA)]
Limit = Annotated[
    int | None, PlainValidator(_remembered(_limit)), WithJsonSchema(_offable(_DURATION_SCHEMA))
]
"""A duration, or `off` for none."""
CapacityCpu = Annotated[int, PlainValidator(_capacity_cpu), WithJsonSchema(_CPU_SCHEMA)]
CapacityGpu = Annotated[Gpu, PlainValidator(_capacity_gpu), WithJsonSchema(_GPU_SCHEMA)]
