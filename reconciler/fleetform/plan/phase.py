"""
Where a run stands, as far as a plan must know.

What a changed document leads to depends on whether the run still waits, is at work, or is
over, and on nothing finer. A row is read top down; the first that matches holds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from fleetform.model.live import LiveResource
from fleetform.model.run_state import FINAL, RunState


class Phase(enum.Enum):
    WAITING = "waiting"
    """No process of it exists, nor is one being made: its document may change in place."""
    ACTIVE = "active"
    """It holds an allocation, or whether it does is unknown: a change would lose work."""
    FINISHED = "finished"


def phase(row: LiveResource) -> Phase:
    """Tell a live run's phase; a row whose run was never written is one that still waits."""
    if row.run is None:
        return Phase.WAITING
    if row.run.state in FINAL:
        return Phase.FINISHED
    # Provisioning counts as active: hosts are being paid for on behalf of the old document.
    if row.run.state in {RunState.PENDING, RunState.SUBMITTED}:
        return Phase.WAITING
    return Phase.ACTIVE


def is_at_work(row: LiveResource) -> bool:
    """Tell whether its end would lose work: its own, or that of the run that it waits for."""
    return phase(row) is Phase.ACTIVE or has_earlier(row)


def has_earlier(row: LiveResource) -> bool:
    """Tell whether a run that had the name before is not over."""
    return earlier_uid(row) != ""


def earlier_uid(row: LiveResource) -> str:
    """Name the run that had the name before and is not over; empty where there is none."""
    return "" if row.run is None or row.run.earlier is None else row.run.earlier.uid


@dataclass(frozen=True, slots=True)
class Execution:
    """
    What is at work under a name now; it uses what `document`, as JSON, mentions.

    `ending` if it comes to its end whatever a plan says: somebody has asked it to, or it is over
    but for its last steps.
    """

    uid: str
    document: str
    ending: bool


def executions(row: LiveResource) -> tuple[Execution, ...]:
    """Tell all that is at work under a name: the run itself, and the one that it waits for."""
    found: list[Execution] = []
    if row.run is not None and phase(row) is Phase.ACTIVE:
        # What has left the tree while it was at work was asked to end with that.
        ending = row.archived or row.run.state is RunState.FINISHING
        found.append(Execution(row.uid, row.run.executed or row.document, ending))
    if row.run is not None and (earlier := row.run.earlier) is not None:
        ending = row.archived or earlier.ending
        found.append(Execution(earlier.uid, earlier.document, ending))
    return tuple(found)


def documents_at_work(row: LiveResource) -> tuple[str, ...]:
    """What is at work under a name now was submitted with, as JSON: it uses what that mentions."""
    return tuple(one.document for one in executions(row))


def documents_of(row: LiveResource) -> tuple[str, ...]:
    """The document applied last, as JSON, and what else is at work under the name."""
    return tuple(dict.fromkeys((row.document, *documents_at_work(row))))


def is_unknown(row: LiveResource) -> bool:
    """Whether it still runs is unknown: nothing may be started in its place."""
    return row.run is not None and row.run.state is RunState.UNKNOWN
