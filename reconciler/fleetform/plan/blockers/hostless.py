"""What is done on a fleet's hosts waits until the fleet has one."""

from __future__ import annotations

import json

from fleetform.model.instance import InstanceState
from fleetform.model.plan import HeldBy
from fleetform.plan.draft import Sheet
from fleetform.plan.kinds.fleet import nodes_wanted
from fleetform.spec.desired import ResourceKey

__all__ = ["hold_hostless"]

_AFTER_HOSTS = frozenset({"volume.make", "volume.adopt", "volume.update"})
_BEFORE_THEY_GO = frozenset({"volume.remove", "volume.snapshot"})
_GONE = frozenset({InstanceState.TERMINATING, InstanceState.TERMINATED})


def hold_hostless(sheet: Sheet) -> None:
    """
    Hold changes of volumes on a fleet with `nodes: 0`, or of which nothing is known any more.

    Data is put somewhere by a host that is to be, and taken away by one that still is.
    """
    fleets = {
        (change.key, step.arguments["fleet"], step.verb)
        for change in sheet.changes.values()
        if change.key.kind == "volume"
        for step in change.steps
        if step.verb in _AFTER_HOSTS or step.verb in _BEFORE_THEY_GO
    }
    empty = {name for name in {fleet for _, fleet, _ in fleets} if _wants_none(sheet, name)}
    if not empty:
        return
    there = {one.fleet for one in sheet.live.instances if one.state not in _GONE}
    for key, fleet, verb in sorted(fleets):
        if fleet not in empty or key not in sheet.changes:
            continue
        if verb in _AFTER_HOSTS or fleet not in there:
            or_else = "" if verb in _AFTER_HOSTS else f", or list {key} under `removed:`"
            sheet.hold(
                key,
                HeldBy.DEPENDENCY,
                f"the change needs a host of fleet {fleet}, which has none",
                f"declare at least one node in fleet {fleet}{or_else}",
            )


def _wants_none(sheet: Sheet, fleet: str) -> bool:
    key = ResourceKey("fleet", fleet)
    declared = sheet.wanted.get(key)
    if declared is not None:
        return nodes_wanted(declared.document) == 0
    row = sheet.present.get(key)
    return row is None or nodes_wanted(json.loads(row.document)) == 0
