"""
Why runs wait, asked now: the scheduler's own round over what the ledger says.

Nothing is kept of earlier rounds. The scheduler is a pure function, so asking it again gives
the reasons that the manager has, without the manager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

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


class StuckRuns(NamedTuple):
    """Why runs wait, by name, where no controller ends the wait: for an account on a host, and for fleets with `nodes: 0`."""

    without_account: Mapping[str, str] = {}
    without_hosts: Mapping[str, str] = {}


def stuck_runs(rows: Rows, *, now_ms: int) -> StuckRuns:
    """Find the runs that wait until a person does something."""
    # Few environments have a host that judges owners, or a fleet without hosts, and runs may be thousands.
    hosts = rows.read_book(())
    if not hosts.hostless_fleets and not any(one.agent_account for one in hosts.instances):
        return StuckRuns()
    book = rows.read_book()
    reasons = waiting_reasons(book, now_ms=now_ms)
    return StuckRuns(_with_code("account", book, reasons), _with_code("no-hosts", book, reasons))


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
    return _with_code("no-hosts", later, waiting_reasons(later, now_ms=now_ms))


def _with_code(
    code: str, book: SchedulerState, reasons: Mapping[RunUid, tuple[Waiting, ...]]
) -> dict[str, str]:
    found = {
        book.runs[uid].name: [one.detail for one in said if one.code == code]
        for uid, said in reasons.items()
    }
    return {name: "; ".join(details) for name, details in found.items() if details}
