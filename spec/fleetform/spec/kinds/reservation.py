"""
A reservation: hosts that are reserved for some users, for a limited time, once or repeatedly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from fleetform.spec.field_facts import control, replaced
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    Document,
    Flag,
    Name,
    Whole,
    add_spellings,
    contradiction,
    listed,
    missing,
)
from fleetform.spec.kinds.hosts import Hostname
from fleetform.spec.kinds.offers import Names
from fleetform.spec.kinds.resources import Duration
from fleetform.spec.kinds.schedules import Moment, window
from fleetform.spec.quantities import format_duration

REPEAT_SECONDS = {"daily": 86_400, "weekly": 7 * 86_400}
"""How long it is from one time to the next."""


def _add_ends(schema: dict[str, Any]) -> None:
    add_spellings(schema, from_="begin", to="end")
    schema["required"].remove("begin")


class Reservation(Document):
    """
    Hosts reserved for some users, or for maintenance.

    Example:
        type: reservation
        name: deadline-week
        fleet: on-prem
        nodes: 4
        begin: 2026-12-01T00:00Z
        duration: 7d
        projects: [vision]
    """

    model_config = ConfigDict(json_schema_extra=_add_ends)

    type: Literal["reservation"]
    """The kind of the document: `reservation`."""

    fleet: Annotated[Name, replaced()]
    """
    The fleet of the hosts. A change of the fleet makes it another reservation. Example: `on-prem`.
    """

    nodes: Annotated[Whole, Field(ge=1), control()] | None = None
    """The number of hosts, when it does not matter which. Example: `4`."""

    hosts: Annotated[tuple[Hostname, ...], *listed(str, "host"), control()] | None = None
    """
    The hosts, by name. Default, without `nodes`: all hosts of the fleet. Example: `[gpu01, gpu02]`.
    """

    begin: Annotated[Moment, control()]
    """
    The begin, as a time with its time zone; `from` is the same field. Example: `2026-12-01T00:00Z`.
    """

    end: Annotated[Moment | None, control()] = None
    """
    The end, as a time with its time zone; `to` is the same field. Example: `2026-12-08T00:00Z`.
    """

    duration: Annotated[Duration, Field(ge=1), control()] | None = None
    """
    The length, in place of `end`. Without both, the reservation lasts until its document is
    removed. Example: `7d`.
    """

    repeat: Annotated[Literal["daily", "weekly"] | None, control()] = None
    """
    Whether the reservation repeats. Default: it does not repeat. `daily`: every day at the same
    hour in UTC. `weekly`: every week on the same weekday. Example: `weekly`.
    """

    users: Annotated[Names | None, control()] = None
    """The users whose runs may use the hosts. Example: `[ada]`."""

    projects: Annotated[Names | None, control()] = None
    """The projects whose runs may use the hosts. Example: `[vision]`."""

    maintenance: Annotated[Flag | None, control()] = None
    """
    Whether the reservation is for work on the hosts, so that no runs may use them. Default:
    `false`. Example: `true`.
    """

    purge_after: Annotated[Duration | None, control()] = None
    """The time without use after which the reservation ends early. Example: `30m`."""

    ignore_running: Annotated[Flag | None, control()] = None
    """
    Whether the reservation begins even if other runs still use the hosts. They are ended then.
    Default: `false`. Example: `true`.
    """

    @model_validator(mode="before")
    @classmethod
    def _spelled(cls, value: Any) -> Any:
        return window(value)

    @property
    def end_seconds(self) -> int | None:
        """When it first ends; None: it lasts."""
        if self.end is not None:
            return self.end
        return None if self.duration is None else self.begin + self.duration

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        # One spelling: a week from the first is the same as until the eighth.
        if canonical.pop("duration", None) is not None:
            canonical["end"] = self.end_seconds
        return canonical

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        yield from self._time_problems()
        if self.nodes is not None and self.hosts is not None:
            yield contradiction(
                "nodes",
                "The hosts are named already, and need no number.",
                "Remove one of the two.",
            )
        somebody = self.users is not None or self.projects is not None
        if self.maintenance and somebody:
            yield contradiction(
                "maintenance",
                "During maintenance, no runs may use the hosts.",
                "Remove `maintenance`, or remove `users` and `projects`.",
            )
        if not self.maintenance and not somebody:
            yield missing(
                "The reservation has no users.",
                "Add `users:` or `projects:`, or `maintenance: true` to keep all runs away.",
                "users",
                "projects",
                "maintenance",
            )

    def _time_problems(self) -> Iterator[Problem]:
        if self.end is not None and self.duration is not None:
            yield Problem(
                "said-twice",
                ("duration",),
                "`end` and `duration` both set the end.",
                "Keep one.",
                at_key=True,
            )
        if self.end is not None and self.end <= self.begin:
            yield Problem("contradiction", ("end",), "It ends before it begins.", "Swap the two.")
            return
        if self.repeat is None:
            return
        if self.end_seconds is None:
            yield contradiction(
                "repeat",
                "A reservation without an end cannot repeat.",
                "Add `duration:`.",
                for_lack_of=("end", "duration"),
            )
        elif self.end_seconds - self.begin > REPEAT_SECONDS[self.repeat]:
            lasting = format_duration(self.end_seconds - self.begin)
            yield Problem(
                "contradiction",
                ("repeat",),
                f"It would begin again before it is over: it lasts {lasting}.",
                "Shorten it, or leave `repeat` out.",
            )
