"""
Supervisors that an earlier agent started: notice their end without being their parent.

A pidfd tells at once. It names the right process if the job's lock is held after it was
opened: the lock's holder is the only process that can have left that pid. Where there is no
pidfd (before Linux 5.3), or the pid was never written, the lock is looked at now and then.

Only its parent learns of a process that a job stops with SIGSTOP, so these supervisors
are looked at, and continued.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from fleetform.agents.host import directory, processes

_LOOK_SECONDS = 0.5
"""A job found so was running before the agent came; half a second late is soon enough."""

_STOPPED_SECONDS = 2.0
"""Between two looks at whether it is stopped: one small file is read each time."""


def watch(path: str, ended: Callable[[], None]) -> None:
    """Call `ended` once, from the running loop, when the job's supervisor is gone."""
    loop = asyncio.get_running_loop()
    opened = _open(path)
    if opened is None:
        _look(loop, path, ended)
        return
    _Watch(loop, *opened, ended)


class _Watch:
    """A supervisor by its pidfd, until it is gone."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pid: int,
        descriptor: int,
        ended: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._pid = pid
        self._descriptor = descriptor
        self._ended = ended
        loop.add_reader(descriptor, self._end)
        self._timer = loop.call_later(_STOPPED_SECONDS, self._continue)

    def _continue(self) -> None:
        if processes.state(self._pid) == "T":
            # By the descriptor: the pid may be another process's by now.
            signal.pidfd_send_signal(self._descriptor, signal.SIGCONT)
        self._timer = self._loop.call_later(_STOPPED_SECONDS, self._continue)

    def _end(self) -> None:
        self._timer.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._ended()


def _open(path: str) -> tuple[int, int] | None:
    pid = directory.supervisor_pid(path)
    if pid is None or not hasattr(os, "pidfd_open"):
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    if directory.is_locked(path):
        return pid, descriptor
    os.close(descriptor)
    return None


def _look(loop: asyncio.AbstractEventLoop, path: str, ended: Callable[[], None]) -> None:
    if directory.is_locked(path):
        loop.call_later(_LOOK_SECONDS, _look, loop, path, ended)
    else:
        ended()
