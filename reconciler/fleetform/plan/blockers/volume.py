"""
A volume stays what and where it is while somebody at work has it mounted.

Who is stopped by the same plan is no obstacle: the step that takes the data away waits for that end.
Nothing else ends what is at work. What replaces a run once that has finished ends nothing, and what
has left the tree while it was at work may go on for as long as its end takes.
"""

from __future__ import annotations

from fleetform.model.mounts import mounted_volumes
from fleetform.plan.blockers.protection import ENDING
from fleetform.plan.draft import Sheet
from fleetform.plan.users import User, hold_while_used, users
from fleetform.spec.desired import ResourceKey

_MOUNTS = ("has it mounted", "have it mounted")


def hold_volumes_in_use(sheet: Sheet) -> None:
    moving = {
        key
        for key, change in sheet.changes.items()
        if key.kind == "volume" and change.action in ENDING
    }
    if not moving:
        return
    ended = {
        step.resource
        for change in sheet.changes.values()
        for step in change.steps
        if step.verb == "run.stop"
    }
    here: dict[ResourceKey, list[User]] = {}
    for row, execution in users(sheet):
        if row.key not in ended:
            for name in mounted_volumes(execution.document):
                here.setdefault(ResourceKey("volume", name), []).append((row, execution))
    for key in sorted(moving & here.keys()):
        hold_while_used(sheet, key, here[key], _MOUNTS)
