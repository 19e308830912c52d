"""Builds the manager of an environment from its drivers; only its lock's holder may."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from fleetform.app.clock import SystemClock
from fleetform.app.doctor import require_tools
from fleetform.app.generations import GenerationNotes
from fleetform.app.ledger import (
    fenced_hosts,
    host_provider,
    open_for_writing,
    recovering,
    refuse_if_outgrown,
)
from fleetform.app.managing import try_manage
from fleetform.controllers.manager import Manager
from fleetform.model.history import LogLevel
from fleetform.model.ports import LedgerOutgrown
from fleetform.plan.serialize import load as load_plan
from fleetform.providers.contract.hosts import Identity
from fleetform.store.blobs import FileBlobStore
from fleetform.store.gate import WriterGate

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import ManagerLease
    from fleetform.model.ports import Gate, Progress
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.store.ledger import StoredLedger


WATCH_SECONDS = 0.25
"""How late a manager that does nothing notices that its manager lease is over; each effect asks again."""


def build_manager(
    workspace: Workspace,
    ledger: StoredLedger,
    gate: Gate,
    hosts: HostProvider,
    manager_lease: ManagerLease,
    *,
    who: str,
    progress: Progress,
    ends_only: bool = False,
    poll_seconds: float = 0.0,
) -> Manager:
    """
    Take the fence and compose; what it causes, it causes while `manager_lease` holds.

    It sees commits of other processes so late, or as late as the ledger has it if that is later.

    Raises:
        Problem: This machine lacks what the clouds of the environment's hosts need; with `ends_only` that is not asked.
    """
    if not ends_only:
        require_tools(workspace)
    clock = SystemClock()
    fence = fence_of(manager_lease, ledger, who=who)
    live = ledger.read_live()
    notes = GenerationNotes(live.environment_uid, live.ledger_id, live.epoch)
    if problem := notes.note(live.serial):
        progress.notice(problem, event="ledger.generation-problem", level=LogLevel.WARNING)
    return Manager(
        provider=fenced_hosts(hosts, manager_lease, fence),
        identity=Identity(
            environment_uid=live.environment_uid,
            environment_name=workspace.environment.name,
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
        note_told=notes.note_told,
        poll_seconds=max(poll_seconds, ledger.poll_seconds),
    )


def fence_of(manager_lease: ManagerLease | None, ledger: StoredLedger, *, who: str) -> int:
    """Return the fence of a manager lease: a lease is taken under its own, a file lock is not."""
    if manager_lease is not None and manager_lease.holder.fence:
        return manager_lease.holder.fence
    return ledger.take_fence(who=who, now_ms=SystemClock().now_ms())


async def manage_ends(
    workspace: Workspace,
    finished: Callable[[Manager], bool],
    *,
    who: str,
    command: str,
    progress: Progress,
) -> bool:
    """
    Manage until `finished` says so: hosts are heard, jobs end, and nothing starts.

    Returns:
        False where another process manages the environment.

    Raises:
        LedgerProblem: The ledger cannot be used.
        RecoveringProblem: Hosts remember another one.
    """
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        manager_lease = try_manage(workspace, who=who, command=command)
        if manager_lease is None:
            return False
        with manager_lease, contextlib.closing(WriterGate()) as gate:
            hosts = host_provider(workspace)
            await refuse_if_outgrown(ledger, hosts)
            manager = build_manager(
                workspace,
                ledger,
                gate,
                hosts,
                manager_lease,
                who=who,
                progress=progress,
                ends_only=True,
            )
            await under(manager_lease, manager.run(finished))
    return True


async def under(manager_lease: ManagerLease, work: Coroutine[Any, Any, None]) -> None:
    """
    Carry out `work` as long as the manager lease holds.

    Raises:
        FenceLost: It does not hold any more; `work` was cancelled.
        RecoveringProblem: Hosts remember more than the ledger.
    """
    working = asyncio.ensure_future(work)
    try:
        while not working.done():
            manager_lease.require()
            await asyncio.wait((working,), timeout=WATCH_SECONDS)
        working.result()
    except LedgerOutgrown as proof:
        raise recovering(str(proof)) from proof
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def until_stopped(
    work: Coroutine[Any, Any, None], stopped: asyncio.Event, *, seconds: float
) -> None:
    """Run `work` to its end, which is forced so long after `stopped`: its ledger may be full."""
    working = asyncio.ensure_future(work)
    signalled = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait((working, signalled), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await asyncio.wait((working,), timeout=seconds)
        if working.done():
            working.result()
    finally:
        working.cancel()
        signalled.cancel()
        await asyncio.gather(working, signalled, return_exceptions=True)


def stop_on_signals(
    stopped: asyncio.Event, noted: Callable[[signal.Signals], object] = lambda _: None
) -> list[Callable[[], None]]:
    """
    Set `stopped` on SIGTERM, SIGINT and SIGHUP, and call what is in the list that is returned.

    A terminal that is closed sends SIGHUP: the environment is released then as well. Under `nohup`
    it was ignored from the start, and stays so. `noted` is called with each signal.
    """
    wake: list[Callable[[], None]] = []

    def stop(number: signal.Signals) -> None:
        noted(number)
        stopped.set()
        for call in wake:
            call()

    loop = asyncio.get_running_loop()
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    return wake
