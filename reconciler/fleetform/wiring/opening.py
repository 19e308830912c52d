"""
Opens the ledger for writing, and refuses one that the world has outgrown.

A lost or restored ledger is told by those who remember it: an agent that bears the
environment's uid and another ledger's id, or a higher epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleetform.model.live import LedgerStatus
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.providers.registry import provider
from fleetform.store.errors import LedgerError
from fleetform.store.opening import open_ledger
from fleetform.wiring.clock import RandomIds, SystemClock
from fleetform.wiring.problems import LedgerProblem, RecoveringProblem

if TYPE_CHECKING:
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.store.ledger import SqliteLedger
    from fleetform.wiring.workspace import Workspace


def open_for_writing(workspace: Workspace) -> SqliteLedger:
    """
    Open or make the ledger.

    Raises:
        LedgerProblem: It cannot be opened: damaged, newer, on a network file system.
    """
    try:
        return open_ledger(
            workspace.paths.ledger, workspace.environment.uid, ids=RandomIds(), clock=SystemClock()
        )
    except LedgerError as problem:
        raise LedgerProblem(str(problem), problem.advice) from problem


def host_provider(workspace: Workspace) -> HostProvider:
    """Return the provider of this machine; fleets of other kinds come with other providers."""
    return provider("local", state=workspace.state, environment_uid=workspace.environment.uid)


async def refuse_if_outgrown(ledger: SqliteLedger, hosts: HostProvider) -> None:
    """
    Compare the ledger with what bears the environment's uid in the world.

    Raises:
        RecoveringProblem: Somebody remembers another ledger or a newer epoch of this one.
    """
    live = ledger.read_live()
    strangers = _strangers(await hosts.inventory(live.environment_uid), live.ledger_id, live.epoch)
    if strangers or live.status is LedgerStatus.RECOVERING:
        names = ", ".join(sorted(one.name for one in strangers)) or "its hosts"
        ledger.begin_recovery(f"{names} remember another ledger")
        raise RecoveringProblem(
            f"the ledger does not know what {names} know: it was lost or restored from a backup, "
            "so nothing is started or removed",
            "put the right ledger back at "
            "its place in the state folder, or read what is there with `fleetform state rebuild`",
        )


def _strangers(instances: Sequence[InstanceSeen], ledger_id: str, epoch: int) -> list[InstanceSeen]:
    return [
        one
        for one in instances
        if one.ledger_id and (one.ledger_id != ledger_id or one.epoch > epoch)
    ]
