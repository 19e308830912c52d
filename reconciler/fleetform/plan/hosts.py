"""
Which hosts go with a fleet, and how many: those that are there, which may be more than are declared.

Hosts that leave are there until their last job has ended, and one that is not there yet is no
loss. A kind's logic has the row of a fleet and not its hosts, so it says how many were declared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change
from fleetform.plan.draft import Sheet
from fleetform.plan.impact import hosts_ended
from fleetform.plan.kinds.fleet import (
    hastens,
    hosts_at_stake,
    nodes_wanted,
    template_of,
    waits_for_nobody,
    was_made,
)
from fleetform.spec.desired import Declared, ResourceKey

__all__ = ["count_hosts", "ends_unfinished", "hasten_exchanges"]


def hasten_exchanges(sheet: Sheet) -> None:
    """
    Say what ends with hosts that are being exchanged when their fleet shall wait for nobody.

    The document alone says how the next exchange goes; the one under way follows it as well. Of a
    fleet that was never made in whole there is none, and its hosts are there all the same.
    """
    there = sheet.live.exchanging | {one.fleet for one in sheet.live.instances}
    for key in sorted(ResourceKey("fleet", name) for name in there):
        change, declared = sheet.changes.get(key), sheet.wanted.get(key)
        if change is None or declared is None or change.action is not Action.UPDATE:
            continue
        row = sheet.present.get(key)
        if row is None:
            continue
        before = json.loads(row.document) if row.document else {}
        is_hastened = key.name in sheet.live.exchanging and hastens(before, declared.document)
        if is_hastened or ends_unfinished(sheet, declared, row):
            sheet.hastened.add(key)
            sheet.changes[key] = replace(
                change,
                destructive=True,
                at_stake=hosts_at_stake(Action.UPDATE, nodes_wanted(before or declared.document)),
            )


def ends_unfinished(sheet: Sheet, declared: Declared, row: LiveResource) -> bool:
    """Tell whether hosts end that are there of a fleet which was never made in whole."""
    if was_made(row) or not waits_for_nobody(declared.document):
        return False
    mine = {"", template_of(declared.document)}
    return any(
        # One that has never answered becomes what is wanted.
        one.fleet == declared.key.name and one.install_id and one.template_digest not in mine
        for one in sheet.live.instances
    )


def count_hosts(sheet: Sheet) -> None:
    """Say of each change that takes all hosts of a fleet how many those are, held ones too."""
    if not sheet.live.instances:
        return
    there = Counter(one.fleet for one in sheet.live.instances)
    for key, change in sheet.changes.items():
        if key.kind == "fleet":
            sheet.changes[key] = _with_count(sheet, change, there)
    for key, held in sheet.held.items():
        if key.kind == "fleet":
            sheet.held[key] = replace(held, change=_with_count(sheet, held.change, there))


def _with_count(sheet: Sheet, change: Change, there: Mapping[str, int]) -> Change:
    count = there.get(change.key.name)
    # Where single hosts give way, they are named and not counted.
    if not change.at_stake or not count or hosts_ended(sheet, change):
        return change
    return replace(change, at_stake=hosts_at_stake(change.action, count))
