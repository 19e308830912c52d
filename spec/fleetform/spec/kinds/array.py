"""
Job arrays: `1-100:2%10` is the indices 1, 3, … 99, ten of them at a time.

The grammar is Slurm's (sbatch(1), --array): indices and spans with a step, separated by
commas, and the throttle behind a percent sign.
"""

from __future__ import annotations

import itertools
import re
from typing import Annotated, Any, NamedTuple

from pydantic import PlainValidator, WithJsonSchema

from fleetform.spec.bounds import ELEMENTS_MAX
from fleetform.spec.kinds.base import refuse
from fleetform.spec.quantities.ranges import shown, unfit

# Slurm's largest MaxArraySize.
INDEX_MAX = 4_000_000

_SPAN = re.compile(r"(\d{1,7})(?:\s*-\s*(\d{1,7})(?:\s*:\s*(\d{1,7}))?)?", re.ASCII)
_EXAMPLE = "Write for example `1-100`, `1-100:2%10` or `1,4,9`."


class Array(NamedTuple):
    """`indices` are in rising order; `throttle` None: no limit of its own."""

    indices: tuple[int, ...]
    throttle: int | None = None


def parse_array(value: Any) -> Array:
    """Read indices from a text, or from a list of whole numbers."""
    if isinstance(value, list | tuple):
        return Array(_checked([_index(item) for item in value]))
    if not isinstance(value, str):
        advice = f"Write `array: 1-{value}`." if type(value) is int and value > 0 else _EXAMPLE
        raise refuse("bad-array", str(unfit(value, "indices, such as `1-100`")), advice)
    spans, percent, limit = value.partition("%")
    throttle = None
    if percent:
        throttle = int(limit) if re.fullmatch(r"\s*\d{1,7}\s*", limit, re.ASCII) else 0
        if throttle < 1:
            raise refuse(
                "bad-array",
                f"{shown(value)} has no number of elements behind `%`.",
                "Write a number from 1 behind the `%`.",
            )
    ranges = [_span(span, value) for span in spans.split(",")]
    count = sum(len(span) for span in ranges)
    # Before they are made: a megabyte of spans may mean ten thousand million indices.
    if count > ELEMENTS_MAX:
        raise _too_many(count)
    return Array(_checked([index for span in ranges for index in span]), throttle)


def _span(text: str, whole: str) -> range:
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise refuse("bad-array", f"{shown(whole)} is not a list of indices.", _EXAMPLE)
    first = int(match[1])
    last = int(match[2] or first)
    step = int(match[3] or 1)
    if last < first:
        raise refuse("bad-array", f"{shown(text)} runs backwards.", f"Write `{last}-{first}`.")
    if step < 1:
        raise refuse("bad-array", f"The step of {shown(text)} is 0.", "Write a step from 1.")
    if (last - first) // step >= ELEMENTS_MAX:
        raise _too_many((last - first) // step + 1)
    return range(first, last + 1, step)


def _index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise refuse("bad-array", str(unfit(value, "an index from 0")), _EXAMPLE)
    return value


def _checked(indices: list[int]) -> tuple[int, ...]:
    if not indices:
        raise refuse("bad-array", "The array has no elements.", _EXAMPLE)
    if len(indices) > ELEMENTS_MAX:
        raise _too_many(len(indices))
    ordered = sorted(indices)
    if ordered[-1] > INDEX_MAX:
        raise refuse("bad-array", f"The index {ordered[-1]} is above {INDEX_MAX}, the largest.")
    for one, following in itertools.pairwise(ordered):
        if one == following:
            raise refuse("said-twice", f"The index {one} occurs twice.", "Remove one of the two.")
    return tuple(ordered)


def _too_many(count: int) -> Exception:
    return refuse(
        "too-many-elements",
        f"This declares {count} elements; one document may declare {ELEMENTS_MAX}.",
        "Let each element do more, or declare several documents.",
    )


ArraySpec = Annotated[
    Array,
    PlainValidator(parse_array),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "string",
                    "pattern": r"^[0-9][0-9,:\s-]*(%\s*[0-9]+\s*)?$",
                    "examples": ["1-100", "1-100:2%10"],
                },
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
            ]
        }
    ),
]
