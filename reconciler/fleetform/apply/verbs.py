"""
The verbs of a plan's steps, and which of them touch the world outside the ledger.

A verb that touches nothing else needs no intent: its effect and its result are the same
transaction.
"""

from __future__ import annotations

import enum


class Verb(enum.StrEnum):
    FLEET_MAKE = "fleet.make"
    FLEET_UPDATE = "fleet.update"
    FLEET_REMOVE = "fleet.remove"
    VOLUME_MAKE = "volume.make"
    VOLUME_UPDATE = "volume.update"
    VOLUME_FORGET = "volume.forget"
    VOLUME_REMOVE = "volume.remove"
    RUN_SUBMIT = "run.submit"
    RUN_UPDATE = "run.update"
    RUN_STOP = "run.stop"
    RUN_ARCHIVE = "run.archive"
    RUN_RESTORE = "run.restore"
    RULES_SET = "rules.set"


TOUCHES_WORLD = frozenset(
    {
        Verb.FLEET_MAKE,
        Verb.FLEET_UPDATE,
        Verb.FLEET_REMOVE,
        Verb.VOLUME_MAKE,
        Verb.VOLUME_UPDATE,
        Verb.VOLUME_REMOVE,
    }
)
