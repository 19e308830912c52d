"""Builds the manager of an environment from its drivers; only its lock's holder may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.controllers.manager import Manager
from fleetform.plan.file import load as load_plan
from fleetform.providers.contract.hosts import Identity
from fleetform.store.blobs import FileBlobStore
from fleetform.wiring.clock import SystemClock

if TYPE_CHECKING:
    from fleetform.model.ports import Gate, Progress
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.store.ledger import SqliteLedger
    from fleetform.wiring.workspace import Workspace


def build_manager(
    workspace: Workspace,
    ledger: SqliteLedger,
    gate: Gate,
    hosts: HostProvider,
    *,
    who: str,
    progress: Progress,
    ends_only: bool = False,
) -> Manager:
    """Take the fence and compose; call it holding the manager's lock."""
    clock = SystemClock()
    fence = ledger.take_fence(who=who, now_ms=clock.now_ms())
    live = ledger.read_live()
    return Manager(
        provider=hosts,
        identity=Identity(
            environment_uid=live.environment_uid,
            ledger_id=live.ledger_id,
            epoch=live.epoch,
            fence=fence,
        ),
        ledger=ledger,
        gate=gate,
        logs=workspace.logs(),
        blobs=FileBlobStore(workspace.paths.blobs),
        clock=clock,
        progress=progress,
        load_plan=load_plan,
        ends_only=ends_only,
    )
