"""
Outdated results: those of finished runs whose inputs have changed.

What a run inherits may have changed, and the set of results that it started from may differ from
that of now. Neither runs anything again: each plan says so until a re-run is asked for.
"""

from __future__ import annotations

from fleetform.model.plan import StaleResult
from fleetform.model.rows import restless_rows
from fleetform.plan.holds.protection import ENDING
from fleetform.plan.phase import Phase, phase
from fleetform.plan.proposal import Sheet
from fleetform.spec.desired import ResourceKey

__all__ = ["stale_results"]


def stale_results(sheet: Sheet) -> tuple[StaleResult, ...]:
    """Finished runs of the tree that this plan leaves as they are, by key."""
    ending = {sheet.row_key(change) for change in sheet.changes.values() if change.action in ENDING}
    inherited = {
        key
        for key, row in restless_rows(sheet.present).items()
        if row.run is not None and row.run.stale and phase(row) is Phase.FINISHED
    }
    # This plan may be what marks them.
    for change in sheet.changes.values():
        if any(step.arguments.get("stale") for step in change.steps):
            inherited.add(change.key)
    outdated = {ResourceKey("run", name) for name in sheet.live.outdated}
    return tuple(
        StaleResult(key, key in inherited, sheet.live.outdated.get(key.name, ()))
        for key in sorted((inherited | outdated) - ending)
        if key in sheet.present
    )
