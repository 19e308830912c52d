"""Applies of the past and the one under way, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleetform.model.ports import ApplyRecord


@dataclass(frozen=True, slots=True)
class ApplyRow:
    """
    One apply.

    `state` is `running`, `done`, `failed` or `interrupted`. `plan` is the digest of the applied
    plan. Times are Unix milliseconds; `finished_at_ms` is null while the apply runs.
    """

    uid: str
    plan: str
    state: str
    who: str
    commit: str
    started_at_ms: int
    finished_at_ms: int | None
    summary: str


def apply_rows(records: Sequence[ApplyRecord]) -> tuple[ApplyRow, ...]:
    """Make the rows, in the order of `records`."""
    return tuple(
        ApplyRow(
            uid=record.uid,
            plan=record.plan_digest,
            state=record.state,
            who=record.who,
            commit=record.commit,
            started_at_ms=record.started_at_ms,
            finished_at_ms=record.finished_at_ms,
            summary=record.summary,
        )
        for record in records
    )
