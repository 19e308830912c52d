"""
Protection, as the ledger has it: lifting it is a change that comes first.

A commit that lifts the protection and removes the resource at once is held: the two steps are
what makes a slip of the hand visible. So is one that ends a protected run at work, whatever it is
called. Forgetting is held too: what nobody knows of any more is protected by nobody.
"""

from __future__ import annotations

from fleetform.model.plan import Action, Change, HeldBy
from fleetform.plan.proposal import Sheet

ENDING = frozenset({Action.REPLACE, Action.DELETE, Action.FORGET, Action.ARCHIVE})
"""Actions after which what was there is no longer there."""


def hold_protected(sheet: Sheet) -> None:
    for key, change in list(sheet.changes.items()):
        if not _ends(change):
            continue
        row = sheet.live.resources.get(sheet.row_key(change))
        if row is not None and row.protected:
            sheet.hold(
                key,
                HeldBy.PROTECTION,
                "it was applied with `protect: true`",
                "apply `protect: false` alone first",
            )


def _ends(change: Change) -> bool:
    return change.action in ENDING or change.destructive
