"""
The background controller: drives accepted plans and runs that no command waits for any more.

It never reads the configuration. All that it works on stands in the ledger and the state folder,
so the configuration may be edited, moved or deleted meanwhile. It ends once no work is left, and
whenever a command asks for the manager lease.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.controllers import BackgroundStart, note_start
from fleetform.app.driving import build_manager, stop_on_signals, under, until_stopped
from fleetform.app.ledger import (
    host_provider,
    open_for_writing,
    refuse_if_outgrown,
)
from fleetform.app.managing import is_requested, try_manage
from fleetform.app.problems import Problem
from fleetform.model.figures import counted
from fleetform.model.history import LoggedEvent, LogLevel
from fleetform.model.instance import InstanceState
from fleetform.model.leadership import BACKGROUND
from fleetform.model.ports import FenceLost, LedgerUnavailable
from fleetform.model.run_state import NO_EVIDENCE
from fleetform.store.gate import WriterGate
from fleetform.views.controllers import held_by

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.controllers.manager import Manager
    from fleetform.model.leadership import ManagerLease
    from fleetform.model.ports import Gate, Progress
    from fleetform.model.run import Run
    from fleetform.store.ledger import StoredLedger


LINGER_MS = 10_000
"""How long it stays when no work is left: the next command may be on its way."""

YIELD_SECONDS = 0.5
"""How long a step may go on after the lease was asked for; the process that asked repeats it."""

REQUEST_LOOK_SECONDS = 0.2
"""How late a request for the lease is seen."""

POLL_SECONDS = 0.1
"""
How late another process's commit is seen. Hardly any is made meanwhile: who enters a plan takes its
place. At a fifth of this, as `serve` has it, it takes twice the processor time when it is idle.
"""

AWAY_SECONDS = 1.0
"""Pause while the ledger's server does not answer."""


async def drive(
    workspace: Workspace,
    start: BackgroundStart,
    *,
    who: str,
    ready: Callable[[str], None],
    ended: Callable[[Exception | None], None],
    progress: Progress,
) -> None:
    """
    Drive an environment until no work is left, a command asks for its lease, or a signal.

    Args:
        workspace: Whose environment; its configuration is not read.
        start: How this process was started; kept for `status`.
        who: On whose behalf, for events.
        ready: Told once that this process has the lease, with an empty string, or which other
            process has it.
        ended: Told that it ends, and the error that ends it, if any. Where it has the lease, it is
            called while it still has it: the next process finds a log that is complete.
        progress: Told what happens.

    Raises:
        Problem: The ledger cannot be used.
    """
    with (
        contextlib.closing(open_for_writing(workspace)) as ledger,
        contextlib.closing(WriterGate()) as gate,
    ):
        background = _Background(workspace, ledger, gate, start, who, ready, ended, progress)
        watching = asyncio.ensure_future(background.watch())
        try:
            await background.run()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


