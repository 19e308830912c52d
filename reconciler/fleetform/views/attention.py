"""What needs attention in an environment: a clause for each thing that is not as it should be."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fleetform.model.drift import ATTACHMENT
from fleetform.model.figures import counted
from fleetform.views.status import READY, TROUBLED_HOSTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetform.model.overview import Overview
    from fleetform.views.controllers import ControllerRow
    from fleetform.views.status import BlockedRow, LedgerRow

__all__ = ["attention"]


def attention(
    ledger: LedgerRow,
    last_state: str,
    controller: ControllerRow | None,
    found: Overview | None,
    blocked: BlockedRow | None,
    *,
    blocked_runs: int = 0,
    hostless_runs: int = 0,
) -> tuple[str, ...]:
    """
    Say what is not as it should be, the gravest first.

    `last_state` is of the apply that was entered last, also if it was of a part; empty without one.
    """
    return tuple(
        _attention(ledger, last_state, controller, found, blocked, blocked_runs, hostless_runs)
    )


def _attention(
    ledger: LedgerRow,
    last_state: str,
    controller: ControllerRow | None,
    found: Overview | None,
    blocked: BlockedRow | None,
    blocked_runs: int,
    hostless_runs: int,
) -> Iterator[str]:
    if ledger.condition not in {READY, "empty"}:
        yield f"the ledger is {ledger.condition}"
    if found is not None and found.troubled_count:
        yield _troubled(found)
    if last_state in {"failed", "interrupted"}:
        yield f"the last apply {'failed' if last_state == 'failed' else 'was interrupted'}"
    if found is not None and (silent := _silent(found)):
        yield silent
    # What is only observed, such as a reboot, needs no attention.
    drift = 0 if found is None else sum(one.drift.drift_class != "observed" for one in found.drift)
    if drift:
        yield f"drift was seen in {counted(drift, 'field')}"
    # Only observed too, and an instance of a cloud costs money until a person decides.
    unknown = 0 if found is None else sum(one.drift.field == "unknown" for one in found.drift)
    if unknown:
        verb = "is" if unknown == 1 else "are"
        yield f"{counted(unknown, 'host')} {verb} not in the ledger"
    # Only observed as well, and runs wait until a person detaches it.
    yield from (
        f"the disk of {one.drift.resource} is {one.drift.seen}"
        for one in (() if found is None else found.drift)
        if one.drift.field == ATTACHMENT
    )
    if blocked is not None and blocked.changes:
        yield f"{counted(len(blocked.changes), 'change')} blocked in the last apply"
    if blocked_runs:
        verb = "waits" if blocked_runs == 1 else "wait"
        yield f"{counted(blocked_runs, 'run')} {verb} for an account on hosts"
    if hostless_runs:
        yield f"{counted(hostless_runs, 'run')} cannot start on a fleet without hosts"
    if controller is None and found is not None and (left := _work_left(found)):
        yield f"{left} and no controller is running"
    if controller is not None and controller.warning:
        yield controller.warning


def _troubled(found: Overview) -> str:
    """Name the run that failed, can never be placed or is unknown; of several, count each state."""
    if found.troubled_count == 1:
        only = found.troubled[0]
        return f"run {only.name} is {only.state}"
    return ", ".join(
        f"{counted(count, 'run')} {state}" for state, count in found.troubled_states.items()
    )


_QUARANTINED_AND = "quarantined and "


def _silent(found: Overview) -> str:
    """Name the host that does not answer or fails; of several, count each state."""
    # Of those that leave, or have two states, as many as are named.
    others = Counter(one.state for one in found.troubled_hosts if one.state not in TROUBLED_HOSTS)
    counts = Counter({one: found.hosts.get(one, 0) for one in TROUBLED_HOSTS})
    counts.subtract({state.removeprefix(_QUARANTINED_AND): others[state] for state in others})
    counts = +counts + others
    if sum(counts.values()) == 1:
        return "".join(f"host {one.name} is {one.state}" for one in found.troubled_hosts)
    return ", ".join(f"{counted(count, 'host')} {state}" for state, count in counts.items())


def _work_left(found: Overview) -> str:
    """Say what only a controller brings to its end; empty where there is nothing."""
    parts = [
        counted(count, noun, plural)
        for count, noun, plural in (
            (found.work_count, "open run", ""),
            (len(found.applies), "unfinished apply", "unfinished applies"),
            (found.leaving_count, "leaving host", ""),
            (found.joining_count, "host that is not set up", "hosts that are not set up"),
            (found.idle_count, "idle host", ""),
        )
        if count
    ]
    return ", ".join(parts)
