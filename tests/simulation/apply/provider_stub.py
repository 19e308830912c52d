"""What somebody who plans sees of the machine that they are on, before anything is asked of a host."""

from __future__ import annotations

from dataclasses import dataclass

from fleetform.providers.contract.observed import PlaceSeen
from simulation.apply.machine import Machine

__all__ = ["ProviderStub"]


@dataclass(frozen=True, slots=True)
class ProviderStub:
    """The part of `providers.contract.hosts.HostProvider` that looks for who owns a place."""

    machine: Machine

    async def place_at(self, environment_uid: str, path: str) -> PlaceSeen:
        return self.machine.place_at(environment_uid, path)

    async def volume_around(self, _environment_uid: str, _path: str) -> None:
        """No path of a tree that is drawn lies in another."""
