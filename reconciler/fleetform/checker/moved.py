"""
That what was renamed is the same under its new name, and nothing else.

The ledger as it will be called is put together here from the steps of the plan alone, so that
every other check can look at it by the names that the tree uses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fleetform.checker.invariant import Invariant, Violation
from fleetform.model.live import Live, LiveResource
from fleetform.model.plan import Change, Plan, Step
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import split_element
from fleetform.spec.renaming import Renames, digests_of, rename_references

if TYPE_CHECKING:
    from fleetform.checker.reading import Reading

MOVE = "resource.move"


def earlier_names(plan: Plan) -> dict[ResourceKey, ResourceKey]:
    """What the plan renames, also where it is held or left for another plan: old by new name."""
    return {step.resource: _before(step) for step in _moves(_all_changes(plan))}


def renamed_rows(plan: Plan, live: Live) -> Mapping[ResourceKey, LiveResource]:
    """The ledger's rows by the names that they get."""
    steps = list(_moves(_all_changes(plan)))
    if not steps:
        return live.resources
    pairs = {_before(step): step.resource for step in steps}
    for step in steps:
        if sweep := step.arguments.get("sweep"):
            parent = split_element(step.resource.name)[0]
            pairs[ResourceKey(step.resource.kind, sweep)] = ResourceKey(step.resource.kind, parent)
    renames = Renames(pairs)
    given_up = {after: before for before, after in pairs.items()}
    rows: dict[ResourceKey, LiveResource] = {}
    for key, row in live.resources.items():
        # Whoever has a name that is given to another takes the one that becomes free.
        now = pairs[key] if key in pairs else given_up.get(key, key)
        parent, element = split_element(now.name)
        named = (
            row
            if now == key
            else replace(row, key=now, parent=parent if element else "", element=element)
        )
        rows[now] = _with_references(named, renames)
    return rows


def _with_references(row: LiveResource, renames: Renames) -> LiveResource:
    if not row.document or not renames.may_be_in(row.document):
        return row
    document = json.loads(row.document)
    renamed = rename_references(row.key.kind, document, renames)
    if renamed == document:
        return row
    digest, execution = digests_of(row.key.kind, renamed)
    return replace(
        row,
        document=json.dumps(renamed),
        digest=digest,
        execution_digest=execution,
        own_digest=digest if row.own_digest == row.digest else row.own_digest,
    )


def check_moves_declared(reading: Reading) -> Iterator[Violation]:
    """Each renaming is declared, of something that is there, to a name that nobody has."""
    declared = Renames(dict(reading.desired.moved))
    for _, step in reading.steps:
        if step.verb != MOVE:
            continue
        before, rows = _before(step), reading.live.resources
        if declared.of(before) != step.resource:
            yield Violation(
                Invariant.MOVED_IS_THE_SAME, f"nobody says that {before} is {step.resource}"
            )
        row, there = rows.get(before), rows.get(step.resource)
        if row is None:
            yield Violation(Invariant.MOVED_IS_THE_SAME, f"{before} is renamed and is not there")
        if there is not None and not there.archived:
            yield Violation(
                Invariant.MOVED_IS_THE_SAME,
                f"{before} is renamed to {step.resource}, which is there",
            )


def check_moved_kept(reading: Reading) -> Iterator[Violation]:
    """What is declared under another name is not taken for something that goes."""
    if reading.permissions.destroy or not reading.desired.moved:
        return
    declared = Renames(dict(reading.desired.moved))
    renamed = {step.resource for step in _moves(_all_changes(reading.plan))}
    for key in reading.live.resources:
        after = declared.of(key)
        if after == key or after in reading.live.resources or after in renamed:
            continue
        for _, step in reading.steps:
            if step.resource in {key, after}:
                yield Violation(
                    Invariant.MOVED_IS_KEPT, f"{step.key} is planned, and {key} is {after} now"
                )


def _before(step: Step) -> ResourceKey:
    return ResourceKey(step.resource.kind, str(step.arguments["from"]))


def _moves(changes: Iterator[Change]) -> Iterator[Step]:
    return (step for change in changes for step in change.steps if step.verb == MOVE)


def _all_changes(plan: Plan) -> Iterator[Change]:
    yield from plan.changes
    yield from (held.change for held in plan.held)
    yield from (deferred.change for deferred in plan.deferred)
