"""
What a plan says beyond its changes: runs that ended earlier other than `done`, and work under way.

A run without evidence that it ran is among them: only a person can settle it. They stay visible until
a person does something about them; which of them have a part in an exit code, `plan.exit` says.
Accepted work in progress is no change, so that a second plan is empty.
"""

from __future__ import annotations

from fleetform.model.instance import InstanceState
from fleetform.model.live import LiveResource
from fleetform.model.plan import Settled
from fleetform.model.recovery import NO_EVIDENCE
from fleetform.model.rows import restless_rows
from fleetform.model.run_state import FINAL, RunState
from fleetform.plan.blockers.protection import ENDING
from fleetform.plan.draft import Sheet
from fleetform.plan.phase import has_earlier
from fleetform.spec.desired import ResourceKey

_NOT_DONE = frozenset({RunState.FAILED, RunState.UNSCHEDULABLE, RunState.ABORTED, RunState.STOPPED})
_MOVING = frozenset({InstanceState.PROVISIONING, InstanceState.TERMINATING})


def settled_failures(sheet: Sheet) -> tuple[Settled, ...]:
    """Runs of the configuration that ended other than `done` and that this plan leaves so, by key."""
    ending = _ending_rows(sheet)
    return tuple(
        Settled(row.key, row.run.state.value, row.run.message or row.run.cause)
        for row in sorted(restless_rows(sheet.present).values(), key=lambda row: row.key)
        if row.run is not None
        and (row.run.state in _NOT_DONE or row.run.cause == NO_EVIDENCE)
        and row.key not in ending
        and not _stop_wanted(sheet, row)
    )


def _ending_rows(sheet: Sheet) -> set[ResourceKey]:
    return {sheet.row_key(change) for change in sheet.changes.values() if change.action in ENDING}


def _stop_wanted(sheet: Sheet, row: LiveResource) -> bool:
    """Tell whether the configuration says `state: stopped`: then it is as it should be."""
    declared = sheet.wanted.get(row.key)
    return declared is not None and declared.document.get("state") == "stopped"


def in_progress(sheet: Sheet) -> tuple[ResourceKey, ...]:
    """Accepted work that goes on by itself and that this plan does not touch, by key."""
    touched = {sheet.row_key(change) for change in sheet.changes.values()}
    keys = {
        key
        for key, row in restless_rows(sheet.live.resources).items()
        if row.operation or _goes_on(row)
    }
    keys.update(
        ResourceKey("fleet", instance.fleet)
        for instance in sheet.live.instances
        if instance.state in _MOVING
    )
    # A drained host is done with once its last job has ended.
    keys.update(ResourceKey("fleet", work.fleet) for work in sheet.live.work if work.leaving)
    keys.update(ResourceKey("fleet", name) for name in sheet.live.exchanging)
    return tuple(sorted(keys - touched))


def _goes_on(row: LiveResource) -> bool:
    """Tell whether a controller brings a run to its end without another plan."""
    if has_earlier(row):
        return True
    return row.run is not None and row.run.state not in FINAL and row.run.cause != NO_EVIDENCE
