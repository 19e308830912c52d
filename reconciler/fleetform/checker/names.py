"""That what was renamed is the same under its new name, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.checker.context import (
    PlanContext,
    at_work,
    documents,
    moves,
    name_before,
)
from fleetform.model.live import LiveResource, changed_rows
from fleetform.model.verbs import CREATES, ENDS, ENDS_USE, Verb
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import split_element
from fleetform.spec.renaming import Renames


def check_moves_declared(context: PlanContext) -> Iterator[str]:
    """Each renaming is declared, of an existing resource, to a name that is free."""
    declared = Renames(dict(context.desired.moved))
    for _, step in context.steps:
        if step.verb != Verb.RESOURCE_MOVE:
            continue
        before, rows = name_before(step), context.live.resources
        if declared.of(before) != step.resource:
            yield f"`moved:` does not say that {before} is {step.resource}"
        row, there = rows.get(before), rows.get(step.resource)
        if row is None:
            yield f"{before} would be renamed and does not exist"
        if there is not None and not there.archived:
            yield f"{before} would be renamed to {step.resource}, which exists"


def check_moved_kept(context: PlanContext) -> Iterator[str]:
    """What is declared under another name is not taken for something that goes."""
    if context.permissions.destroy or not context.desired.moved:
        return
    declared = Renames(dict(context.desired.moved))
    renamed = {step.resource for step in moves(context.plan)}
    known = {*context.desired.resources, *context.desired.removed}
    known |= {ResourceKey(key.kind, one.parent) for key, one in context.desired.resources.items()}
    targets = dict(context.desired.moved)
    for key in context.live.resources:
        after = declared.of(key)
        if after == key or after in context.live.resources:
            continue
        parent = ResourceKey(key.kind, split_element(key.name)[0])
        target = targets.get(key, targets.get(parent, after))
        if after in renamed and {after, target} & known:
            continue
        for _, step in context.steps:
            if step.resource in {key, after}:
                yield f"{step.key} is planned, and {key} is now named {after}"


# That nothing loses the ground it stands on.


def check_referred_to_kept(context: PlanContext) -> Iterator[str]:
    """What stays, as it will be after the plan, refers to nothing that goes."""
    made = {step.resource for _, step in context.steps if step.verb in CREATES}
    ended = {step.resource for _, step in context.steps if step.verb in ENDS}
    gone = {one for one in ended if one.kind != "run"} - made
    if not gone:
        return
    changed = {change.key for change in context.plan.changes}
    for key, row in context.rows.items():
        if row.archived or key in ended or key in changed:
            continue
        for lost in sorted(row.references & gone):
            yield f"{key} remains and refers to {lost}, which is removed"
        fleets_gone = sorted(one for one in gone if one.kind == "fleet")
        undeclared = context.declared(key) is None
        if fleets_gone and undeclared and at_work(row) and not _names_fleets(row):
            yield f"{key} remains and may run on {fleets_gone[0]}, which is removed"
    for change in context.plan.changes:
        declared = context.declared(change.key)
        for lost in () if declared is None else sorted({*declared.references} & gone):
            yield f"{change.key} needs {lost}, which is removed"


def check_used_kept(context: PlanContext) -> Iterator[str]:
    """Data does not go from under what is at work, nor a fleet out of sight, unless that ends first."""
    taken = {step.resource for _, step in context.steps if step.verb in ENDS_USE}
    if not taken:
        return
    # One that ends only what waits ends nothing that is at work.
    ended = {
        step.resource
        for _, step in context.steps
        if step.verb == Verb.RUN_STOP and not step.arguments.get("waiting")
    }
    for key, row in changed_rows(context.rows).items():
        if key.kind != "run" or key in ended:
            continue
        for text in documents(row, begun=True):
            for lost in sorted(_used(json.loads(text), taken)):
                yield f"{key} runs and uses {lost}, which is removed"


def _used(document: Mapping[str, Any], taken: set[ResourceKey]) -> set[ResourceKey]:
    """What of this a run at work uses; who names no fleet may be on any."""
    names, fleets = _mounted(document), document.get("fleets")
    return {
        key
        for key in taken
        if (key.name in names if key.kind == "volume" else not fleets or key.name in fleets)
    }


def _mounted(document: Mapping[str, Any]) -> set[str]:
    """Names of volumes; of a mount that names several any may be the one that is taken."""
    names: set[str] = set()
    for one in document.get("volumes", ()):
        named = one.get("name", ())
        names.update((named,) if isinstance(named, str) else named)
    return names


def _names_fleets(row: LiveResource) -> bool:
    return all(json.loads(document).get("fleets") for document in documents(row, begun=True))
