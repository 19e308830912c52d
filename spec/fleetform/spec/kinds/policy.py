"""
A policy: what a plan may do, and what it needs for that.

Policies are data, and compared with plans: which changes one is about, and what has to hold for
them. Those that are in force judge the next commit, so that nobody can loosen one and use it at
once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from fleetform.spec.field_facts import control, unit
from fleetform.spec.findings import Problem
from fleetform.spec.kinds import KindName
from fleetform.spec.kinds.base import (
    Document,
    Flag,
    Model,
    Tags,
    Whole,
    contradiction,
    listed,
    missing,
    refuse,
)
from fleetform.spec.kinds.offers import Names, Price, Text, Texts
from fleetform.spec.quantities.ranges import shown

Action = Literal["create", "update", "replace", "delete", "adopt", "forget", "archive"]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)


def _clock(value: Any) -> int:
    # What else YAML makes of 18:00 is read as text here; 24:00 is the end of a day.
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if match is None and value != "24:00":
        raise refuse(
            "bad-value", f"{shown(value)} is not a time of day.", 'Write for example "18:00".'
        )
    return 24 * 60 if match is None else int(match[1]) * 60 + int(match[2])


Clock = Annotated[int, BeforeValidator(_clock, json_schema_input_type=str), unit("minutes")]
"""Minutes since midnight."""

Days = Annotated[tuple[Day, ...], *listed(Day, "day")]
Kinds = Annotated[tuple[KindName, ...], *listed(KindName, "kind")]
Actions = Annotated[tuple[Action, ...], *listed(Action, "action")]


class Match(Model):
    """The changes to which a policy applies: those that match all fields."""

    kinds: Kinds | None = None
    """The kinds of the resources. Default: all kinds. Example: `[fleet, volume]`."""

    names: Texts | None = None
    """
    The names of the resources, where `*` matches any characters. Default: all names. Example:
    `[prod-*]`.
    """

    tags: Tags | None = None
    """Tags that the resources have. Default: any tags. Example: `{tier: production}`."""

    projects: Names | None = None
    """The projects of the resources. Default: all projects. Example: `[vision]`."""

    actions: Actions | None = None
    """
    The actions. Default: all actions. `create`: the resource is created. `update`: it changes in
    place. `replace`: it is created again. `delete`: it is deleted. `adopt`: an existing one is
    adopted. `forget`: it is released, and its data is kept. `archive`: a finished run is removed
    from the configuration. Example: `[delete, replace]`.
    """

    destructive: Flag | None = None
    """
    Whether the change deletes data or hosts, or ends running work. Default: either. Example:
    `true`.
    """


class Approval(Model):
    """The approvals that a change requires."""

    count: Annotated[Whole, Field(ge=1, le=20)] | None = None
    """
    The number of approvals. Authors cannot approve their own changes. Default: 1. Example: `2`.
    """

    users: Names | None = None
    """The users who may approve. Default: all users who may apply. Example: `[ada, grace]`."""


def _approval(value: Any) -> Any:
    return {"count": value} if isinstance(value, int) and not isinstance(value, bool) else value


class TimeWindow(Model):
    """A period of the week."""

    days: Days | None = None
    """The days. Default: every day. Example: `[mon, tue, wed, thu]`."""

    begin: Clock
    """The begin, as `HH:MM`. Example: `"09:00"`."""

    end: Clock
    """The end, as `HH:MM`. Example: `"16:00"`."""

    time_zone: Text | None = None
    """The time zone. Default: UTC. Example: `Europe/Berlin`."""


class Limits(Model):
    """Limits of one plan."""

    price: Price | None = None
    """The largest increase of the price, in US dollars per hour. Example: `100`."""

    gpus: Whole | None = None
    """The largest increase of the number of GPUs in clouds. Example: `64`."""

    changes: Whole | None = None
    """The largest number of changes to which the policy applies. Example: `20`."""

    deletions: Whole | None = None
    """The largest number of resources that are deleted or replaced. Example: `5`."""


class Policy(Document):
    """
    A rule that plans must satisfy.

    Example:
        type: policy
        name: production
        match:
          tags: {tier: production}
          destructive: true
        approval: 2
    """

    type: Literal["policy"]
    """The kind of the document: `policy`."""

    match: Annotated[Match | None, control()] = None
    """
    The changes to which the policy applies. Default: all changes. Example: `{kinds: [fleet],
    actions: [delete]}`.
    """

    deny: Annotated[Text | None, control()] = None
    """Block the changes, with this reason. Example: `Fleets are removed by their owners`."""

    warn: Annotated[Text | None, control()] = None
    """Allow the changes, and show this warning in the plan. Example: `Tell the users first`."""

    approval: (
        Annotated[
            Approval, BeforeValidator(_approval, json_schema_input_type=int | Approval), control()
        ]
        | None
    ) = None
    """
    Block the changes until they are approved: a number of approvals, or a mapping. Example: `1`,
    `{count: 2, users: [ada, grace]}`.
    """

    windows: Annotated[tuple[TimeWindow, ...], *listed(TimeWindow), control()] | None = None
    """
    Block the changes outside of these periods. Example: `[{days: [mon, tue], begin: "09:00", end:
    "16:00"}]`.
    """

    limits: Annotated[Limits | None, control()] = None
    """Block the changes that exceed these limits. Example: `{price: 100}`."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        demands = (self.deny, self.warn, self.approval, self.windows, self.limits)
        if all(demand is None for demand in demands):
            yield missing(
                "The policy has no rule.",
                "Add `deny:`, `warn:`, `approval:`, `windows:` or `limits:`.",
                "deny",
                "warn",
                "approval",
                "windows",
                "limits",
            )
        if self.deny is not None and self.approval is not None:
            yield contradiction(
                "approval",
                "`deny` blocks the changes, so approvals have no effect.",
                "Remove one of the two.",
            )
        for number, hours in enumerate(self.windows or ()):
            if hours.begin == hours.end:
                yield Problem(
                    "contradiction",
                    ("windows", number),
                    "The window ends when it begins, so every plan would be blocked.",
                    'Write `begin: "00:00"` and `end: "24:00"` for the whole day.',
                )
