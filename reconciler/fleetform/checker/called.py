"""
The ledger as it will be called, put together from the steps of the plan alone.

Every check looks at it by the names that the tree uses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from fleetform.model.live import Live, LiveResource
from fleetform.model.plan import Change, Plan, Step
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import split_element
from fleetform.spec.renaming import Renames, digests_of, rename_references

MOVE = "resource.move"


def earlier_names(plan: Plan) -> dict[ResourceKey, ResourceKey]:
    """What the plan renames, also where it is held or left for another plan: old by new name."""
    return {step.resource: name_before(step) for step in moves(plan)}


def renamed(plan: Plan) -> dict[ResourceKey, ResourceKey]:
    """What `moved:` must have said for the plan to rename it: new by old name, a sweep as a whole."""
    pairs: dict[ResourceKey, ResourceKey] = {}
    for step in moves(plan):
        before, after = name_before(step), step.resource
        if sweep := step.arguments.get("sweep"):
            before = ResourceKey(after.kind, sweep)
            after = ResourceKey(after.kind, split_element(after.name)[0])
        pairs[before] = after
    return pairs


def renamed_rows(plan: Plan, live: Live) -> Mapping[ResourceKey, LiveResource]:
    """The ledger's rows by the names that they get."""
    steps = list(moves(plan))
    if not steps:
        return live.resources
    pairs = {name_before(step): step.resource for step in steps}
    renames = Renames({**pairs, **renamed(plan)})
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


def name_before(step: Step) -> ResourceKey:
    """Return the name that a renaming takes away."""
    return ResourceKey(step.resource.kind, str(step.arguments["from"]))


def host_called(name: str, before: str, after: str) -> str:
    """
    Name a host whose fleet is called `after` instead of `before`.

    Those called by their fleet and number are renamed with it; what has a name of its own, or is
    of another fleet, keeps it.
    """
    number = name.removeprefix(f"{before}-")
    return f"{after}-{number}" if number != name and number.isdigit() else name


def moves(plan: Plan) -> Iterator[Step]:
    """Yield each renaming, also where it is held or left for another plan."""
    changes = _all_changes(plan)
    return (step for change in changes for step in change.steps if step.verb == MOVE)


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
        # What has none was never made in whole, under whatever name.
        digest=digest if row.digest else "",
        execution_digest=execution if row.digest else "",
        own_digest=digest if row.own_digest == row.digest else row.own_digest,
    )


def _all_changes(plan: Plan) -> Iterator[Change]:
    yield from plan.changes
    yield from (held.change for held in plan.held)
    yield from (deferred.change for deferred in plan.deferred)
