"""
Outdated results: those of finished runs whose inputs have changed.

What a run inherits may have changed, and the set of results that it started from may differ from
that of now. Neither runs anything again: each plan says so until a re-run is asked for.
"""

from __future__ import annotations

from fleetform.model.plan import Reason, StaleResult, outdated_by
from fleetform.model.rows import changed_rows
from fleetform.model.run_state import Outdated
from fleetform.model.verbs import Verb
from fleetform.model.volume import mounted_volumes
from fleetform.plan.blockers.protection import ENDING
from fleetform.plan.draft import LEAVING, PlanDraft
from fleetform.plan.phase import Phase, phase
from fleetform.spec.desired import ResourceKey

__all__ = ["outdated_by_plan", "stale_results"]


def stale_results(draft: PlanDraft) -> tuple[StaleResult, ...]:
    """Finished runs of the tree that this plan leaves as they are, by key."""
    ending = {draft.row_key(change) for change in draft.changes.values() if change.action in ENDING}
    marked = {
        key: row.run.stale
        for key, row in changed_rows(draft.present).items()
        if row.run is not None and row.run.stale and phase(row) is Phase.FINISHED
    }
    # This plan may be what marks them.
    for change in draft.changes.values():
        for step in change.steps:
            if outdated := outdated_by(step):
                marked[change.key] = outdated
    names = {ResourceKey("run", name) for name in draft.live.outdated}
    return tuple(
        StaleResult(key, marked.get(key, Outdated.NO), draft.live.outdated.get(key.name, ()))
        for key in sorted((marked.keys() | names) - ending)
        if key in draft.present
    )


def outdated_by_plan(draft: PlanDraft) -> tuple[str, ...]:
    """
    Name the results that this plan will make outdated, as soon as its runs have ended.

    Those that it makes again are not among them, nor those that are outdated already.
    """
    lost = _began_on_lost(draft)
    if not draft.live.dependents and not lost:
        return ()
    again = {
        draft.row_key(change).name
        for change in draft.changes.values()
        if change.action in ENDING or any(step.verb == Verb.RUN_SUBMIT for step in change.steps)
    }
    reached: list[str] = []
    for key, change in draft.changes.items():
        if key.kind != "run":
            continue
        if change.action in LEAVING:
            # What leaves as a whole leaves nothing newer to start from.
            reached.append(change.parent)
        elif any(step.verb == Verb.RUN_SUBMIT for step in change.steps):
            reached += (key.name, change.parent)
    found = lost - again
    for name in sorted(lost):
        reached += (name, draft.present[ResourceKey("run", name)].parent)
    told: set[str] = set()
    for name in reached:
        if not name or name in told:
            continue
        told.add(name)
        for dependent in draft.live.dependents.get(name, ()):
            key = ResourceKey("run", dependent)
            if dependent not in again and key in draft.present:
                found.add(dependent)
                reached += (dependent, draft.present[key].parent)
    return tuple(sorted(found - draft.live.outdated.keys()))


def _began_on_lost(draft: PlanDraft) -> set[str]:
    """Name the runs that have started and mount a volume that this plan creates again without its data."""
    lost = {
        key
        for key, change in draft.changes.items()
        if key.kind == "volume" and Reason.DATA_LOST in change.reasons
    }
    if not lost:
        return set()
    return {
        key.name
        for key, row in draft.present.items()
        if key.kind == "run"
        and row.run is not None
        and row.run.started_at_ms is not None
        and any(volume.name in mounted_volumes(row.document) for volume in lost)
    }
