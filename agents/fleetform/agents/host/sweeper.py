"""
Directories of forgotten jobs: out of the way at once, deleted when nothing else is to do.

What a job left clean becomes a spare. Deleting the rest is the slow half of forgetting, and
may take minutes for a tree of checkpoints: it is renamed at once, and removed by a thread when
the agent has been quiet for a while.
"""

from __future__ import annotations

import asyncio
import os
import shutil

from fleetform.agents.host import directory, layout
from fleetform.agents.host.job_dir_pool import JobDirPool

_QUIET_SECONDS = 2.0

_POSTPONED_SECONDS_MAX = 60.0
"""A host that is never quiet must not fill up."""


class Sweeper:
    """
    Expects the agent's root as current directory; its `trash` is emptied from the start.

    `accounts` is the folder with the working directories of jobs that have an account of their own.
    """

    def __init__(self, skeletons: JobDirPool, accounts: str) -> None:
        self._skeletons = skeletons
        self._accounts = accounts
        self._loop = asyncio.get_running_loop()
        self._taken = 0
        self._last_taken = self._first_taken = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        # What an agent that was killed while it prepared a job has made for it.
        for name in self._names():
            if name != layout.TRASH and not os.path.exists(f"{layout.JOBS}/{name}"):
                self._take_folder(name)
        if os.listdir(layout.TRASH) or layout.TRASH in self._names():
            self._wait()

    def take(self, job_uid: str) -> None:
        """Make the job's directory vanish; nothing where it has none."""
        self._take_folder(job_uid)
        if self._skeletons.take_back(job_uid):
            return
        self._taken += 1
        try:
            # Numbered, since an agent of before may have left one of that name here.
            target = f"{layout.TRASH}/{job_uid}.{os.getpid()}.{self._taken}"
            os.rename(f"{layout.JOBS}/{job_uid}", target)
        except FileNotFoundError:
            return
        self._last_taken = self._loop.time()
        self._wait()

    def _take_folder(self, job_uid: str) -> None:
        """Make the working directory vanish that a job with an account of its own has."""
        folder = f"{self._accounts}/{job_uid}"
        if not os.path.lexists(folder):
            return
        self._taken += 1
        trash = f"{self._accounts}/{layout.TRASH}"
        # Closed: while it is removed, other processes of the account could exchange parts of it.
        os.makedirs(trash, mode=0o700, exist_ok=True)
        os.rename(folder, f"{trash}/{job_uid}.{os.getpid()}.{self._taken}")
        self._last_taken = self._loop.time()
        self._wait()

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._accounts)
        except OSError:
            return []

    def close(self) -> None:
        """Leave the remaining files to the next agent."""
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        if self._timer is None:
            self._first_taken = self._loop.time()
            self._timer = self._loop.call_later(_QUIET_SECONDS, self._sweep)

    def _sweep(self) -> None:
        now = self._loop.time()
        quiet_at = self._last_taken + _QUIET_SECONDS
        if now < min(quiet_at, self._first_taken + _POSTPONED_SECONDS_MAX):
            self._timer = self._loop.call_at(quiet_at, self._sweep)
            return
        self._timer = None
        self._loop.run_in_executor(None, self._empty_trash)

    def _empty_trash(self) -> None:
        for name in os.listdir(layout.TRASH):
            directory.remove(f"{layout.TRASH}/{name}")
        trash = f"{self._accounts}/{layout.TRASH}"
        for name in os.listdir(trash) if os.path.isdir(trash) else ():
            shutil.rmtree(f"{trash}/{name}", ignore_errors=True)
