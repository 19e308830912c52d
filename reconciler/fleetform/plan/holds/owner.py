"""
What somebody else owns is neither taken nor written over, whatever flag is given.

A plan sees what the ledger says, and what whoever made it has looked up on this machine.
"""

from __future__ import annotations

from fleetform.model.plan import Action, HeldBy
from fleetform.plan.proposal import Sheet

_MAKES = frozenset({Action.CREATE, Action.REPLACE, Action.ADOPT, Action.UPDATE})


def hold_owned_elsewhere(sheet: Sheet) -> None:
    for key, claim in sheet.live.claims.items():
        change = sheet.changes.get(key)
        if change is not None and change.action in _MAKES:
            sheet.hold(
                key,
                HeldBy.OWNER,
                claim.sentence,
                "declare another path; when that environment has let it go (`removed:`), a person"
                " removes the mark that lies there",
            )
