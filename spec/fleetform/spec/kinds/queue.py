"""
A queue: a way into the fleets, with rules for the runs that take it. Slurm calls it a partition.

Several queues may lead to the same hosts; of the runs that wait, those of the higher tier come
first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from fleetform.spec.field_facts import control
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Document, Flag, Model, Tags, Whole, read_by
from fleetform.spec.kinds.container import Runtime
from fleetform.spec.kinds.offers import Names
from fleetform.spec.kinds.resources import COUNT_RANGE, Duration, Limit
from fleetform.spec.quantities import Range, format_duration, parse_int_range


class Allowed(Model):
    """Users and projects. A user is allowed when listed, or as a member of a listed project."""

    users: Names | None = None
    """The allowed users, by the names of their `user` documents. Example: `[ada, grace]`."""

    projects: Names | None = None
    """The allowed projects, with all their members. Example: `[vision]`."""


_NodesRange = Annotated[Range, *read_by(parse_int_range, COUNT_RANGE)]


class Preemption(Model):
    """
    What happens to runs of this queue when a run of a queue with a higher tier needs their hosts.
    """

    mode: Literal["off", "requeue", "stop"]
    """
    What happens to the runs. `off`: they continue. `requeue`: they end and wait for another
    attempt. `stop`: they end. Example: `requeue`.
    """

    warning: Duration | None = None
    """How long before its end a run is warned. Example: `5m`."""

    after: Duration | None = None
    """How long a run that has started is safe from preemption. Example: `30m`."""


def _preemption(value: object) -> object:
    return {"mode": "off" if value is False else value} if isinstance(value, str | bool) else value


class Queue(Document):
    """
    A named way to fleets, with limits of its own. Slurm calls it a partition.

    Example:
        type: queue
        name: gpu-short
        fleets: [on-prem]
        max_duration: 4h
        tier: 10
    """

    type: Literal["queue"]
    """The kind of the document: `queue`."""

    fleets: Annotated[Names | None, control("schedule")] = None
    """The fleets on which runs of the queue start. Default: all fleets. Example: `[on-prem]`."""

    host_tags: Annotated[Tags | None, control()] = None
    """Tags that a host must have. Example: `{interconnect: ib}`."""

    default: Annotated[Flag | None, control("schedule")] = None
    """Whether runs that name no queue use this one. Default: `false`. Example: `true`."""

    tier: Annotated[Whole, Field(ge=0, le=1000), control(default=0)] | None = None
    """
    The rank of the queue: of queues that share a host, the one with the higher tier goes first,
    whatever the priorities of its runs. Default: 0. Example: `10`.
    """

    default_duration: Annotated[Duration | None, control()] = None
    """The `max_duration` of runs that set none. Example: `1h`."""

    max_duration: Annotated[Limit | None, control()] = None
    """The largest `max_duration` that a run may have. Default: no limit. Example: `4h`."""

    nodes: Annotated[_NodesRange | None, control()] = None
    """
    The number of nodes that a run may have, as a range. Default: any number. Example: `1..8`,
    `{max: 8}`.
    """

    allow: Annotated[Allowed | None, control()] = None
    """
    The users and projects that may submit runs to the queue. Default: all. Example: `{projects:
    [vision]}`.
    """

    preemption: (
        Annotated[
            Preemption,
            BeforeValidator(
                _preemption,
                json_schema_input_type=Preemption | Literal["off", "requeue", "stop", False],
            ),
            control(),
        ]
        | None
    ) = None
    """
    What happens to runs of this queue when a run of a queue with a higher tier needs their hosts.
    `off`: they continue. `requeue`: they end and wait for another attempt. `stop`: they end.
    Example: `requeue`, `{mode: requeue, warning: 5m}`.
    """

    runtime: Annotated[Runtime | None, control()] = None
    """
    How commands run when the run does not set `runtime`. `process`: as processes of the host.
    `container`: in a container. Example: `process`.
    """

    state: Annotated[Literal["open", "draining", "closed"] | None, control(default="open")] = None
    """
    Whether the queue accepts and starts runs. `open`: it accepts and starts runs. `draining`: it
    accepts no new runs, and starts those that wait. `closed`: it neither accepts nor starts runs.
    Example: `draining`.
    """

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        default, longest = self.default_duration, self.max_duration
        if default is not None and longest is not None and default > longest:
            yield Problem(
                "contradiction",
                ("default_duration",),
                f"Runs would be given {format_duration(default)}, and may have"
                f" {format_duration(longest)} at most.",
                "Shorten it.",
            )
