"""
Overrides from a person's terminal: written at once, and carried out here where no controller runs.

A user who may write the ledger may write overrides: its folder belongs to one account. Without a
manager the agents go on with what they run, so the end of runs is then brought about from here.
Nothing else is: no plan is carried out meanwhile, and nothing starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.agents.host import directory, layout, processes
from fleetform.app.clock import SystemClock
from fleetform.app.driving import manage_ends
from fleetform.app.handover import wait_until_ends
from fleetform.app.ledger import (
    open_for_writing,
)
from fleetform.app.managing import keep_reserve
from fleetform.app.problems import LedgerProblem
from fleetform.model.ports import LedgerUnavailable
from fleetform.model.run import RunState, RunUid

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.controllers.manager import Manager
    from fleetform.model.override import Override, OverrideKind, PutInForce
    from fleetform.model.ports import Progress


_REPEAT = "if its disk is full, free some space there; then run the command again"

SILENCE_MS = 10_000
"""How long a run of a silent host is waited for: its agent ends it when it is back, if it got the request."""


def make_room(workspace: Workspace, paused: PausedJobs) -> bool:
    """
    Give up what is kept for an emergency where the ledger's disk is full; tells whether it was.

    Jobs of this machine are paused first, or one that writes without end would have the room. Before
    anything is read: also a process that only reads a ledger needs some room next to it.
    """
    backend, uid = workspace.backend(), workspace.environment.uid
    if not backend.is_reserve_needed(uid):
        return False
    manager = workspace.manager()
    spared = [os.getpid(), *([] if manager is None else [manager.pid])]
    paused.pause(workspace.paths.hosts, spared=spared)
    backend.give_up_reserve(uid)
    return True


def put_in_force(
    workspace: Workspace,
    kind: OverrideKind,
    targets: Sequence[str],
    *,
    reason: str,
    who: str,
    until_ms: int | None,
) -> PutInForce:
    """
    Write overrides; they hold as soon as this returns.

    Raises:
        LedgerProblem: The ledger cannot be written; nothing is in force.
    """
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        try:
            return ledger.put_overrides(
                kind,
                targets,
                reason=reason,
                who=who,
                now_ms=SystemClock().now_ms(),
                until_ms=until_ms,
            )
        except LedgerUnavailable as problem:
            raise LedgerProblem(str(problem), f"nothing is in force; {_REPEAT}") from problem


def lift(workspace: Workspace, numbers: Sequence[int] | None, *, who: str) -> tuple[Override, ...]:
    """
    Lift overrides that are in force, or with None all of them; returns those it lifted.

    Raises:
        LedgerProblem: The ledger cannot be written; all still hold.
    """
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        try:
            lifted = ledger.lift_overrides(numbers, who=who, now_ms=SystemClock().now_ms())
        except LedgerUnavailable as problem:
            raise LedgerProblem(str(problem), f"nothing was lifted; {_REPEAT}") from problem
    # For the next one: there may be no manager for months.
    keep_reserve(workspace)
    return lifted


async def drive_ends(
    workspace: Workspace, names: Sequence[str], *, who: str, progress: Progress
) -> bool:
    """
    Stop the jobs whose end was requested; False where another controller does so.

    Returns once what is at work is over, or has been unknown for `SILENCE_MS`.

    Raises:
        Locked: Another process manages, and does not begin to end it.
        Problem: The ledger cannot be used, or hosts remember another one.
    """
    while workspace.manager() is not None:
        if await wait_until_ends(workspace, names, clock=SystemClock()):
            return False
    return await manage_ends(
        workspace, _Ended(names), who=who, command="emergency stop", progress=progress
    )


class _Ended:
    """
    Tells whether the running jobs are over, or the rest has been silent for long.

    Not whether the name is: it may stand for a successor that waits until this is lifted.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)
        self._uids: tuple[RunUid, ...] | None = None
        self._since_ms = SystemClock().boot_ms()

    def __call__(self, manager: Manager) -> bool:
        assert manager.runs is not None
        mirror = manager.runs.mirror
        if self._uids is None:
            self._uids = tuple(
                uid
                for uid, run in mirror.runs.items()
                if run.name in self._names and run.stop_requested
            )
        going = [mirror.runs[uid].state for uid in self._uids if uid in mirror.runs]
        if any(state is not RunState.UNKNOWN for state in going):
            self._since_ms = SystemClock().boot_ms()
            return False
        return not going or SystemClock().boot_ms() - self._since_ms >= SILENCE_MS


