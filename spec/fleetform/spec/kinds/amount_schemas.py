"""
JSON schemas of amounts, with the patterns of their parsers.

Not every mistake shows in a schema: it compares no two numbers, so `8..2` is valid for it. The
description of a part has the form of a field's docstring, examples included.
"""

from __future__ import annotations

from typing import Any

from fleetform.spec.quantities.cpu import ARCHITECTURE, CORES, CPU
from fleetform.spec.quantities.duration import DURATION, OFF, OFF_WORDS, SECONDS_MAX
from fleetform.spec.quantities.gpu import CAPABILITY, SLICE, VENDOR
from fleetform.spec.quantities.memory import SIZE
from fleetform.spec.quantities.patterns import DIGITS, EXPRESSION, exact_text, range_of, whole_text

Schema = dict[str, Any]

EXPRESSION_TEXT: Schema = {"type": "string", "pattern": EXPRESSION}
_NULL: Schema = {"type": "null"}


def text(pattern: str, *examples: str) -> Schema:
    """A text that its parser strips of spaces."""
    shown = {"examples": list(examples)} if examples else {}
    return {"type": "string", "pattern": whole_text(pattern), **shown}


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
