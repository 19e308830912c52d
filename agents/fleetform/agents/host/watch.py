"""
Supervisors that an earlier agent started: notice their end without being their parent.

A pidfd tells at once. It names the right process if the job's lock is held after it was
opened: the lock's holder is the only process that can have left that pid. Where there is no
pidfd (before Linux 5.3), or the pid was never written, the lock is looked at now and then.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from fleetform.agents.host import directory

_LOOK_SECONDS = 0.5
"""A job found so was running before the agent came; half a second late is soon enough."""


def watch(path: str, ended: Callable[[], None]) -> None:
    """Call `ended` once, from the running loop, when the job's supervisor is gone."""
    loop = asyncio.get_running_loop()
    descriptor = _open(path)
    if descriptor is None:
        _look(loop, path, ended)
        return

    def take() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        ended()

    loop.add_reader(descriptor, take)


def _open(path: str) -> int | None:
    pid = directory.supervisor_pid(path)
    if pid is None or not hasattr(os, "pidfd_open"):
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    if directory.is_locked(path):
        return descriptor
    os.close(descriptor)
    return None


def _look(loop: asyncio.AbstractEventLoop, path: str, ended: Callable[[], None]) -> None:
    if directory.is_locked(path):
        loop.call_later(_LOOK_SECONDS, _look, loop, path, ended)
    else:
        ended()
