"""
What a plan says beyond its changes: runs that ended earlier other than `done`, and work under way.

A run without evidence that it ran is among them: only a person can settle it. They stay visible until
a person does something about them; which of them have a part in an exit code, `plan.exit` says.
Accepted work in progress is no change, so that a second plan is empty.
"""

from __future__ import annotations

import json
from typing import Any

from fleetform.model.instance import InstanceState
from fleetform.model.lineage import DEPENDENCY
from fleetform.model.live import Live, LiveResource, changed_rows
from fleetform.model.plan import Action, Plan, Reason, Settled, StaleResult, outdated_by
from fleetform.model.run_state import FINAL, NO_EVIDENCE, Outdated, RunState
from fleetform.model.verbs import Verb
from fleetform.model.volume import mounted_volumes
from fleetform.plan.blockers.protection import ENDING
from fleetform.plan.draft import LEAVING, PlanDraft
from fleetform.plan.phase import Phase, has_earlier, phase
from fleetform.spec.desired import ResourceKey

__all__ = [
    "in_progress",
    "outdated_by_plan",
    "settled_failures",
    "stale_results",
    "still_aborted",
    "unknown_runs",
]


_NOT_DONE = frozenset({RunState.FAILED, RunState.UNSCHEDULABLE, RunState.ABORTED, RunState.STOPPED})
_MOVING = frozenset({InstanceState.PROVISIONING, InstanceState.TERMINATING})


def settled_failures(draft: PlanDraft) -> tuple[Settled, ...]:
    """Runs of the configuration that ended other than `done` and that this plan leaves so, by key."""
    ending = _ending_rows(draft)
    return tuple(
        Settled(row.key, row.run.state.value, row.run.message or row.run.cause)
        for row in sorted(changed_rows(draft.present).values(), key=lambda row: row.key)
        if row.run is not None
        and (row.run.state in _NOT_DONE or row.run.cause == NO_EVIDENCE)
        and row.key not in ending
        and not _stop_wanted(draft, row)
    )


def _ending_rows(draft: PlanDraft) -> set[ResourceKey]:
    return {draft.row_key(change) for change in draft.changes.values() if change.action in ENDING}


def _stop_wanted(draft: PlanDraft, row: LiveResource) -> bool:
    """Tell whether the configuration says `state: stopped`: then it is as it should be."""
    declared = draft.wanted.get(row.key)
    return declared is not None and declared.document.get("state") == "stopped"


def in_progress(draft: PlanDraft) -> tuple[ResourceKey, ...]:
    """Accepted work that goes on by itself and that this plan does not touch, by key."""
    touched = {draft.row_key(change) for change in draft.changes.values()}
    keys = {
        key
        for key, row in changed_rows(draft.live.resources).items()
        if row.operation or _goes_on(row)
    }
    keys.update(
        ResourceKey("fleet", instance.fleet)
        for instance in draft.live.instances
        if instance.state in _MOVING or instance.is_joining
    )
    # A drained host is done with once its last job has ended.
    keys.update(ResourceKey("fleet", work.fleet) for work in draft.live.work if work.leaving)
    keys.update(ResourceKey("fleet", name) for name in draft.live.exchanging)
    return tuple(sorted(keys - touched))


def _goes_on(row: LiveResource) -> bool:
    """Tell whether a controller brings a run to its end without another plan."""
    if has_earlier(row):
        return True
    return row.run is not None and row.run.state not in FINAL and row.run.cause != NO_EVIDENCE


# Aborted runs that stay so although a plan runs again, or removes, what they had waited for.
# A run that was aborted is over: what it depends on may succeed later, and it does not start by itself.


def still_aborted(plan: Plan, live: Live) -> tuple[str, ...]:
    """Name those that depend on a run that this plan submits or removes, directly or along a chain."""
    reached: set[str] = set()
    for change in plan.changes:
        if change.key.kind != "run":
            continue
        if change.action in LEAVING:
            # Without the element that failed, the rest of its array may be fine.
            reached.add(change.parent)
        elif change.action is not Action.CREATE and any(
            step.verb == Verb.RUN_SUBMIT for step in change.steps
        ):
            reached |= {change.key.name, change.parent}
    reached.discard("")
    if not reached:
        return ()
    rows = changed_rows(live.resources)
    left = {
        row.key.name: (row.parent, _waited_for(row.document))
        for one in plan.settled
        if one.state == RunState.ABORTED
        and (row := rows.get(one.key)) is not None
        and row.run is not None
        and row.run.cause == DEPENDENCY
    }
    found: set[str] = set()
    while more := {
        name for name, (_, inputs) in left.items() if name not in found and inputs & reached
    }:
        found |= more
        reached |= more | {left[name][0] for name in more} - {""}
    return tuple(sorted(found))


def _waited_for(document: str) -> frozenset[str]:
    wanted = json.loads(document).get("depends_on", {})
    return frozenset(str(one["run"]) for one in wanted.get("runs", ()))


# Runs at work of which nothing is known now, because their host does not answer.
# The ledger has them in progress, and a controller takes them up again when the host answers. Until then a
# plan must not say that all is well.


def unknown_runs(plan: Plan, live: Live) -> list[dict[str, Any]]:
    """Name them by key, each with those of its hosts that do not answer."""
    silent = _silent_hosts(live)
    hosts: dict[str, set[str]] = {}
    for work in live.work:
        hosts.setdefault(work.run, set()).update(silent.intersection(work.hosts))
    rows = changed_rows(live.resources)
    return [
        {"name": key.name, "hosts": sorted(hosts.get(key.name, ()))}
        for key in plan.progressing
        if key.kind == "run"
        and (row := rows.get(key)) is not None
        and row.run is not None
        and (row.run.state is RunState.UNKNOWN or hosts.get(key.name))
    ]


def _silent_hosts(live: Live) -> set[str]:
    """By the ledger, and by this look at the actual state: an earlier look may be out of date."""
    silent = {one.name for one in live.instances if one.state is InstanceState.UNREACHABLE}
    return silent | {one.part for one in live.drift if one.field in {"agent", "host"} and one.part}


# Outdated results: those of finished runs whose inputs have changed.
# What a run inherits may have changed, and the set of results that it started from may differ from
# that of now. Neither runs anything again: each plan says so until a re-run is asked for.


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
