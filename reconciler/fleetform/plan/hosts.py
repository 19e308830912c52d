"""
Which hosts go with a fleet, and how many: those that are there, which may be more than are declared.

Hosts that leave are there until their last job has ended, and one that is not there yet is no
loss. A kind's logic has the row of a fleet and not its hosts, so it says how many were declared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from fleetform.model.altered import altered
from fleetform.model.plan import Action, Change
from fleetform.plan.kinds.fleet import hastens, hosts_at_stake, nodes_wanted
from fleetform.plan.proposal import Sheet
from fleetform.plan.stake import hosts_ended
from fleetform.spec.desired import ResourceKey

__all__ = ["count_hosts", "hasten_exchanges"]


def hasten_exchanges(sheet: Sheet) -> None:
    """
    Say what ends with hosts that are being exchanged when their fleet shall wait for nobody.

    The document alone says how the next exchange goes; the one under way follows it as well.
    """
    for name in sheet.live.exchanging:
        key = ResourceKey("fleet", name)
        change, row, declared = (
            sheet.changes.get(key),
            sheet.present.get(key),
            sheet.wanted.get(key),
        )
        if change is None or row is None or declared is None or change.action is not Action.UPDATE:
            continue
        before = json.loads(row.document) if row.document else {}
        if hastens(before, declared.document):
            sheet.hastened.add(key)
            sheet.changes[key] = altered(
                change,
                destructive=True,
                at_stake=hosts_at_stake(Action.UPDATE, nodes_wanted(before or declared.document)),
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
            sheet.held[key] = altered(held, change=_with_count(sheet, held.change, there))


def _with_count(sheet: Sheet, change: Change, there: Mapping[str, int]) -> Change:
    count = there.get(change.key.name)
    # Where single hosts give way, they are named and not counted.
    if not change.at_stake or not count or hosts_ended(sheet, change):
        return change
    return altered(change, at_stake=hosts_at_stake(change.action, count))
