"""
The first pass: which resources differ, and what their kinds propose for it.

Digests decide; a document is parsed only where they differ, so that a plan with nothing to do
costs one comparison a resource.
"""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.model.live import LiveResource
from fleetform.plan.kinds import KINDS
from fleetform.plan.kinds.environment import propose_rules
from fleetform.plan.kinds.run import propose_pair
from fleetform.plan.pairing import Pairing, pair_elements
from fleetform.plan.proposal import Sheet
from fleetform.spec.desired import Declared


def compare_rules(sheet: Sheet) -> None:
    if sheet.permissions.destroy:
        return
    proposal = propose_rules(sheet.desired.environment, sheet.rules)
    if proposal is not None:
        sheet.add(proposal)


def compare_resources(sheet: Sheet) -> None:
    """Propose a change for everything that is declared and differs, or is there and should not."""
    added: list[Declared] = []
    rows = sheet.live.resources
    for key, declared in sheet.wanted.items():
        row = rows.get(key)
        if row is None or (row.archived and key.kind != "run"):
            added.append(declared)
        elif row.digest != declared.digest or row.archived:
            proposal = KINDS[key.kind].change(declared, row, sheet.permissions)
            if proposal is not None:
                sheet.add(proposal)
    removed = [
        row
        for key, row in sheet.present.items()
        if key not in sheet.wanted and not sheet.is_left_alone(key, row.parent)
    ]
    _propose_new_and_gone(sheet, added, removed)


def _propose_new_and_gone(
    sheet: Sheet, added: Iterable[Declared], removed: Iterable[LiveResource]
) -> None:
    if sheet.desired.unread:
        # What seems to be gone may be in a file that nobody could read: it takes nobody's place.
        pairing = Pairing((), tuple(added), tuple(removed))
    else:
        pairing = pair_elements(added, removed)
    for declared, row in pairing.pairs:
        sheet.add(propose_pair(declared, row))
    for declared in pairing.added:
        sheet.add(KINDS[declared.key.kind].create(declared))
    for row in pairing.removed:
        sheet.add(KINDS[row.key.kind].remove(row))
