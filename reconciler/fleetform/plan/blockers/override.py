"""
What people have put above the tree, as far as a plan is concerned.

A freeze holds everything. A stop holds what would make one of its runs begin, and nothing else:
what ends such a run, or only its record, is carried out, so that the commit that makes the stop
permanent can be applied while it holds.
"""

from __future__ import annotations

from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import Change, HeldBy
from fleetform.plan.draft import Sheet

_BEGINS = frozenset({"run.submit"})


def hold_overridden(sheet: Sheet) -> None:
    freeze = next((one for one in sheet.overrides if one.kind is OverrideKind.FREEZE), None)
    stops = [one for one in sheet.overrides if one.kind is OverrideKind.STOP]
    if freeze is None and not stops:
        return
    for key, change in list(sheet.changes.items()):
        override = freeze or _stop_of(stops, change)
        if override is not None:
            sheet.hold(key, HeldBy.OVERRIDE, override.sentence, _cure(override))


def _stop_of(stops: list[Override], change: Change) -> Override | None:
    if change.key.kind != "run" or not any(step.verb in _BEGINS for step in change.steps):
        return None
    return next((one for one in stops if one.stops(change.key.name, change.parent)), None)


def _cure(override: Override) -> str:
    lift = f"`fleetform emergency lift {override.number}`"
    return lift if override.until_ms is None else f"it expires by itself; end it now with {lift}"
