"""What each kind's steps do in the world: one module a kind, and the table that finds it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fleetform.apply.host_access import HostAccess
from fleetform.apply.kinds import fleet, volume
from fleetform.model.plan import Step
from fleetform.model.ports import Begun
from fleetform.model.verbs import Verb

Performer = Callable[[Step, Begun, HostAccess], Awaitable[Mapping[str, Any] | None]]
"""Carries out one step; what it returns is written down with the result."""

PERFORMERS: dict[str, Performer] = {
    Verb.FLEET_MAKE: fleet.make,
    Verb.FLEET_UPDATE: fleet.make,
    Verb.FLEET_REMOVE: fleet.remove,
    Verb.FLEET_ADOPT: fleet.adopt,
    Verb.VOLUME_MAKE: volume.make,
    Verb.VOLUME_ADOPT: volume.adopt,
    Verb.VOLUME_UPDATE: volume.update,
    Verb.VOLUME_FORGET: volume.forget,
    Verb.VOLUME_REMOVE: volume.remove,
    Verb.VOLUME_SNAPSHOT: volume.snapshot,
}
