"""
Directories of forgotten jobs: out of the way at once, deleted when nothing else is to do.

What a job left clean becomes a spare. Deleting the rest is the slow half of forgetting, and
may take minutes for a tree of checkpoints: it is renamed at once, and removed by a thread when
the agent has been quiet for a while.
"""

from __future__ import annotations

import asyncio
import os

from fleetform.agents.host import directory, layout
from fleetform.agents.host.job_dir_pool import JobDirPool

_QUIET_SECONDS = 2.0

_POSTPONED_SECONDS_MAX = 60.0
"""A host that is never quiet must not fill up."""


class Sweeper:
    """Expects the agent's root as current directory; its `trash` is emptied from the start."""

    def __init__(self, skeletons: JobDirPool) -> None:
        self._skeletons = skeletons
        self._loop = asyncio.get_running_loop()
        self._taken = 0
        self._last_taken = self._first_taken = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        if os.listdir(layout.TRASH):
            self._wait()

    def take(self, job_uid: str) -> None:
        """Make the job's directory vanish; nothing where it has none."""
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
        self._loop.run_in_executor(None, _empty_trash)


def _empty_trash() -> None:
    for name in os.listdir(layout.TRASH):
        directory.remove(f"{layout.TRASH}/{name}")
