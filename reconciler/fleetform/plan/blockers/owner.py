"""
What somebody else owns is neither taken nor written over, whatever flag is given, and neither is
what lies around it or within: that would go with it, or take it along.

A plan sees what the ledger says, and what whoever made it has looked up on this machine.
"""

from __future__ import annotations

from fleetform.model.plan import Action, HeldBy
from fleetform.plan.draft import Sheet

_MAKES = frozenset({Action.CREATE, Action.REPLACE, Action.ADOPT, Action.UPDATE})
_FINDS = frozenset({Action.ADOPT})


def hold_owned_elsewhere(sheet: Sheet) -> None:
    for key, claim in sheet.live.claims.items():
        change = sheet.changes.get(key)
        if change is not None and change.action in (_FINDS if claim.missing else _MAKES):
            sheet.hold(
                key,
                # A volume of ours is in the way as well as anybody else's, and so is what is no
                # directory.
                HeldBy.DEPENDENCY
                if claim.is_file or claim.missing or claim.owner_uid == sheet.live.environment_uid
                else HeldBy.OWNER,
                claim.sentence,
                claim.cure,
            )
