"""What one node of a run needs of its host, and what a host has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import model_validator

from fleetform.spec.field_facts import UNSUPPORTED, Facts, of_hosts, per_kind, supported_by, unit
from fleetform.spec.kinds.base import Model, read_by, refuse
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
from fleetform.spec.quantities.cpu import ARCHITECTURE, CORES, CPU
from fleetform.spec.quantities.devices import UUID, parse_devices
from fleetform.spec.quantities.duration import DURATION, OFF_WORDS, SECONDS_MAX
from fleetform.spec.quantities.gpu import CAPABILITY, SLICE, VENDOR
from fleetform.spec.quantities.memory import SIZE
from fleetform.spec.quantities.ranges import (
    DIGITS,
    EXPRESSION,
    exact_text,
    range_of,
    shown,
    whole_text,
)

# Amounts as fields: the parsers of `quantities` and the JSON schemas of what they read.
#
# Not every mistake shows in a schema: it compares no two numbers, so `8..2` is valid for it. The
# description of a part has the form of a field's docstring, examples included.

Schema = dict[str, Any]

EXPRESSION_TEXT: Schema = {"type": "string", "pattern": EXPRESSION}
_NULL: Schema = {"type": "null"}


def text(pattern: str, *examples: str) -> Schema:
    """A text that its parser strips of spaces."""
    facts = {"examples": list(examples)} if examples else {}
    return {"type": "string", "pattern": whole_text(pattern), **facts}


def decimal(pattern: str) -> Schema:
    """A number above 0, or a text that its parser reads as one."""
    written = {"type": "string", "pattern": pattern}
    return {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, written, EXPRESSION_TEXT]}


def mapping(properties: Schema) -> Schema:
    """A mapping of which at least one part has a value."""
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        # Parts that are all null are no value either.
        "not": {"additionalProperties": _NULL},
    }


def part(schema: Schema, description: str) -> Schema:
    """A part of an amount that may be left out: null says the same."""
    return {"anyOf": [*schema.get("anyOf", [schema]), _NULL], "description": description}


def _ends(schema: Schema, least: str, most: str) -> Schema:
    return {
        "min": part(schema, f"The least amount. Default: no minimum. Example: `{least}`."),
        "max": part(schema, f"The largest amount. Default: no maximum. Example: `{most}`."),
    }


# Counts

WHOLE: Schema = {"type": "integer", "minimum": 0}
COUNT: Schema = {"anyOf": [WHOLE, text(DIGITS)]}
COUNT_RANGE: Schema = {
    "anyOf": [WHOLE, text(range_of(DIGITS), "2", "1..8"), mapping(_ends(COUNT, "1", "8"))]
}

# Sizes

# From here on the bytes do not fit into 64 bits.
_GIGABYTES: Schema = {
    "type": "number",
    "minimum": 0,
    "exclusiveMaximum": 2**33,
    "description": "Gigabytes.",
}
AMOUNT: Schema = {"anyOf": [text(SIZE, "64GB"), _GIGABYTES, EXPRESSION_TEXT]}


def size_range(example: str) -> Schema:
    """A range of sizes."""
    end = {"anyOf": [text(SIZE, "8GB"), _GIGABYTES]}
    ranges = text(range_of(SIZE), example)
    return {"anyOf": [ranges, _GIGABYTES, mapping(_ends(end, "8GB", "64GB")), EXPRESSION_TEXT]}


DISK: Schema = {
    "anyOf": [
        *size_range("100GB..")["anyOf"],
        {
            "type": "object",
            "properties": {"size": size_range("100GB..")},
            "additionalProperties": False,
            "required": ["size"],
        },
    ]
}

# CPUs

_CORES_NUMBER: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": 10**15}
_CORES: Schema = {"anyOf": [_CORES_NUMBER, text(CORES)]}
_CORES_RANGE: Schema = {
    "anyOf": [_CORES_NUMBER, text(range_of(CORES)), mapping(_ends(_CORES, "2", "8"))]
}
_COUNT_OF_CPUS = part(
    _CORES_RANGE, "Number of CPUs, or a range. Example: `2..`, `{min: 2, max: 8}`."
)
_ARCHITECTURE = part(
    {"anyOf": [{"enum": ["x86", "arm"]}, {"type": "string", "pattern": exact_text(ARCHITECTURE)}]},
    "The architecture. Default: any. Example: `arm`.",
)
CPUS: Schema = {
    "anyOf": [
        _CORES_NUMBER,
        text(CPU, "2..", "0.5", "4..8", "x86:4"),
        mapping(_ends(_CORES, "2", "8")),
        mapping({"arch": _ARCHITECTURE, "count": _COUNT_OF_CPUS}),
        EXPRESSION_TEXT,
    ]
}
# The two ends of a range may be the same number, which no pattern can say.
EXACT_CPUS: Schema = {
    "anyOf": [
        _CORES_NUMBER,
        text(rf"{CORES}(?:\s*\.\.\s*{CORES})?", "64"),
        mapping(_ends(_CORES, "8", "8")),
        mapping({"count": _COUNT_OF_CPUS}),
        EXPRESSION_TEXT,
    ]
}

# GPUs

GPUS: Schema = {
    "anyOf": [
        WHOLE,
        {"type": "string", "minLength": 1, "examples": ["A100:80GB:1..8", "24GB..", "nvidia:2"]},
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "vendor": part(
                    {"type": "string", "pattern": exact_text(f"(?:{VENDOR})?")},
                    "The vendor. Default: the vendor of `name`, or any. Example: `nvidia`, `amd`.",
                ),
                "name": part(
                    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                    "The model, or a list of models of which any one satisfies. Example: `A100`, `[A100, H100]`.",
                ),
                "memory": part(
                    size_range("80GB"),
                    "Memory of one GPU, or a range. Example: `80GB`, `40GB..`.",
                ),
                "count": part(
                    COUNT_RANGE,
                    "Number of GPUs of each node, or a range. Default: one or more. Example: `8`, `1..8`.",
                ),
                "slice": part(
                    text(SLICE),
                    "A MIG slice of a GPU, as NVIDIA names it; `count` is then the number of slices. Example: `1g.10gb`.",
                ),
                "total_memory": part(
                    size_range("160GB.."),
                    "Memory of all GPUs of a node together, or a range. Example: `160GB..`.",
                ),
                "compute_capability": part(
                    {
                        "anyOf": [
                            {"type": "number", "minimum": 0, "exclusiveMaximum": 1000},
                            {"type": "string", "pattern": exact_text(CAPABILITY)},
                            {"type": "array", "minItems": 2, "maxItems": 2},
                        ]
                    },
                    "The least compute capability. Example: `8.0`.",
                ),
            },
        },
    ]
}

DEVICES: Schema = {
    "type": "array",
    "items": {"anyOf": [WHOLE, {"type": "string", "pattern": exact_text(UUID)}]},
    "uniqueItems": True,
}

# Durations

_SECONDS: Schema = {"type": "integer", "minimum": 0, "exclusiveMaximum": SECONDS_MAX + 1}
_EXAMPLES = ("90s", "5m", "2h", "1h30m")
TIME: Schema = {
    "anyOf": [
        {**_SECONDS, "description": "Seconds."},
        text(DURATION, *_EXAMPLES),
        EXPRESSION_TEXT,
    ]
}
TIME_OR_OFF: Schema = {
    "anyOf": [
        {**_SECONDS, "minimum": OFF, "description": f"Seconds; {OFF} means `off`."},
        text("|".join((*OFF_WORDS, DURATION)), *_EXAMPLES),
        {"enum": ["off", False]},
        EXPRESSION_TEXT,
    ]
}


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
    millicores = _exact(cpu.count, "CPUs")
    if not millicores:
        raise refuse(
            "bad-value",
            "A host with 0 CPUs runs no job.",
            "Write its number of CPUs, remove `cpu` to have it detected, or set `drain:` for a host that"
            " is to get no jobs.",
        )
    return millicores


_CAPACITY_MEMORY_MIN_BYTES = 64 << 20
"""The process that watches a job needs half of it; less is a unit that is mistyped."""


def _capacity_memory(value: Any) -> int:
    size = parse_memory(value)
    if size < _CAPACITY_MEMORY_MIN_BYTES:
        raise refuse(
            "bad-value",
            f"A host with {shown(value)} of memory runs no job: the least is 64MB.",
            "Write its memory, as `256GB`, or remove `memory` to have it detected.",
        )
    return size


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


Cpus = Annotated[Cpu, *read_by(_remembered(parse_cpu), CPUS, "millicores")]
MemoryRange = Annotated[
    Range, *read_by(_remembered(parse_memory_range), size_range("8GB.."), "bytes")
]
DiskRange = Annotated[Range, *read_by(_remembered(parse_disk), DISK, "bytes")]
Size = Annotated[int, *read_by(_remembered(parse_memory), AMOUNT, "bytes")]
Gpus = Annotated[Gpu, *read_by(_remembered(parse_gpu), GPUS)]
Duration = Annotated[int, *read_by(_remembered(_duration), TIME, "seconds")]
Limit = Annotated[int | None, *read_by(_remembered(_limit), TIME_OR_OFF, "seconds")]
"""A duration, or `off` for none."""
CapacityCpu = Annotated[int, *read_by(_capacity_cpu, EXACT_CPUS, "millicores")]
CapacityMemory = Annotated[int, *read_by(_capacity_memory, AMOUNT, "bytes")]
CapacityGpu = Annotated[Gpu, *read_by(_capacity_gpu, GPUS)]
Devices = Annotated[tuple[int | str, ...], *read_by(parse_devices, DEVICES)]


class Resources(Model):
    """
    The resources that each node requires. `sharing` of the fleet decides about resources that are
    not set.
    """

    other_facts: ClassVar[Mapping[str, tuple[Facts, ...]]] = {
        "gpu.memory": (unit("bytes"),),
        "gpu.slice": (UNSUPPORTED,),
        "gpu.total_memory": (UNSUPPORTED, unit("bytes")),
        "gpu.compute_capability": (UNSUPPORTED,),
    }

    cpu: Cpus | None = None
    """
    Number of CPUs, or a range, and optionally their architecture. A fraction such as `0.5` is
    allowed. Example: `2..`, `0.5`, `4..8`, `x86:4`, `{arch: arm, count: 8..}`.
    """

    memory: MemoryRange | None = None
    """
    Memory, or a range. The job is limited to the memory that it receives. Example: `8GB..`, `16GB`.
    """

    disk: Annotated[DiskRange | None, per_kind(fleet=of_hosts("plan"))] = None
    """Free disk space, or a range. Example: `100GB..`, `{size: 100GB}`."""

    shm_size: Annotated[Size | None, supported_by("agents.host")] = None
    """
    Size of the shared memory at `/dev/shm`, which the data loaders of PyTorch use. Example: `16GB`.
    """

    gpu: Gpus | None = None
    """
    GPUs as `NAME:MEMORY:COUNT`, where each part is optional, or as a mapping. Of several names any
    one satisfies; `MEMORY` is of one GPU. A mapping also accepts `vendor`, `total_memory` (of all
    GPUs together), `compute_capability` (the least), and `slice` (a MIG slice). Example:
    `A100:80GB:1..8`, `24GB..`, `nvidia:2`, `{name: [A100, H100], count: 8}`, `{name: A100, slice:
    1g.10gb, count: 2}`, `{total_memory: 160GB.., compute_capability: 8.0}`.
    """


class Capacity(Model):
    """The resources of one node. Resources that are not set are detected."""

    other_facts: ClassVar[Mapping[str, tuple[Facts, ...]]] = {"gpu.memory": (unit("bytes"),)}

    cpu: CapacityCpu | None = None
    """
    Number of CPUs of a node. It may be larger than that of the machine. Default: detected. Example:
    `256`, `0.5`.
    """

    memory: CapacityMemory | None = None
    """Memory of a node, at least 64MB. Default: detected. Example: `256GB`."""

    disk: Size | None = None
    """Disk space of a node. Default: detected. Example: `1TB`."""

    gpu: CapacityGpu | None = None
    """
    GPUs of a node: name, memory of one GPU, and count. Default: detected. Example: `A100:80GB:8`.
    """


class HostCapacity(Capacity):
    """The resources of one host. Resources that are not set are detected."""

    # A local fleet has no `devices`: it divides the GPUs of this machine among its nodes.
    devices: Devices | None = None
    """
    The GPUs of the host that this environment may use, by index or UUID as `nvidia-smi -L` shows
    them; environments that share a host declare different ones. An empty list means none. Not
    together with `gpu`. Default: all. Example: `[0, 1]`, `[GPU-5e1f0c2a-9d3b-4f6e-8a71-2c4d6e8f0a1b]`.
    """

    @model_validator(mode="after")
    def _has_one_source_of_gpus(self) -> Self:
        if self.gpu is not None and self.devices is not None:
            raise refuse(
                "contradiction",
                "`gpu` replaces the GPUs that the host has, and `devices` selects among them.",
                "Remove one of the two.",
            )
        return self
