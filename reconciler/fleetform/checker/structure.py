"""
That what goes does so in the one safe order: runs, then volumes, then fleets.

A step that does not wait for another may be carried out beside it, or before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from fleetform.checker.context import (
    PlanContext,
    documents,
    has_begun,
    is_over,
)
from fleetform.model.live import LiveResource, unchanged_digests
from fleetform.model.plan import Action, Change, Reason, Step
from fleetform.model.run_state import NO_EVIDENCE, Outdated, RunState
from fleetform.model.selection import Selection
from fleetform.model.verbs import (
    BEGINS_USE,
    CARRIES_DOCUMENT,
    CREATES,
    ENDS,
    KINDS,
    ON_HOSTS,
    PROVIDES,
    Effect,
    Verb,
    verbs_of,
)
from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.renaming import digests_of

__all__ = [
    "check_acyclic",
    "check_begins_on_declared",
    "check_begins_on_something",
    "check_documents_declared",
    "check_finished_not_rerun",
    "check_fit_action",
    "check_keys_unique",
    "check_needs_exist",
    "check_one_execution",
    "check_removal_ordered",
    "check_running_unchanged",
    "check_successor_waits",
]


_ENDS = verbs_of(*ON_HOSTS) & ENDS | {Verb.VOLUME_WITHDRAW}


def check_removal_ordered(context: PlanContext) -> Iterator[str]:
    """Whatever ends the use of a volume or a fleet comes before it goes."""
    going = {step.resource: step for _, step in context.steps if step.verb in _ENDS}
    if not going:
        return
    awaited = {step.key: _before(context, step) for step in going.values()}
    for user, resource in _uses(context, going):
        step = going[resource]
        if user.key not in awaited[step.key]:
            yield f"{step.key} does not wait for {user.key}"


def _uses(
    context: PlanContext, going: Mapping[ResourceKey, Step]
) -> Iterator[tuple[Step, ResourceKey]]:
    """The steps that end a use, each with what is used."""
    fleets = [key for key in going if key.kind == "fleet"]
    for _, step in context.steps:
        row = context.row(step.resource)
        if row is None:
            continue
        if step.verb == Verb.RUN_STOP:
            used: Iterable[ResourceKey] = _used_by_run(row, fleets)
        elif step.verb in _ENDS:
            used = row.references
        else:
            continue
        for key in used:
            if key in going:
                yield step, key


def _used_by_run(row: LiveResource, fleets: list[ResourceKey]) -> Iterator[ResourceKey]:
    for document in map(json.loads, documents(row)):
        for one in document.get("volumes", ()):
            names = one["name"] if isinstance(one["name"], list) else [one["name"]]
            yield from (ResourceKey("volume", name) for name in names)
        named = document.get("fleets")
        # Who names no fleet may be at work on any of them.
        yield from (ResourceKey("fleet", name) for name in named) if named else iter(fleets)


def check_successor_waits(context: PlanContext) -> Iterator[str]:
    """What takes the place of something waits until that is gone."""
    for change in context.plan.changes:
        ended = [step for step in change.steps if step.verb == Verb.RUN_STOP or step.verb in _ENDS]
        made = [
            step for step in change.steps if step.verb in CREATES or step.verb == Verb.RUN_ARCHIVE
        ]
        for later in made if ended else ():
            for earlier in ended:
                if earlier.key not in _before(context, later):
                    yield f"{later.key} does not wait for {earlier.key}"


def _before(context: PlanContext, step: Step) -> frozenset[str]:
    """Keys of all steps that a step waits for, directly or not."""
    found: set[str] = set()
    waiting = list(step.needs)
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            if (needed := context.steps_by_key.get(key)) is not None:
                waiting.extend(needed.needs)
    return frozenset(found)


# That a plan's steps can be carried out as they stand.

# What each kind's actions may consist of: nothing else, and at least one of them.
_EFFECTS: Mapping[Action, frozenset[Effect]] = {
    Action.CREATE: frozenset({Effect.CREATE, Effect.SET, Effect.RESTORE}),
    Action.UPDATE: frozenset({Effect.UPDATE, Effect.SET, Effect.STOP, Effect.WITHDRAW}),
    Action.REPLACE: frozenset({Effect.STOP, Effect.DELETE, Effect.CREATE}),
    Action.DELETE: frozenset({Effect.STOP, Effect.DELETE}),
    Action.FORGET: frozenset({Effect.STOP, Effect.RELEASE}),
    Action.ADOPT: frozenset({Effect.ADOPT}),
}
_VERBS: Mapping[tuple[str, Action], frozenset[str]] = {
    **{
        (kind, action): verbs
        for kind in KINDS
        for action, effects in _EFFECTS.items()
        if (verbs := verbs_of(kind, effects=effects))
        # What is only set is never there twice, so nothing takes its place.
        and (action is not Action.REPLACE or verbs & CREATES)
    },
    ("environment", Action.UPDATE): frozenset({Verb.RULES_SET}),
    # The directory stays: what becomes of its data is decided by the policy and not by the action.
    ("volume", Action.REPLACE): frozenset(
        {
            Verb.VOLUME_FORGET,
            Verb.VOLUME_REMOVE,
            Verb.VOLUME_SNAPSHOT,
            Verb.VOLUME_MAKE,
            Verb.VOLUME_UPDATE,
        }
    ),
    ("volume", Action.FORGET): frozenset({Verb.VOLUME_FORGET, Verb.VOLUME_SNAPSHOT}),
    ("volume", Action.DELETE): frozenset({Verb.VOLUME_REMOVE}),
    ("run", Action.ARCHIVE): frozenset({Verb.RUN_ARCHIVE}),
}


def check_keys_unique(context: PlanContext) -> Iterator[str]:
    counts = Counter(step.key for _, step in context.steps)
    for key, count in sorted(counts.items()):
        if count > 1:
            yield f"{count} steps have the key {key}"


def check_needs_exist(context: PlanContext) -> Iterator[str]:
    keys = {step.key for _, step in context.steps}
    for _, step in context.steps:
        for need in step.needs:
            if need not in keys:
                yield f"{step.key} waits for {need}, which is not in the plan"


def check_acyclic(context: PlanContext) -> Iterator[str]:
    needs = {step.key: step.needs for _, step in context.steps}
    # Nearly all of them wait for what waits for nothing, and can be in no circle; looking for one
    # among ten thousand takes longer than all other checks of steps.
    free = {key for key, needed in needs.items() if not needed}
    deeper = {key: needed for key, needed in needs.items() if not free.issuperset(needed)}
    sorter = TopologicalSorter(deeper)
    try:
        sorter.prepare()
    except CycleError as error:
        yield " waits for ".join(reversed(error.args[1]))


def check_fit_action(context: PlanContext) -> Iterator[str]:
    for change in context.plan.changes:
        allowed = _VERBS.get((change.key.kind, change.action), frozenset())
        verbs = [step.verb for step in change.steps]
        names = {change.key.name, change.replaces}
        if not verbs:
            yield f"{change.key} has no step"
        for step in change.steps:
            fits = step.verb in allowed or (
                step.verb == Verb.RESOURCE_MOVE and bool(change.moved_from)
            )
            if not fits or step.resource.name not in names:
                yield f"{step.key} is a step of {change.action} of {change.key}"


def check_documents_declared(context: PlanContext) -> Iterator[str]:
    for change, step in context.steps:
        if step.verb not in CARRIES_DOCUMENT:
            continue
        making = any(one.verb in CREATES for one in change.steps)
        declared = context.declared(step.resource, making=making)
        if declared is None:
            yield f"{step.key} creates a resource that no document declares"
        elif (
            step.arguments.get("digest") != declared.digest
            or step.arguments.get("document") != declared.document
        ):
            yield f"{step.key} contains another document"


# That nothing runs twice by accident: the promise that runs as desired state stand on.


def check_finished_not_rerun(context: PlanContext) -> Iterator[str]:
    for change, step in context.steps:
        row = context.row(step.resource)
        if step.verb != Verb.RUN_SUBMIT or row is None or not is_over(row):
            continue
        declared = context.declared(step.resource)
        asked = Reason.REPLACE_ASKED in change.reasons and Selection(
            context.scope.replaces
        ).selects(step.resource, row.parent)
        if declared is None or not (asked or _has_reason(change, declared, row)):
            yield f"{step.resource} has finished and would run again"


def _has_reason(change: Change, declared: Declared, row: LiveResource) -> bool:
    """Tell whether a reason that the change gives is borne out by row and document."""
    assert row.run is not None
    before = row.parsed
    after = declared.document
    other = declared.execution_digest != row.execution_digest
    ended_early = row.run.state is RunState.STOPPED and after.get("state") != "stopped"
    borne_out = {
        Reason.EXECUTION_CHANGED: (
            other and (row.archived or declared.own_digest != row.own_digest)
        )
        or (
            row.run.stale is Outdated.DOCUMENT
            and before.get("state") == "stopped" != after.get("state")
        ),
        Reason.RERUN_ASKED: after.get("rerun", 0) > max(before.get("rerun", 0), row.run.rerun_mark),
        Reason.RESUMED: ended_early and (row.archived or before.get("state") == "stopped"),
    }
    return any(borne_out.get(reason, False) for reason in change.reasons)


def _is_vouched_for(declared: Declared | None, row: LiveResource) -> bool:
    """Tell whether a person has asked for a run of which no host has any evidence."""
    if row.run is None or row.run.cause != NO_EVIDENCE or declared is None:
        return False
    before = row.parsed.get("rerun", 0)
    return bool(declared.document.get("rerun", 0) > max(before, row.run.rerun_mark))


def check_one_execution(context: PlanContext) -> Iterator[str]:
    for change, step in context.steps:
        row = context.row(step.resource)
        if step.verb != Verb.RUN_SUBMIT or row is None:
            continue
        earlier = None if row.run is None else row.run.earlier
        if is_over(row) and earlier is None:
            continue
        if _is_vouched_for(context.declared(step.resource), row):
            continue
        before = row.uid if earlier is None else earlier.uid
        waits = step.arguments.get("after_uid") == before != ""
        unknown = row.run is not None and row.run.state is RunState.UNKNOWN
        if not waits or unknown:
            yield f"{change.key} would start while its earlier run may still run"


def check_running_unchanged(context: PlanContext) -> Iterator[str]:
    for change, step in context.steps:
        row = context.row(step.resource)
        if step.verb != Verb.RUN_UPDATE or row is None or is_over(row):
            continue
        if "earlier" in step.arguments and not _is_executed_already(context, step):
            yield f"{step.resource} would continue an earlier run with another execution"
        if step.arguments.get("execution_digest") == row.execution_digest:
            continue
        ends = _is_stopped(step) and any(
            one.verb == Verb.RUN_STOP and one.resource == step.resource for one in change.steps
        )
        begun = has_begun(row)
        same = begun and not any(one.field_class == "execution" for one in change.fields)
        known_as = context.earlier_names.get(step.resource, step.resource)
        pinned = ("run-not-started", known_as) in context.claims
        if not (ends or same or (pinned and not begun)):
            yield f"{step.resource} would get another execution while it may run"


def _is_stopped(step: Step) -> bool:
    """Tell whether the document that a step writes defers its execution until the run runs again."""
    return bool(step.arguments["document"].get("state") == "stopped")


def _is_executed_already(context: PlanContext, step: Step) -> bool:
    """Tell whether the run whose name it was executes what is declared, and goes on with it."""
    row, declared = context.row(step.resource), context.declared(step.resource)
    if row is None or row.run is None or declared is None or has_begun(row):
        return False
    earlier = row.run.earlier
    if earlier is None:
        return False
    _, executed = digests_of("run", json.loads(earlier.document))
    said = (step.arguments["earlier"], declared.execution_digest)
    return said == (earlier.uid, executed) and not earlier.ending


# That nothing begins on what the tree says is another one, or is to run again.


def check_begins_on_something(context: PlanContext) -> Iterator[str]:
    """What something needs to begin is there, or this plan makes it."""
    made = {step.resource for _, step in context.steps if step.verb in PROVIDES}
    unchanged = unchanged_digests(context.rows)
    for _, step in context.steps:
        declared = context.declared(step.resource) if step.verb in BEGINS_USE else None
        for needed in () if declared is None else declared.references:
            # Of what is as declared, no more than a digest is known; to ask would read every row.
            if needed.kind not in KINDS or needed in made or needed in unchanged:
                continue
            row = context.row(needed)
            if row is None or row.archived:
                yield f"{step.resource} would start on {needed}, which does not exist"


def check_begins_on_declared(context: PlanContext) -> Iterator[str]:
    """While something waits to be another one, nothing is begun on the one that goes."""
    left = [one.change for one in context.plan.held]
    left += (one.change for one in context.plan.deferred)
    outdated = {change.key for change in left if change.action is Action.REPLACE}
    for _, step in context.steps if outdated else ():
        declared = context.declared(step.resource)
        if step.verb not in BEGINS_USE or declared is None:
            continue
        runs = (ResourceKey("run", name) for name in declared.upstream)
        for needed in sorted(outdated.intersection((*declared.references, *runs))):
            yield f"{step.resource} would start on {needed}, which is to be replaced"
