"""
Amounts as fields: the parsers of `quantities` with the schemas of `amount_schemas`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import PlainValidator, WithJsonSchema

from fleetform.spec.field_facts import unit
from fleetform.spec.kinds import amount_schemas
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


Cpus = Annotated[
    Cpu,
    PlainValidator(_remembered(parse_cpu)),
    WithJsonSchema(amount_schemas.CPUS),
    unit("millicores"),
]
MemoryRange = Annotated[
    Range,
    PlainValidator(_remembered(parse_memory_range)),
    WithJsonSchema(amount_schemas.size_range("8GB..")),
    unit("bytes"),
]
DiskRange = Annotated[
    Range,
    PlainValidator(_remembered(parse_disk)),
    WithJsonSchema(amount_schemas.DISK),
    unit("bytes"),
]
Size = Annotated[
    int,
    PlainValidator(_remembered(parse_memory)),
    WithJsonSchema(amount_schemas.AMOUNT),
    unit("bytes"),
]
Gpus = Annotated[Gpu, PlainValidator(_remembered(parse_gpu)), WithJsonSchema(amount_schemas.GPUS)]
Duration = Annotated[
    int,
    PlainValidator(_remembered(_duration)),
    WithJsonSchema(amount_schemas.TIME),
    unit("seconds"),
]
Limit = Annotated[
    int | None,
    PlainValidator(_remembered(_limit)),
    WithJsonSchema(amount_schemas.TIME_OR_OFF),
    unit("seconds"),
]
"""A duration, or `off` for none."""
CapacityCpu = Annotated[
    int,
    PlainValidator(_capacity_cpu),
    WithJsonSchema(amount_schemas.EXACT_CPUS),
    unit("millicores"),
]
CapacityGpu = Annotated[Gpu, PlainValidator(_capacity_gpu), WithJsonSchema(amount_schemas.GPUS)]
