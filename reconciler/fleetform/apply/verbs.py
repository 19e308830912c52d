"""
The verbs of a plan's steps, and which of them touch the world outside the ledger.

A verb that touches nothing else needs no intent: its effect and its result are the same
transaction. A volume that is forgotten stays as it is, and that nobody uses it is seen in the world.
"""

from __future__ import annotations

import enum


class Verb(enum.StrEnum):
    FLEET_MAKE = "fleet.make"
    FLEET_UPDATE = "fleet.update"
    FLEET_REMOVE = "fleet.remove"
    FLEET_ADOPT = "fleet.adopt"
    FLEET_FORGET = "fleet.forget"
    VOLUME_MAKE = "volume.make"
    VOLUME_ADOPT = "volume.adopt"
    VOLUME_UPDATE = "volume.update"
    VOLUME_FORGET = "volume.forget"
    VOLUME_REMOVE = "volume.remove"
    VOLUME_SNAPSHOT = "volume.snapshot"
    QUEUE_SET = "queue.set"
    QUEUE_REMOVE = "queue.remove"
    RUN_SUBMIT = "run.submit"
    RUN_UPDATE = "run.update"
    RUN_STOP = "run.stop"
    RUN_ARCHIVE = "run.archive"
    RUN_RESTORE = "run.restore"
    RUN_FORGET = "run.forget"
    RESOURCE_MOVE = "resource.move"
    RULES_SET = "rules.set"


TOUCHES_WORLD = frozenset(
    {
        Verb.FLEET_MAKE,
        Verb.FLEET_UPDATE,
        Verb.FLEET_REMOVE,
        Verb.FLEET_ADOPT,
        Verb.VOLUME_MAKE,
        Verb.VOLUME_ADOPT,
        Verb.VOLUME_UPDATE,
        Verb.VOLUME_FORGET,
        Verb.VOLUME_REMOVE,
        Verb.VOLUME_SNAPSHOT,
    }
)
