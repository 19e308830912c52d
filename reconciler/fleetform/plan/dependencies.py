"""
What a change stands on, and that it is as declared before something begins there.

A run that begins on a volume which is about to be replaced writes where nobody will look, or into
data that goes; one that begins on the result of a run which is to run again makes it of what the tree
has left behind. So what waits for a replacement is told from what waits for something to be there.
"""

from __future__ import annotations

import json

from fleetform.model.mounts import mounted_volumes
from fleetform.model.plan import Action, Change
from fleetform.plan.draft import Sheet
from fleetform.spec.desired import ResourceKey

__all__ = ["begins_on", "is_replaced", "mentioned"]


def is_replaced(change: Change) -> bool:
    """Tell whether the change makes something else of what others stand on."""
    return change.action is Action.REPLACE


def begins_on(sheet: Sheet, change: Change, needed: ResourceKey) -> bool:
    """Tell whether this change begins something on `needed`, which it did not stand on or use yet."""
    if change.action in {Action.CREATE, Action.ADOPT, Action.REPLACE}:
        return True
    if any(step.verb == "run.submit" for step in change.steps):
        return True
    # What waits, and is told to use it from now on.
    is_updated = change.action is Action.UPDATE and change.key in sheet.present
    return is_updated and needed.kind != "run" and needed not in mentioned(sheet, change.key)


def mentioned(sheet: Sheet, key: ResourceKey) -> set[ResourceKey]:
    """Which fleets, volumes and queues the document names that was applied last under this name."""
    text = sheet.present[key].document
    document = json.loads(text)
    fleets = [document.get("fleet", "")] if key.kind == "volume" else document.get("fleets", ())
    found = {ResourceKey("fleet", name) for name in fleets}
    found.update(ResourceKey("volume", name) for name in mounted_volumes(text))
    if "queue" in document:
        found.add(ResourceKey("queue", document["queue"]))
    return found
