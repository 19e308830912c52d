"""
`serve`: the manager for as long as it runs, with the tree kept and the API answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from fleetform.controllers.nursery import Nursery
from fleetform.controllers.tree import STAYS, Look, NotNow, Planned, TreeKeeper
from fleetform.model.plan import Permissions, Plan
from fleetform.model.ports import LedgerOutgrown, LedgerUnavailable
from fleetform.plan.file import dump
from fleetform.source.tree import Unreadable, fingerprint
from fleetform.store.blobs import FileBlobStore
from fleetform.store.gate import WriterGate
from fleetform.wiring.clock import SystemClock
from fleetform.wiring.contents import freeze_contents
from fleetform.wiring.driving import build_manager
from fleetform.wiring.managing import try_manage
from fleetform.wiring.opening import (
    host_provider,
    open_for_writing,
    recovering,
    refuse_if_outgrown,
)
from fleetform.wiring.planning import checked_plan
from fleetform.wiring.problems import Locked, Problem

if TYPE_CHECKING:
    from fleetform.controllers.manager import Manager
    from fleetform.model.ports import Gate, Progress
    from fleetform.spec.desired import Loaded
    from fleetform.store.ledger import SqliteLedger
    from fleetform.wiring.workspace import Workspace

WHO = "serve"

STOP_SECONDS = 5.0
"""How long what is under way may take after a signal; the next manager takes up what is cut off."""


async def serve(
    workspace: Workspace, *, listen: str | None, progress: Progress, once: bool = False
) -> int:
    """
    Manage the environment until a signal, or with `once` until nothing is left to do.

    Raises:
        Locked: Somebody else manages it.
        Problem: The ledger cannot be used.
    """
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        hosts = host_provider(workspace)
        await refuse_if_outgrown(ledger, hosts)
        lock = try_manage(workspace, who=WHO, command="serve")
        if lock is None:
            raise locked(workspace)
        with lock, contextlib.closing(WriterGate()) as gate:
            manager = build_manager(workspace, ledger, gate, hosts, who=WHO, progress=progress)
            try:
                await _serve(workspace, ledger, gate, manager, listen, progress, once=once)
            except LedgerOutgrown as proof:
                raise recovering(str(proof)) from proof
    return 0


async def _serve(
    workspace: Workspace,
    ledger: SqliteLedger,
    gate: Gate,
    manager: Manager,
    listen: str | None,
    progress: Progress,
    *,
    once: bool,
) -> None:
    stopped = _stop_on_signals(manager)
    looked = asyncio.Event()
    files: list[str] = []
    bases: list[str] = []

    async def make_plan() -> Planned:
        try:
            loaded = await asyncio.to_thread(workspace.load)
            if loaded.desired is not None:
                # What documents name is looked at too from now on.
                files[:] = sorted(loaded.desired.contents.values())
            bases[:] = loaded.bases
            return await _plan(loaded, ledger, gate)
        finally:
            looked.set()

    async def accept(plan: Plan) -> None:
        try:
            freeze_contents(workspace, plan, FileBlobStore(workspace.paths.blobs))
        except Problem as problem:
            # A file was edited since, or the disk is full: neither ends the manager.
            raise NotNow(problem.message) from problem
        body = dump(plan)
        now = SystemClock().now_ms()
        await gate(lambda: ledger.accept(plan, body, who=WHO, now_ms=now))
        manager.plan_accepted()

    def look() -> Look:
        found = fingerprint(workspace.root, files, bases)
        return Look(found, found.reason if isinstance(found, Unreadable) else "")

    keeper = TreeKeeper(look, make_plan, accept, progress)

    def finished(manager: Manager) -> bool:
        if stopped.is_set():
            return True
        assert manager.runs is not None
        return once and looked.is_set() and not manager.runs.mirror.runs

    async with Nursery() as nursery:
        nursery.start(keeper.keep(), name="tree")
        if listen is not None:
            nursery.start(_answer(workspace, listen, progress), name="api")
        progress.notice(f"serving {workspace.environment.name} from {workspace.root}")
        await nursery.run(_until_stopped(manager.run(finished), stopped))


async def _until_stopped(work: Coroutine[Any, Any, None], stopped: asyncio.Event) -> None:
    """Run `work` to its end, which is forced a while after `stopped`: its ledger may be full."""
    working = asyncio.ensure_future(work)
    signalled = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait((working, signalled), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await asyncio.wait((working,), timeout=STOP_SECONDS)
        if working.done():
            working.result()
    finally:
        working.cancel()
        signalled.cancel()
        await asyncio.gather(working, signalled, return_exceptions=True)


async def _plan(loaded: Loaded, ledger: SqliteLedger, gate: Gate) -> Planned:
    """Plan what was loaded; what is broken holds back itself, and a broken environment all."""
    notices = tuple(
        f"{one.place.file}:{one.place.line}: {one.summary}: {one.detail}".rstrip(": ")
        for one in loaded.errors
    )
    if loaded.desired is None:
        return Planned(None, (*notices, STAYS))
    try:
        live = await gate(ledger.read_live)
        plan = checked_plan(loaded.desired, live, Permissions(), now_ms=SystemClock().now_ms())
    except Problem as problem:
        return Planned(None, (*notices, problem.message))
    except LedgerUnavailable as problem:
        return Planned(None, (*notices, str(problem)))
    held = tuple(
        f"held: {item.change.key}: {item.detail}; {item.cure}".rstrip("; ") for item in plan.held
    )
    return Planned(plan, (*notices, *held))


def _stop_on_signals(manager: Manager) -> asyncio.Event:
    stopped = asyncio.Event()

    def stop() -> None:
        stopped.set()
        manager.wake()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return stopped


async def _answer(workspace: Workspace, listen: str, progress: Progress) -> None:
    """Answer the read-only API until cancelled."""
    try:
        import uvicorn

        from fleetform.api.app import create_app
    except ModuleNotFoundError as missing:
        raise Problem(
            f"the API needs the package {missing.name}",
            "install `fleetform[server]`, or leave --listen out",
        ) from missing
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise Problem(f"--listen {listen} is not HOST:PORT", "for instance 127.0.0.1:8433")
    app = create_app(
        workspace.reader,
        workspace.logs,
        environment=workspace.environment,
        now_ms=SystemClock().now_ms,
        listen_host=host,
    )
    config = uvicorn.Config(app, host=host, port=int(port), log_level="warning", lifespan="off")

    class Server(uvicorn.Server):
        """Leaves signals to `serve`: they end the manager, and the API with it."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    server = Server(config)
    progress.notice(f"the API answers at http://{host}:{port}/api/v1")
    await server.serve()


def locked(workspace: Workspace) -> Locked:
    """Say who manages the environment, to somebody who would."""
    holder = workspace.manager()
    if holder is None:
        return Locked("somebody else has just begun to manage this environment", "try again")
    return Locked(
        f"{holder.command} of {holder.who} (pid {holder.pid}) manages this environment",
        "wait for it, or stop it",
    )
