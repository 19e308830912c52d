"""A volume stays where it is while a run that goes on has it mounted."""

from __future__ import annotations

import json
from collections.abc import Iterator

from fleetform.model.plan import HeldBy
from fleetform.model.rows import restless_rows
from fleetform.plan.holds.protection import ENDING
from fleetform.plan.phase import documents_at_work
from fleetform.plan.proposal import Sheet
from fleetform.spec.desired import ResourceKey


def hold_volumes_in_use(sheet: Sheet) -> None:
    moving = {
        key
        for key, change in sheet.changes.items()
        if key.kind == "volume" and change.action in ENDING
    }
    if not moving:
        return
    ending = {sheet.row_key(change) for change in sheet.changes.values() if change.action in ENDING}
    users: dict[ResourceKey, list[str]] = {}
    for key, document in _at_work(sheet):
        if key in ending:
            continue
        for volume in json.loads(document).get("volumes", ()):
            users.setdefault(ResourceKey("volume", volume["name"]), []).append(key.name)
    for key in sorted(moving & users.keys()):
        names = sorted(users[key])
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        sheet.hold(
            key,
            HeldBy.RUNNING_WORK,
            f"{names[0]}{others} has it mounted",
            "plan again once they have ended",
        )


def _at_work(sheet: Sheet) -> Iterator[tuple[ResourceKey, str]]:
    """Each run at work, with the document that it was submitted with."""
    for key, row in restless_rows(sheet.present).items():
        if key.kind == "run":
            yield from ((key, document) for document in documents_at_work(row))
