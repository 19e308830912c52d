"""
A directory is one volume's: what is to be made or taken in waits until its place is free.

A volume that was given another name without `moved:` is one that goes and one that comes, in one
place. Taken over too early, its data would be the new one's while the old one still stands for it.
"""

from __future__ import annotations

import json

from fleetform.model.plan import Change, HeldBy
from fleetform.model.rows import restless_rows
from fleetform.plan.holds.dependency import hold_dependants
from fleetform.plan.proposal import Sheet
from fleetform.spec.desired import ResourceKey

__all__ = ["hold_taken_places", "places_freed"]

_Place = tuple[str, str]

_TAKES = frozenset({"volume.make", "volume.adopt"})
_FREES = frozenset({"volume.forget", "volume.remove", "volume.snapshot"})


def hold_taken_places(sheet: Sheet) -> None:
    taking = _taking(sheet)
    if not taking:
        return
    before = len(sheet.held)
    # What is there as it is declared is in nobody's way: no two that are declared have one place.
    for row in list(restless_rows(sheet.present).values()):
        if row.key.kind != "volume":
            continue
        key = taking.get(_place(json.loads(row.document)))
        if key is None or key == row.key or key not in sheet.changes:
            continue
        if not _frees(sheet.changes.get(row.key)):
            sheet.hold(
                key,
                HeldBy.DEPENDENCY,
                f"{row.key} has this directory still",
                f"it follows as soon as {row.key} has gone, or say `moved:` where it is the same",
            )
    if len(sheet.held) > before:
        # What needs it waits with it.
        hold_dependants(sheet)


def places_freed(sheet: Sheet) -> dict[ResourceKey, str]:
    """For each volume that comes into the place of another: the step that takes that one away."""
    taking = _taking(sheet)
    freed: dict[ResourceKey, str] = {}
    for change in sheet.changes.values() if taking else ():
        for step in change.steps:
            if step.verb in _FREES:
                key = taking.get(_place(step.arguments))
                if key is not None and key != step.resource:
                    freed[key] = step.key
    return freed


def _taking(sheet: Sheet) -> dict[_Place, ResourceKey]:
    return {
        _place(step.arguments): step.resource
        for change in sheet.changes.values()
        if change.key.kind == "volume"
        for step in change.steps
        if step.verb in _TAKES
    }


def _frees(change: Change | None) -> bool:
    return change is not None and any(step.verb in _FREES for step in change.steps)


def _place(said: object) -> _Place:
    assert isinstance(said, dict)
    return said.get("fleet", ""), said.get("path", "")
