"""An earlier apply has not finished with a resource: it is resumed before anything else."""

from __future__ import annotations

from fleetform.model.plan import Held, HeldBy
from fleetform.plan.draft import Sheet

_UNFINISHED = "an earlier apply has not finished its change"


def hold_unfinished(sheet: Sheet) -> None:
    for key, change in list(sheet.changes.items()):
        row = sheet.live.resources.get(sheet.row_key(change))
        if row is not None and row.operation:
            sheet.hold(key, HeldBy.DEPENDENCY, _UNFINISHED, "`fleetform apply` resumes it")


def is_unfinished(held: Held) -> bool:
    """Tell whether the change is blocked until an earlier apply has finished with its resource."""
    return held.by is HeldBy.DEPENDENCY and held.detail == _UNFINISHED
