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

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    Document,
    Entries,
    Flag,
    Model,
    Tags,
    Whole,
    each_once,
    one_or_many,
    refuse,
)
from fleetform.spec.kinds.offers import Names, Price, Text, Texts
from fleetform.spec.quantities.ranges import shown

ResourceKind = Literal[
    "fleet", "volume", "run", "gateway", "secret", "queue", "quota", "reservation", "project",
    "user", "policy", "profile", "backend",
]  # fmt: skip
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


Clock = Annotated[int, BeforeValidator(_clock, json_schema_input_type=str)]
"""Minutes since midnight."""

Days = Annotated[
    tuple[Day, ...],
    Field(min_length=1),
    BeforeValidator(one_or_many, json_schema_input_type=Day | Entries[Day]),
    AfterValidator(each_once("day")),
]
Kinds = Annotated[
    tuple[ResourceKind, ...],
    Field(min_length=1),
    BeforeValidator(one_or_many, json_schema_input_type=ResourceKind | Entries[ResourceKind]),
    AfterValidator(each_once("kind")),
]
Actions = Annotated[
    tuple[Action, ...],
    Field(min_length=1),
    BeforeValidator(one_or_many, json_schema_input_type=Action | Entries[Action]),
    AfterValidator(each_once("action")),
]


class Match(Model):
    """Which changes a policy is about: those that all of this is true for."""

    kinds: Kinds | None = None
    """Kinds of resources; all if not said. Example: `[fleet, volume]`."""

    names: Texts | None = None
    """Names, with `*` for anything. Example: `[prod-*]`."""

    tags: Tags | None = None
    """Tags that the resource has. Example: `{tier: production}`."""

    projects: Names | None = None
    """Projects that the resource belongs to. Example: `[vision]`."""

    actions: Actions | None = None
    """
    What is done; anything if not said. `create`: it is made. `update`: it changes in place.
    `replace`: it is made anew. `delete`: it is removed. `adopt`: what exists is taken over.
    `forget`: it leaves the ledger and stays in the world. `archive`: a run that is over leaves
    the tree. Example: `[delete, replace]`.
    """

    destructive: Flag | None = None
    """Whether something is lost by it: data, or work that runs. Example: `true`."""


class Approval(Model):
    """Who has to agree."""

    count: Annotated[Whole, Field(ge=1, le=20)] | None = None
    """How many; one if not said. Nobody agrees to their own change. Example: `2`."""

    users: Names | None = None
    """Who may; anybody with the right to apply, if not said. Example: `[ada, grace]`."""


def _approval(value: Any) -> Any:
    return {"count": value} if isinstance(value, int) and not isinstance(value, bool) else value


class TimeWindow(Model):
    """Hours of the week."""

    days: Days | None = None
    """The days; each if not said. Example: `[mon, tue, wed, thu]`."""

    begin: Clock
    """From when on. Example: `"09:00"`."""

    end: Clock
    """Until when. Example: `"16:00"`."""

    time_zone: Text | None = None
    """The zone that the hours are of; UTC if not said. Example: `Europe/Berlin`."""


class Limits(Model):
    """What one plan may come to."""

    price: Price | None = None
    """Dollars an hour more than before. Example: `100`."""

    gpus: Whole | None = None
    """GPUs of clouds more than before. Example: `64`."""

    changes: Whole | None = None
    """Changes that the policy is about. Example: `20`."""

    deletions: Whole | None = None
    """Resources that are deleted or replaced. Example: `5`."""


class Policy(Document):
    """
    What a plan may do, and what it needs for that.

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

    match: Match | None = None
    """Which changes it is about; all if not said. Example: `{kinds: [fleet], actions: [delete]}`."""

    deny: Text | None = None
    """They are never carried out, for this reason. Example: `Fleets are removed by their owners`."""

    warn: Text | None = None
    """They are carried out, and the plan says this. Example: `Tell the users first`."""

    approval: (
        Annotated[Approval, BeforeValidator(_approval, json_schema_input_type=int | Approval)]
        | None
    ) = None
    """They are held until others agree. Example: `1`, `{count: 2, users: [ada, grace]}`."""

    windows: (
        Annotated[
            tuple[TimeWindow, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=TimeWindow | Entries[TimeWindow]),
        ]
        | None
    ) = None
    """They are held outside of these hours. Example: `[{days: [mon, tue], begin: "09:00", end: "16:00"}]`."""

    limits: Limits | None = None
    """What goes beyond is held. Example: `{price: 100}`."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        demands = (self.deny, self.warn, self.approval, self.windows, self.limits)
        if all(demand is None for demand in demands):
            yield Problem(
                "missing-field",
                (),
                "The policy demands nothing.",
                "Add `deny:`, `warn:`, `approval:`, `windows:` or `limits:`.",
                for_lack_of=("deny", "warn", "approval", "windows", "limits"),
            )
        if self.deny is not None and self.approval is not None:
            yield Problem(
                "contradiction",
                ("approval",),
                "What is denied is not carried out, whoever agrees.",
                "Remove one of the two.",
                at_key=True,
            )
        for number, hours in enumerate(self.windows or ()):
            if hours.begin == hours.end:
                yield Problem(
                    "contradiction",
                    ("windows", number),
                    "The window ends when it begins; nothing could ever be carried out.",
                    'Write `begin: "00:00"` and `end: "24:00"` for the whole day.',
                )
