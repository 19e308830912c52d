"""What a lost ledger is put together from, and what came of it, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.providers.contract.observed import HostSeen, InstanceSeen, VolumeSeen
    from fleetform.spec.desired import Desired

NO_EVIDENCE = "no-evidence"
"""Cause of a run of which nobody can say whether it ever ran: only a person may run it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """
    Everything that is known outside the ledger.

    `hosts` is by instance uid, and lacks those that were declared lost. `volumes` is by the name
    of a declared volume.
    """

    desired: Desired
    instances: tuple[InstanceSeen, ...]
    hosts: Mapping[str, HostSeen]
    volumes: Mapping[str, VolumeSeen]


@dataclass(frozen=True, slots=True)
class Recovered:
    """
    One resource after a rebuild.

    found: What proves it, in a few words. `note`: what follows for the next plan, or what to do.
    """

    kind: str
    name: str
    state: str
    found: str
    note: str = ""
