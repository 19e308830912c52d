"""What was planned and applied, as the ledger keeps it: for people who ask afterwards."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from fleetform.spec.desired import ResourceKey

__all__ = [
    "HistoryEntry",
    "LogLevel",
    "LoggedEvent",
    "Notice",
    "NoticeFacts",
    "OperationRecord",
    "Touch",
]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """
    One plan that was made, or one apply of a plan.

    Attributes:
        kind: `plan` or `apply`.
        digest: Of the plan.
        state: Of an apply: `running`, `done`, `failed`, `interrupted`. Of a plan: `made`.
        at_ms: Unix milliseconds, as is `finished_at_ms`; None while it runs, and for a plan.
        apply_uid: Empty for a plan.
        summary: Of an apply what came of it, one sentence a line; of a plan the same as `changes`.
        changes: What the plan changes, in a line; empty where an earlier release applied it.
    """

    kind: str
    digest: str
    state: str
    who: str
    commit: str
    at_ms: int
    finished_at_ms: int | None = None
    apply_uid: str = ""
    summary: str = ""
    changes: str = ""


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """One step of an apply. state: `planned`, `intended`, `done`, `failed`, `dropped`."""

    key: str
    verb: str
    resource: ResourceKey
    state: str
    error: str = ""
    finished_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Touch:
    """An apply that changed a resource, with its plan as `plan.serialize` wrote it."""

    entry: HistoryEntry
    body: bytes


# Events: what happened, for people; append-only.


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """
    One line of history.

    `kind` is dotted and constant (`run.started`, `job.finished`, `fleet.made`, `plan.applied`);
    values are in `data`. `message` is a sentence. `at_ms` is Unix milliseconds. `number` is given
    by the ledger, 0 before.
    """

    kind: str
    at_ms: int
    message: str
    resource: ResourceKey | None = None
    attempt: int | None = None
    rank: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0


# Notices: what a controller says to people and logs, with the event that programs look for.


class LogLevel(enum.StrEnum):
    """INFO: work as intended. WARNING: a person should look. ERROR: something failed."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class NoticeFacts(TypedDict, total=False):
    """
    What programs that read a log get with a sentence; people read the sentence alone.

    `event` is a constant, `notice` by default; `level` is INFO by default; `details` are values.
    """

    event: str
    level: LogLevel
    details: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Notice:
    """
    One sentence about a state that lasts, such as a blocked change.

    Attributes:
        key: Names the state: a notice with the same key and text is said once while the state lasts.
        text: The sentence.
        over: What is said when the state is over; empty: nothing.
        event: Constant, for programs: `change.blocked`. The end of the state is `change.blocked.over`.
        details: Values for programs.
    """

    key: str
    text: str
    over: str = ""
    event: str = "notice"
    level: LogLevel = LogLevel.WARNING
    details: Mapping[str, str] = field(default_factory=dict)
