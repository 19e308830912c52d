"""A fleet is not forgotten while somebody works on it: its jobs would be nobody's."""

from __future__ import annotations

import json

from fleetform.model.plan import HeldBy
from fleetform.model.rows import restless_rows
from fleetform.plan.phase import documents_at_work
from fleetform.plan.proposal import Sheet
from fleetform.spec.desired import ResourceKey


def hold_forgotten_in_use(sheet: Sheet) -> None:
    going = {
        key
        for key, change in sheet.changes.items()
        if any(step.verb == "fleet.forget" for step in change.steps)
    }
    if not going:
        return
    for row in sorted(restless_rows(sheet.present).values(), key=lambda one: one.key):
        for document in documents_at_work(row) if row.key.kind == "run" else ():
            names = json.loads(document).get("fleets")
            # Who names no fleet may be at work on any of them.
            used = {ResourceKey("fleet", name) for name in names} if names else going
            for key in sorted(used & going):
                sheet.hold(
                    key,
                    HeldBy.RUNNING_WORK,
                    f"{row.key} {'is' if names else 'may be'} at work on it",
                    "plan again once it has ended",
                )
                going = going - {key}
