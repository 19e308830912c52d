"""
Make a job's directory whole again after the job has removed it, or files of it.

A job may write where it works, and a script that clears up one folder too many removes what its
supervisor needs: where its result goes, the FIFO that takes requests, and the lock that tells that
it lives. The supervisor has all of it open, so that it can make them again under their names.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

from fleetform.agents.host import layout, result

_NEW = ".new"
_LAUNCH_BYTES_MAX = 32 << 20


def is_whole(job_uid: str, started: int, control: int) -> bool:
    """
    Tell whether the current directory is still the job's, and has what its supervisor needs.

    `started` and `control` are the descriptors of these files.
    """
    try:
        return (
            os.path.samestat(os.stat("."), os.stat(f"../{job_uid}"))
            and os.path.samestat(os.stat(layout.STARTED), os.fstat(started))
            and os.path.samestat(os.stat(layout.CONTROL), os.fstat(control))
            and os.path.exists(layout.RESULT)
        )
    except OSError:
        return False


def make_whole(job_uid: str, started: int, control: int) -> None:
    """
    Make again what is missing, behind the same descriptors; raises OSError where that fails.

    `started` comes last: what has it, and is locked, is whole.
    """
    directory = f"../{job_uid}"
    if not os.path.isdir(directory):
        os.mkdir(directory, 0o700)
    # Also where another one of this name has been made.
    os.chdir(directory)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(layout.CONTROL + _NEW)
    os.mkfifo(layout.CONTROL + _NEW, 0o600)
    _exchange(layout.CONTROL, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC, control)
    if not os.path.exists(layout.RESULT):
        result.allocate(layout.RESULT)
    content = os.pread(started, _LAUNCH_BYTES_MAX, 0)
    with open(layout.STARTED + _NEW, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o600)
    _exchange(layout.STARTED, os.O_RDWR | os.O_CLOEXEC, started, lock=True)


def _exchange(name: str, flags: int, descriptor: int, *, lock: bool = False) -> None:
    """Open `name.new`, give it its name, and let `descriptor` be it."""
    new = os.open(name + _NEW, flags)
    try:
        if lock:
            fcntl.flock(new, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(name + _NEW, name)
        os.dup2(new, descriptor, inheritable=False)
    finally:
        os.close(new)