@dataclass
class _Background:
    """One background controller: mostly one manager lease, more where its ledger goes away meanwhile."""

    workspace: Workspace
    ledger: StoredLedger
    gate: Gate
    start: BackgroundStart
    who: str
    ready: Callable[[str], None]
    ended: Callable[[Exception | None], None]
    progress: Progress

    def __post_init__(self) -> None:
        self._hosts = host_provider(self.workspace)
        self._stopped = asyncio.Event()
        self._wake = stop_on_signals(self._stopped)
        self._is_ready = False
        self._idle_since_ms: int | None = None

    async def run(self) -> None:
        told = ""
        while not self._stopped.is_set():
            try:
                await self._drive_once()
            except FenceLost as lost:
                # Nothing was caused since; the lease is taken once more unless another has it.
                self.progress.notice(
                    f"the manager lease was lost: {lost}",
                    event="lease.lost",
                    level=LogLevel.WARNING,
                )
            except LedgerUnavailable as away:
                if not self._is_ready:
                    raise
                if str(away) != told:
                    told = str(away)
                    self.progress.notice(
                        f"waiting for the ledger: {told}",
                        event="ledger.unavailable",
                        level=LogLevel.ERROR,
                    )
                await asyncio.sleep(AWAY_SECONDS)
            else:
                return

    async def _drive_once(self) -> None:
        manager_lease = try_manage(self.workspace, who=self.who, command=BACKGROUND)
        if manager_lease is None:
            self._tell_other()
            return
        with manager_lease:
            try:
                await self._manage(manager_lease)
            except (FenceLost, LedgerUnavailable):
                # `run` decides whether these end it.
                raise
            except Exception as error:
                self.ended(error)
                raise
            self.ended(None)

    async def watch(self) -> None:
        """Stop once a command asks for the lease."""
        while True:
            # A ledger that does not answer, or a folder that was moved, is met by the manager.
            with contextlib.suppress(LedgerUnavailable, Problem, OSError):
                if await asyncio.to_thread(is_requested, self.workspace):
                    break
            await asyncio.sleep(REQUEST_LOOK_SECONDS)
        self.progress.notice(
            "another command requests the environment: this controller releases it",
            event="lease.requested",
        )
        self._stopped.set()
        for wake in self._wake:
            wake()

    def _tell_other(self) -> None:
        found = self.workspace.manager()
        other = "another command" if found is None else held_by(found)
        self.progress.notice(
            f"{other} now drives the runs: this controller ends", event="lease.unavailable"
        )
        if not self._is_ready:
            self.ready(other)

    async def _manage(self, manager_lease: ManagerLease) -> None:
        await refuse_if_outgrown(self.ledger, self._hosts, manager_lease)
        note_start(self.workspace.paths, self.start)
        # A request on a full disk needs no new file then.
        self.workspace.paths.manager_request.touch(mode=0o600)
        manager = build_manager(
            self.workspace,
            self.ledger,
            self.gate,
            self._hosts,
            manager_lease,
            who=self.who,
            progress=self.progress,
            poll_seconds=POLL_SECONDS,
        )
        self._wake[:] = [manager.wake]
        if not self._is_ready:
            self._is_ready = True
            self.ready("")
        managing = under(manager_lease, manager.run(self._is_over))
        await until_stopped(managing, self._stopped, seconds=YIELD_SECONDS)

    def _is_over(self, manager: Manager) -> bool:
        """Tell whether to end: asked after every round in which no plan is carried out."""
        if self._stopped.is_set():
            return True
        if _has_work(manager):
            self._idle_since_ms = None
            return False
        now_ms = SystemClock().boot_ms()
        if self._idle_since_ms is None:
            self._idle_since_ms = now_ms
        return now_ms - self._idle_since_ms >= LINGER_MS


def _has_work(manager: Manager) -> bool:
    """Tell whether a controller is needed: for a run, for a host that comes, leaves or is idle, or for an answer or output."""
    runs = manager.runs
    assert runs is not None
    mirror = runs.mirror
    return (
        any(map(_may_change, mirror.runs.values()))
        or any(one.state is InstanceState.TERMINATING for one in mirror.instances)
        or any(one.is_joining and not one.is_refused for one in mirror.instances)
        or any(one.idle_since_ms is not None for one in mirror.instances)
        or bool(runs.owed_stops())
        or runs.owes_output()
    )


def _may_change(run: Run) -> bool:
    """Tell whether a run that is not over can change without a person's decision or another plan."""
    return run.cause != NO_EVIDENCE


# Writes down that a person has ended the controller while runs are open.
# Without that event a run would seem to have stood still for no reason.


def note_not_driven(workspace: Workspace, *, who: str) -> int:
    """
    Write an event where runs are open; returns how many.

    Raises:
        LedgerUnavailable: The ledger does not answer now.
        LedgerProblem: It cannot be used.
    """
    runs = workspace.read(lambda reader: reader.read_overview().work_count, 0)
    if runs:
        sentence = (
            f"no controller drives the runs any more: {who} ended it, with"
            f" {counted(runs, 'run')} open"
        )
        # A full disk has no room for it; the runs are counted all the same.
        with (
            contextlib.suppress(LedgerUnavailable),
            contextlib.closing(open_for_writing(workspace)) as ledger,
        ):
            ledger.append_events([LoggedEvent("manager.ended", SystemClock().now_ms(), sentence)])
    return runs
