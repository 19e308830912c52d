"""
A quota: how much a project, a person or a queue may have, at a time and in a while.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from fleetform.spec.field_facts import control
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Document, Model, Name, Whole, missing, read_by, refuse
from fleetform.spec.kinds.offers import Price
from fleetform.spec.kinds.resources import EXACT_CPUS, Duration, Size
from fleetform.spec.quantities import parse_cpu
from fleetform.spec.quantities.ranges import parse_count, shown, unfit

Period = Literal["day", "week", "month", "quarter", "year"]
ANY = "any"
"""The name under which a number of GPUs of all sorts together stands in a canonical document."""


def _gpus(value: Any) -> dict[str, int]:
    if not isinstance(value, Mapping):
        return {ANY: parse_count(value)}
    if not value:
        raise refuse("wrong-type", str(unfit(value, "a number, or numbers by name")))
    return {str(name): _gpu_count(str(name), item) for name, item in value.items()}


def _gpu_count(name: str, value: Any) -> int:
    try:
        return parse_count(value)
    except ValueError as exc:
        raise refuse("bad-value", f"{shown(name)}: {exc}", "Write `{A100: 8, any: 16}`.") from None


GpuCounts = Annotated[
    dict[str, int],
    *read_by(
        _gpus,
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {
                    "type": "object",
                    "additionalProperties": {"type": "integer", "minimum": 0},
                    "minProperties": 1,
                },
            ]
        },
    ),
]


def _cpus(value: Any) -> int:
    count = parse_cpu(value).count
    if count is None or count.min is None or count.min != count.max:
        raise refuse("wrong-type", f"{shown(value)} is not one number of CPUs.", "Write `64`.")
    return count.min


Cpus = Annotated[int, *read_by(_cpus, EXACT_CPUS, "millicores")]


class GpuHours(Model):
    """A limit on GPU-hours per period."""

    limit: Whole
    """The limit, in GPU-hours. Example: `5000`."""

    per: Period
    """
    The period, in UTC. `day`: from midnight. `week`: from Monday. `month`: from the first day.
    `quarter`: from January, April, July and October. `year`: from January. Example: `month`.
    """


class Budget(Model):
    """A limit on costs per period."""

    limit: Price
    """The limit, in US dollars. Example: `20000`."""

    per: Period
    """
    The period, in UTC. `day`: from midnight. `week`: from Monday. `month`: from the first day.
    `quarter`: from January, April, July and October. `year`: from January. Example: `month`.
    """


def _gpu_hours(value: Any) -> Any:
    return {"limit": value, "per": "month"} if isinstance(value, int | str) else value


class Quota(Document):
    """
    A limit on the usage of a project, a user or a queue.

    Example:
        type: quota
        name: vision
        project: vision
        gpus: 32
        gpu_hours: {limit: 5000, per: month}
    """

    type: Literal["quota"]
    """The kind of the document: `quota`."""

    project: Annotated[Name | None, control()] = None
    """The project that is limited, with all its runs together. Example: `vision`."""

    user: Annotated[Name | None, control()] = None
    """The user who is limited. With `project`, only in that project. Example: `ada`."""

    queue: Annotated[Name | None, control()] = None
    """
    The queue that is limited. With `project` or `user`, only their runs in that queue. Example:
    `gpu-short`.
    """

    each: Annotated[Literal["user", "project"] | None, control()] = None
    """
    Whether each user or project has the limits for itself. Default: all together. `user`: each
    user. `project`: each project. Example: `user`.
    """

    gpus: Annotated[GpuCounts | None, control()] = None
    """
    The number of GPUs used at a time: one number, or a number by GPU name, where `any` is the sum
    of all GPUs. Example: `32`, `{H100: 8, any: 32}`.
    """

    cpus: Annotated[Cpus | None, control()] = None
    """The number of CPUs used at a time. Example: `256`."""

    memory: Annotated[Size | None, control()] = None
    """The memory used at a time. Example: `2TB`."""

    nodes: Annotated[Whole | None, control()] = None
    """The number of nodes used at a time. Example: `16`."""

    jobs: Annotated[Whole | None, control()] = None
    """The number of jobs that run at a time. A run on four nodes has four jobs. Example: `100`."""

    waiting: Annotated[Whole | None, control()] = None
    """The number of runs that wait at a time. Further runs are accepted later. Example: `1000`."""

    max_duration: Annotated[Duration | None, control()] = None
    """The largest `max_duration` that a run may have. Example: `2d`."""

    gpu_hours: (
        Annotated[
            GpuHours,
            BeforeValidator(_gpu_hours, json_schema_input_type=int | str | GpuHours),
            control(),
        ]
        | None
    ) = None
    """
    The GPU-hours per period. A number alone is per month. Example: `5000`, `{limit: 5000, per:
    week}`.
    """

    budget: Annotated[Budget | None, control()] = None
    """
    The cost of hosts in clouds per period, in US dollars. Example: `{limit: 20000, per: month}`.
    """

    shares: Annotated[Whole, Field(ge=1, le=1_000_000), control()] | None = None
    """The fair-share weight, relative to the shares of the other quotas. Example: `100`."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.project is self.user is self.queue is self.each is None:
            yield missing(
                "The quota names no project, user or queue.",
                "Add `project:`, `user:` or `queue:`, or `each: user` for all users.",
                "project",
                "user",
                "queue",
                "each",
            )
        clashing = self.each if self.each and getattr(self, self.each) is not None else None
        if clashing:
            yield Problem(
                "contradiction",
                ("each",),
                f"`each: {clashing}` is for all of them, and `{clashing}:` names one.",
                "Remove one of the two.",
            )
        if not self.model_fields_set & _AMOUNTS:
            yield missing(
                "The quota limits nothing.",
                "Add what it limits, such as `gpus: 8`.",
                *tuple(_AMOUNTS),
            )
        named = max((count for name, count in (self.gpus or {}).items() if name != ANY), default=0)
        if self.gpus and self.gpus.get(ANY, named) < named:
            yield Problem(
                "contradiction",
                ("gpus", ANY),
                f"{named} GPUs of one name can never be had where {self.gpus[ANY]} are the most of"
                " all.",
                f"Raise `{ANY}`, or lower the other.",
            )


_AMOUNTS = frozenset(
    {
        "gpus", "cpus", "memory", "nodes", "jobs", "waiting", "max_duration", "gpu_hours", "budget",
        "shares",
    }
)  # fmt: skip
