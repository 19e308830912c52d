"""
The directory of one job: what it says about the job, and how it goes away.

See `layout` for what lies in it. Nothing here asks a process; that is what makes it work after
any crash.
"""

from __future__ import annotations

import fcntl
import os
import shutil

from fleetform.agents.host import launch, layout, result
from fleetform.agents.host.launch import Launch
from fleetform.agents.host.recovery import ABSENT, Condition, Found

_LAUNCH_BYTES_MAX = 32 << 20
"""Environment and commands of one job came in one frame of at most 16 MiB."""


def inspect(path: str) -> Found:
    """Say how far the job got."""
    if not os.path.isdir(path):
        return ABSENT
    ended = result.read(f"{path}/{layout.RESULT}", os.path.basename(path))
    started = _read(f"{path}/{layout.STARTED}")
    job = _parse(started or _read(f"{path}/{layout.LAUNCH}"))
    if started is not None and is_locked(path):
        return Found(Condition.RUNNING, job)
    if ended is None:
        # Written between the first look and the lock's end, perhaps.
        ended = result.read(f"{path}/{layout.RESULT}", os.path.basename(path))
    if ended is not None:
        return Found(Condition.ENDED, job, ended)
    if started is not None:
        return Found(Condition.ABANDONED, job, log_bytes=log_bytes(path))
    return Found(Condition.INCOMPLETE if job is None else Condition.PREPARED, job)


def is_locked(path: str) -> bool:
    """Tell whether a supervisor lives; holds the lock for an instant to see."""
    try:
        descriptor = os.open(f"{path}/{layout.STARTED}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def supervisor_pid(path: str) -> int | None:
    """Read who supervises; only while the lock is held does the number mean that process."""
    data = _read(f"{path}/{layout.STARTED}")
    return None if data is None else launch.load_pid(data)


def log_bytes(path: str) -> int:
    """Return where the job's output ends, for one whose supervisor cannot say."""
    try:
        return os.stat(f"{path}/{layout.OUTPUT}").st_size
    except OSError:
        return 0


def remove(path: str) -> None:
    """Delete all of it; what cannot be deleted stays and is tried again at the next start."""
    shutil.rmtree(path, onerror=_unlock)


def _unlock(_function: object, path: str, _error: object) -> None:
    # A job may have taken the right to write from a directory of its own.
    try:
        os.chmod(os.path.dirname(path), 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, 0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
    except OSError:
        pass


def _parse(data: bytes | None) -> Launch | None:
    try:
        return None if data is None else launch.load(data)
    except (ValueError, KeyError, TypeError):
        return None


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(_LAUNCH_BYTES_MAX)
    except OSError:
        return None
