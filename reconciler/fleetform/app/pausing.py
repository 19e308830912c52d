"""
Pauses the jobs of this machine while an emergency is put in force on a full disk.

A job that writes as fast as it can takes the room of the reserve before the ledger has used it.
Only processes of this machine write to the ledger's disk, for network file systems are refused, so
SIGSTOP keeps that room for the ledger. It does not need the ledger, which cannot be written yet.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from fleetform.agents.host import directory, layout, processes

__all__ = ["PausedJobs"]

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
