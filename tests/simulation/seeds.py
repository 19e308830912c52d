"""
Play one seed of either simulation, with what production uses: statements and schema on SQLite in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fleetform.app.ledger import outgrown_by
from fleetform.app.observe import look
from fleetform.app.plan import claimed
from fleetform.app.problems import RecoveringProblem
from fleetform.app.rebuild import Rebuild
from fleetform.app.serve import takeover
from fleetform.model.live import Live
from fleetform.model.ports import Gate, Ids, Ledger
from fleetform.store.ledger import StoredLedger
from fleetform.store.opening import ledger_in_memory
from simulation.apply.play import ApplyVerdict, play_apply
from simulation.apply.ports import Manager
from simulation.controller import VirtualClock
from simulation.disk import SimulatedDisk
from simulation.seed import Verdict, play

if TYPE_CHECKING:
    from fleetform.model.leadership import ManagerLease
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.spec.desired import Desired

__all__ = ["play_apply_seed", "play_seed"]


def play_seed(seed: int) -> Verdict:
    """Play one seed of hosts and runs with the store that production uses."""
    return play(seed, _ledger)


def play_apply_seed(seed: int, *, dies_at: int = 0) -> ApplyVerdict:
    """
    Play one seed of apply with the store that production uses.

    With `dies_at`, somebody dies at that point as well, counted from 1 as in `points`.
    """
    return play_apply(
        seed, SimulatedDisk, outgrown_by, _rebuild, _look, _claimed, takeover, dies_at=dies_at
    )


def _ledger(environment_uid: str, ids: Ids) -> StoredLedger:
    return ledger_in_memory(environment_uid, ids, now_ms=0)


async def _look(ledger: Ledger, hosts: HostProvider, gate: Gate) -> Live:
    return (await look(ledger, hosts, gate, VirtualClock())).live


def _claimed(hosts: HostProvider, desired: Desired, live: Live) -> Live:
    """Look at this machine, which answers at once."""
    looking = claimed(hosts, desired, live)
    try:
        looking.send(None)
    except StopIteration as end:
        found: Live = end.value
        return found
    raise AssertionError("it waits for something")


async def _rebuild(ledger: Ledger, hosts: HostProvider, desired: Desired, manager: Manager) -> bool:
    assert isinstance(ledger, StoredLedger)
    manager_lease = cast("ManagerLease", manager)
    work = Rebuild(ledger, hosts, desired, "a person", (), manager_lease, clock=VirtualClock())
    try:
        await work.run(trial=False)
    except RecoveringProblem:
        return False
    return True
