"""That nothing loses the ground it stands on."""

from __future__ import annotations

import json
from collections.abc import Iterator

from fleetform.checker.invariant import Invariant, Violation
from fleetform.checker.reading import Reading, at_work, documents
from fleetform.model.live import LiveResource
from fleetform.spec.desired import ResourceKey

_DROPS = frozenset(
    {"fleet.remove", "fleet.forget", "volume.remove", "volume.forget", "volume.snapshot"}
)
_MAKES = frozenset({"fleet.make", "volume.make"})


def check_referred_to_kept(reading: Reading) -> Iterator[Violation]:
    """What stays, as it will be after the plan, refers to nothing that goes."""
    made = {step.resource for _, step in reading.steps if step.verb in _MAKES}
    gone = {step.resource for _, step in reading.steps if step.verb in _DROPS} - made
    if not gone:
        return
    ended = {
        step.resource
        for _, step in reading.steps
        if step.verb in {*_DROPS, "run.archive", "run.forget"}
    }
    changed = {change.key for change in reading.plan.changes}
    for key, row in reading.rows.items():
        if row.archived or key in ended or key in changed:
            continue
        for lost in sorted(mentioned(row) & gone):
            yield Violation(Invariant.REFERRED_TO_STAYS, f"{key} stays and {lost} goes")
        fleets_gone = sorted(one for one in gone if one.kind == "fleet")
        undeclared = reading.declared(key) is None
        if fleets_gone and undeclared and at_work(row) and not _names_fleets(row):
            yield Violation(
                Invariant.REFERRED_TO_STAYS,
                f"{key} stays and may be at work on {fleets_gone[0]}, which goes",
            )
    for change in reading.plan.changes:
        declared = reading.declared(change.key)
        for lost in () if declared is None else sorted({*declared.references} & gone):
            yield Violation(Invariant.REFERRED_TO_STAYS, f"{change.key} needs {lost}, which goes")


def mentioned(row: LiveResource) -> set[ResourceKey]:
    """What the document that was applied last refers to, and what is at work: fleets and volumes."""
    if row.key.kind == "fleet":
        return set()
    if row.key.kind == "volume":
        return {ResourceKey("fleet", json.loads(row.document).get("fleet", ""))}
    found: set[ResourceKey] = set()
    for document in map(json.loads, documents(row)):
        found.update(ResourceKey("fleet", name) for name in document.get("fleets", ()))
        found.update(ResourceKey("volume", one["name"]) for one in document.get("volumes", ()))
    return found


def _names_fleets(row: LiveResource) -> bool:
    return all(json.loads(document).get("fleets") for document in documents(row, begun=True))
