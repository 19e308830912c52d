"""
Protection, as the ledger has it: lifting it is a change that comes first.

A commit that lifts the protection and removes the resource at once is held: the two steps are
what makes a slip of the hand visible. So is one that ends a protected run at work, whatever it is
called. Forgetting is held too: what nobody knows of any more is protected by nobody. And a fleet
does not take its hosts from under a protected run.
"""

from __future__ import annotations

from fleetform.model.plan import Action, Change, HeldBy, Reason
from fleetform.plan.draft import Sheet
from fleetform.plan.impact import ends_with
from fleetform.spec.desired import ResourceKey

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
                "first apply `protect: false` alone",
            )
        elif key.kind == "fleet" and (run := _sheltered(sheet, change)):
            sheet.hold(
                key,
                HeldBy.PROTECTION,
                f"run/{run} is running on it and was applied with `protect: true`",
                f"plan again once it has ended, or apply `protect: false` to run/{run} first",
            )


def _sheltered(sheet: Sheet, fleet: Change) -> str:
    """The first protected run that would lose its hosts with the fleet's, or nothing."""
    # What has lost a host already has nothing left there that anybody could keep from it, and
    # would wait for ever where only this change finds out.
    gone = {one.part for one in sheet.live.drift if one.field == "host"}
    for work in sheet.live.work:
        row = sheet.live.resources.get(ResourceKey("run", work.run))
        is_lost = not gone.isdisjoint(work.hosts)
        if ends_with(sheet, fleet, work) and not is_lost and row is not None and row.protected:
            return work.run
    return ""


def _ends(change: Change) -> bool:
    # Nothing is left to protect, and lifting the protection first would be held for that.
    if Reason.DATA_LOST in change.reasons:
        return False
    # Of a fleet: `update` may have its hosts exchanged under what runs on them.
    return change.action in ENDING or change.destructive
