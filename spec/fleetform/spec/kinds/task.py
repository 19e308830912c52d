"""A task: commands that run to their end, once, on one host or several, or as a sweep or an array."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.bounds import ELEMENTS_MAX
from fleetform.spec.field_facts import control, execution, identity
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    Whole,
    contradiction,
    listed,
    read_by,
    refuse,
    storable,
)
from fleetform.spec.kinds.commands import Commands, warn_of_secret_parameters, without_nul
from fleetform.spec.kinds.groups import NodeGroups, name_problems, only_in_groups
from fleetform.spec.kinds.offers import Text
from fleetform.spec.kinds.ports import Ports
from fleetform.spec.kinds.run import Run
from fleetform.spec.quantities.ranges import shown, unfit

# Job arrays: `1-100:2%10` is the indices 1, 3, … 99, ten of them at a time.
# The grammar is Slurm's (sbatch(1), --array): indices and spans with a step, separated by
# commas, and the throttle behind a percent sign.
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
    *read_by(
        parse_array,
        {
            "anyOf": [
                {
                    "type": "string",
                    "pattern": r"^[0-9][0-9,:\s-]*(%\s*[0-9]+\s*)?$",
                    "examples": ["1-100", "1-100:2%10"],
                },
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
            ]
        },
    ),
]

Scalar = str | int | float | bool


def _matrix(value: Any) -> Any:
    if not isinstance(value, Mapping) or not value:
        raise refuse(
            "wrong-type",
            str(unfit(value, "parameters with their values, such as `{lr: [0.1, 0.01]}`")),
        )
    return {key: _axis(key, item) for key, item in value.items()}


def _axis(key: str, value: Any) -> list[Scalar]:
    if not _is_parameter(key):
        raise refuse(
            "bad-name",
            f"{shown(key)} cannot be the name of a parameter.",
            "Use letters, digits and `_`, with no digit in front.",
        )
    values = value if isinstance(value, list | tuple) else [value]
    if not values:
        raise refuse(
            "bad-value", f"The parameter `{key}` has no values.", "Remove it, or give it one."
        )
    for item in values:
        if not isinstance(item, Scalar):
            raise refuse(
                "wrong-type",
                f"A value of `{key}`: {unfit(item, 'a string, a number or a boolean')}",
            )
        if isinstance(item, str):
            storable(item)
    return list(values)


def _is_parameter(key: str) -> bool:
    # It becomes part of a variable's name, FLEETFORM_MATRIX_LR.
    return key.isascii() and key.isidentifier() and len(key) <= 40


class Task(Run):
    """
    Commands that run to their end: a batch job, an array or a sweep.

    Example:
        type: task
        name: train
        commands:
          - python train.py
        resources:
          gpu: A100:80GB:1
    """

    left_out: ClassVar[frozenset[str]] = Run.left_out | {"array", "matrix", "key"}

    type: Literal["task"]
    """The kind of the document: `task`."""

    commands: Annotated[Commands | None, execution("agents.host")] = None
    """
    Shell commands, run in order. The first command that fails ends the job. Required unless `image`
    is set, whose own command runs then. Example: `["python train.py --lr ${{ matrix.lr }}"]`.
    """

    entrypoint: Annotated[Text, AfterValidator(without_nul), execution()] | None = None
    """
    The entry point of the container, in place of the one of the image. Default: the entry point of
    the image. Example: `/bin/bash`.
    """

    # A job listens on its host, whoever is let through to it.
    ports: Annotated[Ports | None, control("agents.host")] = None
    """
    Ports on which the programs listen. `LOCAL:REMOTE` also names the local port that is forwarded
    to it. Example: `[6006, "8080:80"]`.
    """

    nodes: Annotated[Whole, Field(ge=1, le=100_000), execution("schedule", default=1)] | None = None
    """Number of hosts. All nodes start together, or none does. Example: `4`."""

    groups: Annotated[NodeGroups | None, execution()] = None
    """
    Groups of nodes with different commands or resources, in place of `nodes`, `commands` and
    `ports`. Example: `[{name: learner, commands: [python learn.py]}, {name: actors, nodes: 8,
    commands: [python act.py]}]`.
    """

    array: Annotated[ArraySpec | None, identity("spec.expand")] = None
    """
    Indices of an array: each index is an element, which is a run of its own. A number behind `%`
    limits how many elements run at a time. Commands read the index as `$FLEETFORM_ARRAY_INDEX` or
    `${{ run.index }}`. Example: `1-100:2%10`.
    """

    matrix: (
        Annotated[
            dict[str, list[Scalar]],
            BeforeValidator(_matrix, json_schema_input_type=dict[str, Scalar | list[Scalar]]),
            execution("agents.host"),
        ]
        | None
    ) = None
    """
    Parameters of a sweep: each combination of values is an element, which is a run of its own.
    Another value adds elements and changes no existing element. `0.10` is the same value as `0.1`,
    and `1` the same as `"1"`; `1` and `1.0` are different values, because a program can tell them
    apart. Put no secrets here: values of parameters whose names mean a secret, such as `api_token`,
    appear as `sealed-…` in names of elements. Example: `{lr: [0.1, 0.01], batch: [32, 64]}`.
    """

    key: Annotated[tuple[str, ...], *listed(str, "parameter"), identity("spec.expand")] | None = (
        None
    )
    """
    The parameters of `matrix` that form the name of an element. The other parameters may change
    without making it another element. Default: all parameters. Example: `[lr, seed]`.
    """

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        throttle = self.array.throttle if self.array else None
        if throttle is not None:
            canonical["concurrency"] = {"limit": throttle, **canonical.get("concurrency", {})}
        return canonical

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.groups is None:
            yield from self._needs_commands()
        if self.array is not None and self.matrix is not None:
            yield contradiction(
                "array",
                "A task is an array or a sweep, not both.",
                "Make the index a parameter of `matrix`, or remove one of the two.",
            )
        yield from warn_of_secret_parameters(self.matrix or ())
        yield from self._group_problems()
        yield from self._key_problems()
        yield from self._throttle_problems()

    def _group_problems(self) -> Iterator[Problem]:
        groups = self.groups or ()
        yield from only_in_groups(
            self.is_set, ("nodes", "commands", "ports", "entrypoint"), "each group has its own"
        )
        yield from name_problems(groups)
        for number, group in enumerate(groups):
            if not group.commands and self.image is None:
                yield Problem(
                    "missing-field",
                    ("groups", number),
                    "The group has no `commands`, and the task has no `image`.",
                    "Add `commands:` with a list of shell commands.",
                    for_lack_of=("image",),
                )

    def _key_problems(self) -> Iterator[Problem]:
        parameters = self.matrix or {}
        for name in self.key or ():
            if name not in parameters:
                listed = ", ".join(f"`{key}`" for key in sorted(parameters)) or "none"
                yield Problem(
                    "unknown-parameter",
                    ("key",),
                    f"`matrix` has no parameter {shown(name)}.",
                    f"Its parameters: {listed}.",
                )

    def _throttle_problems(self) -> Iterator[Problem]:
        throttle = self.array.throttle if self.array else None
        limit = self.concurrency.limit if self.concurrency else None
        if throttle is not None and limit is not None and throttle != limit:
            yield Problem(
                "contradiction",
                ("concurrency", "limit"),
                f"`array` limits the elements at a time to {throttle}, and `concurrency` to {limit}.",
                "Keep one of the two.",
            )
