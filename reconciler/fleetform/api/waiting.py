"""
Why runs wait, asked now: the scheduler's own round over what the ledger says.

Nothing is kept of earlier rounds. The scheduler is a pure function, so asking it again gives
the reasons that the manager has, without the manager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetform.model.decision import Waiting
    from fleetform.model.run import RunUid
    from fleetform.model.scheduler_state import SchedulerState


class Rows(Protocol):
    """What the state of the scheduler is read from: a reader, or the ledger itself."""

    def read_book(self, only: Sequence[RunUid] | None = None) -> SchedulerState: ...


def waiting_reasons(book: SchedulerState, *, now_ms: int) -> Mapping[RunUid, tuple[Waiting, ...]]:
    """Answer for every run that waits; one that would start now has no reason left."""
    if not book.runs:
        return {}
    # Behind that: looking at runs that are over is most of what people do, and costs no round.
    from fleetform.model.decision import Waiting
    from fleetform.schedule import Policies, queue_from_state, schedule

    queue = queue_from_state(book)
    if not queue.runs:
        return {}
    decisions = schedule(queue, book.instances, Policies(), now_ms=now_ms)
    impossible = {
        one.run_uid: tuple(Waiting("unschedulable", reason) for reason in one.reasons)
        for one in decisions.impossible
    }
    return {**decisions.waiting, **impossible}


def runs_without_account(rows: Rows, *, now_ms: int) -> Mapping[str, str]:
    """Return why runs wait for an account on a host, by name: only a person ends such a wait."""
    # Few environments have a host that judges owners, and runs may be thousands.
    if not any(one.agent_account for one in rows.read_book(()).instances):
        return {}
    return _waiting_for("account", rows.read_book(), now_ms)


def runs_without_hosts(rows: Rows, *, now_ms: int) -> Mapping[str, str]:
    """Return why runs wait for fleets with `nodes: 0`, by name: only another apply ends such a wait."""
    if not rows.read_book(()).hostless_fleets:
        return {}
    return _waiting_for("no-hosts", rows.read_book(), now_ms)


def runs_left_without_hosts(
    book: SchedulerState, fleets: frozenset[str], *, now_ms: int
) -> Mapping[str, str]:
    """Return why waiting runs cannot start once these fleets have `nodes: 0` and no others have, by name."""
    later = replace(
        book,
        hostless_fleets=fleets,
        scaling={name: book.scaling[name] for name in book.scaling if name not in fleets},
        instances=tuple(one for one in book.instances if one.fleet not in fleets),
    )
    return _waiting_for("no-hosts", later, now_ms)


def _waiting_for(code: str, book: SchedulerState, now_ms: int) -> dict[str, str]:
    found = {
        book.runs[uid].name: [one.detail for one in reasons if one.code == code]
        for uid, reasons in waiting_reasons(book, now_ms=now_ms).items()
    }
    return {name: "; ".join(details) for name, details in found.items() if details}
