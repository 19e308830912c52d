"""What was planned and applied, as the ledger keeps it: for people who ask afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from fleetform.spec.desired import ResourceKey

__all__ = ["HistoryEntry", "OperationRecord", "Touch"]


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
