"""
What hosts cost an hour, before a change and after: in micro-dollars, where somebody says a price.

Own hosts cost what their fleet says (`price`). Hosts in clouds cost what is bid, which nobody knows
before; up to `max_price` each is what may become of it, and so it is shown. A fleet of which nobody
says a price has no cost here: nothing is guessed, and none is not the same as nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fleetform.model.plan import Action, Change
from fleetform.plan.draft import Sheet

__all__ = ["add_costs", "hourly_cost"]

_GONE = frozenset({Action.DELETE, Action.FORGET})


def add_costs(sheet: Sheet) -> None:
    """Give each change of a fleet what it costs before and after, held ones too."""
    for key, change in sheet.changes.items():
        if key.kind == "fleet":
            sheet.changes[key] = _priced(sheet, change)
    for key, held in sheet.held.items():
        if key.kind == "fleet":
            sheet.held[key] = replace(held, change=_priced(sheet, held.change))


def hourly_cost(document: Mapping[str, Any]) -> int | None:
    """Micro-dollars an hour of a canonical fleet's hosts, as many as it wants; None: no price."""
    price = document.get("price", document.get("max_price"))
    count = _hosts_wanted(document)
    return None if price is None or count is None else int(price) * count


def _hosts_wanted(document: Mapping[str, Any]) -> int | None:
    named = document.get("ssh_config", {}).get("hosts")
    if named is not None:
        return len(named)
    nodes = document.get("nodes")
    if nodes is None:
        return 1
    target = nodes.get("target")
    wanted: int | None = nodes.get("min") if target is None else target
    return wanted


def _priced(sheet: Sheet, change: Change) -> Change:
    before = _before(sheet, change)
    after = _after(sheet, change)
    if before is None and after is None:
        return change
    # Beside a known price, a side where nothing stands costs nothing.
    if not change.uid and after is not None:
        before = 0
    if change.action in _GONE and before is not None:
        after = 0
    return replace(change, cost_before=before, cost_after=after)


def _before(sheet: Sheet, change: Change) -> int | None:
    name = change.moved_from or change.key.name
    row = sheet.live.resources.get(change.key._replace(name=name))
    if row is None or not change.uid or not row.document:
        return None
    return hourly_cost(json.loads(row.document))


def _after(sheet: Sheet, change: Change) -> int | None:
    if change.action in _GONE:
        return None
    declared = sheet.desired.resources.get(change.key)
    beyond = sheet.desired.beyond.get(change.key)
    if declared is None and beyond is not None:
        declared = beyond.declared
    return None if declared is None else hourly_cost(declared.document)