# Pauses the jobs of this machine while an emergency is put in force on a full disk.
# A job that writes as fast as it can takes the room of the reserve before the ledger has used it.
# Only processes of this machine write to the ledger's disk, for network file systems are refused, so
# SIGSTOP keeps that room for the ledger. It does not need the ledger, which cannot be written yet.

_NAME = b"FLEETFORM_RUN_NAME="

_STOP_SECONDS = 1.0
"""How long a process is waited for: SIGSTOP takes effect where its system call returns."""

_RESUME_SECONDS = 15.0
"""When paused jobs go on in any case: longer than a manager is waited for."""

_LOOK_SECONDS = 0.02

_RESUMER = """
import os, signal, sys
for pid in sys.stdin.read().split():
    try:
        os.kill(int(pid), signal.SIGCONT)
    except OSError:
        pass
"""
"""A process that resumes the pids of its input at the end of it: also where this one is killed."""


class PausedJobs:
    """
    Paused processes of jobs, by their pid, with the name of their run.

    A process that was stopped by another one is left alone.
    """

    def __init__(self) -> None:
        self._runs: dict[int, str] = {}
        self._resumer: subprocess.Popen[bytes] | None = None

    def pause(self, hosts: Path, *, spared: Collection[int]) -> None:
        """
        Pause all jobs of the agents below a folder; returns once they are stopped.

        `spared`, and the processes above those, go on: one of them may be typed within a job.
        """
        going_on = {pid for one in spared for pid in _with_ancestors(one)}
        for supervisor in _supervisors(hosts):
            while found := [pid for pid in _going(supervisor) if pid not in going_on]:
                name = next(filter(None, map(_run_name, found)), "")
                for pid in found:
                    self._pause_one(pid, name)
                # Once each: what is being traced, or is another user's, cannot be stopped.
                going_on.update(found)
        self._wait_until_stopped()

    def resume(self, *, but: Collection[str] = ()) -> None:
        """Resume the jobs of all runs but these."""
        self._resume([pid for pid, name in self._runs.items() if name not in but])

    async def resume_when_signalled(self) -> None:
        """
        Resume each process once its agent has signalled it, and all of them after a while.

        A stopped process handles a signal before it executes anything else, so one that is to end
        writes nothing more.
        """
        until = time.monotonic() + _RESUME_SECONDS
        while self._runs and time.monotonic() < until:
            self._resume([pid for pid in self._runs if _is_signalled(pid)])
            await asyncio.sleep(_LOOK_SECONDS)
        self.resume()

    def close(self) -> None:
        """Resume what is paused."""
        self.resume()
        if self._resumer is not None:
            self._resumer.communicate()
            self._resumer = None

    def _pause_one(self, pid: int, name: str) -> None:
        if self._resumer is None:
            self._resumer = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _RESUMER],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Ctrl-C at our terminal is not meant for it.
                start_new_session=True,
            )
        assert self._resumer.stdin is not None
        self._resumer.stdin.write(b"%d\n" % pid)
        self._resumer.stdin.flush()
        self._runs[pid] = name
        processes.send([pid], signal.SIGSTOP)

    def _wait_until_stopped(self) -> None:
        until = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < until and any(
            processes.state(pid) not in {"T", "Z", "X", ""} for pid in self._runs
        ):
            time.sleep(_LOOK_SECONDS)

    def _resume(self, pids: Collection[int]) -> None:
        processes.send(pids, signal.SIGCONT)
        for pid in pids:
            del self._runs[pid]


def _supervisors(hosts: Path) -> Iterator[int]:
    for folder in hosts.glob(f"*/{layout.JOBS}/*"):
        path = str(folder)
        if directory.is_locked(path) and (pid := directory.supervisor_pid(path)) is not None:
            yield pid


def _going(supervisor: int) -> list[int]:
    """Return the processes of a job that are not stopped; its supervisor is none of them."""
    return [
        pid
        for pid in processes.descendants(supervisor)
        if processes.state(pid) not in {"T", "Z", "X", ""}
    ]


def _with_ancestors(pid: int) -> list[int]:
    found = []
    try:
        while pid > 1:
            found.append(pid)
            pid = processes.parent(pid)
    except OSError:
        pass  # It has ended meanwhile, and so nothing above it waits for it.
    return found


def _run_name(pid: int) -> str:
    try:
        variables = processes.environment(pid)
    except OSError:
        return ""
    name = next((one for one in variables if one.startswith(_NAME)), b"")
    return name.removeprefix(_NAME).decode("utf-8", "replace")


def _is_signalled(pid: int) -> bool:
    """Tell whether a process goes on, has ended, or will handle a signal when it goes on."""
    return processes.state(pid) != "T" or processes.has_pending(pid)
