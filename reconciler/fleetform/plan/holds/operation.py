"""An earlier apply has not finished with a resource: it is resumed before anything else."""

from __future__ import annotations

from fleetform.model.plan import HeldBy
from fleetform.plan.proposal import Sheet


def hold_unfinished(sheet: Sheet) -> None:
    for key, change in list(sheet.changes.items()):
        row = sheet.live.resources.get(sheet.row_key(change))
        if row is not None and row.operation:
            sheet.hold(
                key,
                HeldBy.DEPENDENCY,
                "an earlier apply has not finished its change",
                "`fleetform apply` resumes it",
            )
