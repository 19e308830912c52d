"""A fleet is not forgotten while somebody works on it: its jobs would be nobody's."""

from __future__ import annotations

import json

from fleetform.plan.draft import Sheet
from fleetform.plan.users import User, hold_while_used, users
from fleetform.spec.desired import ResourceKey

_WORKS = ("is running on it", "are running on it")
_MAY_WORK = ("may be running on it", "may be running on it")


def hold_forgotten_in_use(sheet: Sheet) -> None:
    going = {
        key
        for key, change in sheet.changes.items()
        if any(step.verb == "fleet.forget" for step in change.steps)
    }
    if not going:
        return
    named: dict[ResourceKey, list[User]] = {}
    anywhere: list[User] = []
    for user in users(sheet):
        fleets = json.loads(user[1].document).get("fleets")
        for name in fleets or ():
            named.setdefault(ResourceKey("fleet", name), []).append(user)
        if not fleets:
            # Who names no fleet may be at work on any of them.
            anywhere.append(user)
    for key in sorted(going):
        here = named.get(key, [])
        if here or anywhere:
            hold_while_used(sheet, key, [*here, *anywhere], _WORKS if here else _MAY_WORK)
