"""
A queue: a way into the fleets, with rules for the runs that take it. Slurm calls it a partition.

Several queues may lead to the same hosts; of the runs that wait, those of the higher tier come
first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.access import Allowed
from fleetform.spec.kinds.amounts import Duration, Limit
from fleetform.spec.kinds.base import Document, Flag, Model, Tags, Whole
from fleetform.spec.kinds.offers import Names
from fleetform.spec.kinds.runtime import Runtime
from fleetform.spec.quantities import Range, format_duration, parse_int_range

_NodesRange = Annotated[
    Range,
    PlainValidator(parse_int_range),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": r"^\s*[0-9]*\s*(\.\.\s*[0-9]*)?\s*$"},
                {
                    "type": "object",
                    "properties": {
                        "min": {"type": "integer", "description": "The least. Example: `1`."},
                        "max": {"type": "integer", "description": "The most. Example: `8`."},
                    },
                    "additionalProperties": False,
                    "minProperties": 1,
                },
            ]
        }
    ),
]


class Preemption(Model):
    """What happens to runs of this queue when one of a higher tier needs their hosts."""

    mode: Literal["off", "requeue", "stop"]
    """
    What becomes of them. `off`: nothing, they go on. `requeue`: they end, and run again. `stop`:
    they end. Example: `requeue`.
    """

    warning: Duration | None = None
    """How long before that they are told. Example: `5m`."""

    after: Duration | None = None
    """For how long a run is left alone once it has started. Example: `30m`."""


def _preemption(value: object) -> object:
    return {"mode": "off" if value is False else value} if isinstance(value, str | bool) else value


class Queue(Document):
    """
    A way into the fleets, with rules of its own.

    Example:
        type: queue
        name: gpu-short
        fleets: [on-prem]
        max_duration: 4h
        tier: 10
    """

    type: Literal["queue"]
    """The kind of the document: `queue`."""

    fleets: Names | None = None
    """The fleets that it leads to; all if not said. Example: `[on-prem]`."""

    host_tags: Tags | None = None
    """Tags that a host has to have. Example: `{interconnect: ib}`."""

    default: Flag | None = None
    """Whether runs that name no queue go in here. Example: `true`."""

    tier: Annotated[Whole, Field(ge=0, le=1000)] | None = None
    """
    Which queue comes first where several lead to one host: the higher, whatever the priorities
    of runs. 0 if not said. Example: `10`.
    """

    default_duration: Duration | None = None
    """The `max_duration` of runs that say none. Example: `1h`."""

    max_duration: Limit | None = None
    """The longest `max_duration` that a run may have. Example: `4h`."""

    nodes: _NodesRange | None = None
    """How many nodes a run may have. Example: `1..8`, `{max: 8}`."""

    allow: Allowed | None = None
    """Who may put runs in; everybody if not said. Example: `{projects: [vision]}`."""

    preemption: (
        Annotated[
            Preemption,
            BeforeValidator(
                _preemption,
                json_schema_input_type=Preemption | Literal["off", "requeue", "stop", False],
            ),
        ]
        | None
    ) = None
    """
    What happens to its runs when a higher tier needs their hosts. `off`: nothing. `requeue`: they
    end and wait for another attempt. `stop`: they end. Example: `requeue`,
    `{mode: requeue, warning: 5m}`.
    """

    runtime: Runtime | None = None
    """
    How commands run where a run does not say so. `process`: as processes of the host.
    `container`: in a container. Example: `process`.
    """

    state: Literal["open", "draining", "closed"] | None = None
    """
    What it does with runs. `open`: takes and starts them. `draining`: takes none, and starts
    those that it has. `closed`: takes none and starts none. Example: `draining`.
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
