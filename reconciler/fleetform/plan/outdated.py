"""
Outdated results: those of finished runs whose inputs have changed.

What a run inherits may have changed, and the set of results that it started from may differ from
that of now. Neither runs anything again: each plan says so until a re-run is asked for.
"""

from __future__ import annotations

from fleetform.model.plan import Reason, StaleResult, outdated_by
from fleetform.model.rows import restless_rows
from fleetform.model.run_state import Outdated
from fleetform.model.verbs import Verb
from fleetform.model.volume import mounted_volumes
from fleetform.plan.blockers.protection import ENDING
from fleetform.plan.draft import LEAVING, Sheet
from fleetform.plan.phase import Phase, phase
from fleetform.spec.desired import ResourceKey

__all__ = ["outdated_by_plan", "stale_results"]


def stale_results(sheet: Sheet) -> tuple[StaleResult, ...]:
    """Finished runs of the tree that this plan leaves as they are, by key."""
    ending = {sheet.row_key(change) for change in sheet.changes.values() if change.action in ENDING}
    marked = {
        key: row.run.stale
        for key, row in restless_rows(sheet.present).items()
        if row.run is not None and row.run.stale and phase(row) is Phase.FINISHED
    }
    # This plan may be what marks them.
    for change in sheet.changes.values():
        for step in change.steps:
            if outdated := outdated_by(step):
                marked[change.key] = outdated
    names = {ResourceKey("run", name) for name in sheet.live.outdated}
    return tuple(
        StaleResult(key, marked.get(key, Outdated.NO), sheet.live.outdated.get(key.name, ()))
        for key in sorted((marked.keys() | names) - ending)
        if key in sheet.present
    )


def outdated_by_plan(sheet: Sheet) -> tuple[str, ...]:
    """
    Name the results that this plan will make outdated, as soon as its runs have ended.

    Those that it makes again are not among them, nor those that are outdated already.
    """
    lost = _began_on_lost(sheet)
    if not sheet.live.dependents and not lost:
        return ()
    again = {
        sheet.row_key(change).name
        for change in sheet.changes.values()
        if change.action in ENDING or any(step.verb == Verb.RUN_SUBMIT for step in change.steps)
    }
    reached: list[str] = []
    for key, change in sheet.changes.items():
        if key.kind != "run":
            continue
        if change.action in LEAVING:
            # What leaves as a whole leaves nothing newer to start from.
            reached.append(change.parent)
        elif any(step.verb == Verb.RUN_SUBMIT for step in change.steps):
            reached += (key.name, change.parent)
    found = lost - again
    for name in sorted(lost):
        reached += (name, sheet.present[ResourceKey("run", name)].parent)
    told: set[str] = set()
    for name in reached:
        if not name or name in told:
            continue
        told.add(name)
        for dependent in sheet.live.dependents.get(name, ()):
            key = ResourceKey("run", dependent)
            if dependent not in again and key in sheet.present:
                found.add(dependent)
                reached += (dependent, sheet.present[key].parent)
    return tuple(sorted(found - sheet.live.outdated.keys()))


def _began_on_lost(sheet: Sheet) -> set[str]:
    """Name the runs that have started and mount a volume that this plan creates again without its data."""
    lost = {
        key
        for key, change in sheet.changes.items()
        if key.kind == "volume" and Reason.DATA_LOST in change.reasons
    }
    if not lost:
        return set()
    return {
        key.name
        for key, row in sheet.present.items()
        if key.kind == "run"
        and row.run is not None
        and row.run.started_at_ms is not None
        and any(volume.name in mounted_volumes(row.document) for volume in lost)
    }
