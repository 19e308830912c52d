"""What a lost ledger is put together from, and what came of it, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.model.live import Live, LiveResource
    from fleetform.providers.contract.observed import HostSeen, InstanceSeen, VolumeSeen
    from fleetform.spec.desired import Desired


@dataclass(frozen=True, slots=True)
class Evidence:
    """
    Everything that is known outside the ledger.

    `hosts` is by instance uid, and lacks those that were declared lost. `volumes` is by the name
    of a declared volume. `is_complete` unless the hosts remember less than they were told: then what
    they have no record of may have run.
    """

    desired: Desired
    instances: tuple[InstanceSeen, ...]
    hosts: Mapping[str, HostSeen]
    volumes: Mapping[str, VolumeSeen]
    is_complete: bool = True
    without_agent: frozenset[str] = frozenset()
    """Uids of hosts of `instances` that answered, and on which no agent was ever set up."""


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


@dataclass(frozen=True, slots=True)
class Difference:
    """One resource that a ledger has, and another state of it that was found from nothing."""

    resource: str
    here: str
    rebuilt: str


def differences(live: Live, rebuilt: Live) -> tuple[Difference, ...]:
    """
    Compare what a ledger says of each resource with what was found without it, by key.

    What was archived is left out: its document has left the tree, and only its output matters.
    """
    found = []
    for key in sorted({*live.resources, *rebuilt.resources}):
        here, there = live.resources.get(key), rebuilt.resources.get(key)
        if any(one is not None and one.archived for one in (here, there)):
            continue
        if _stands(here) != _stands(there):
            found.append(Difference(str(key), _stands(here), _stands(there)))
    return tuple(found)


def _stands(row: LiveResource | None) -> str:
    if row is None:
        return "missing"
    if row.run is None:
        return row.state
    return f"{row.run.state}{' (outdated)' if row.run.stale else ''}, attempt {row.run.attempt}"
