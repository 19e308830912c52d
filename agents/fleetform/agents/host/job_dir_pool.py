"""
Empty directories of jobs, created or used again.

A job's directory is put together out of sight and appears under the job's name complete, by one
rename. What a job that ended cleanly leaves is taken apart the same way and serves the next one:
nothing is created or deleted then. That matters where an array of thousands of short jobs runs,
and more on file systems that look at every recently deleted inode when they make a new one, as
ext4 without a journal does.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import time

from fleetform.agents.host import layout, result

_SPARES_MAX = 512
"""A wave of jobs on a large host; each holds one block and six inodes."""

_FOLDERS = (layout.WORK, layout.TEMPORARY)

_NEEDED = frozenset({layout.RESULT, layout.CONTROL, *_FOLDERS})


class JobDirPool:
    """
    The spares below one root. May be used by several threads: what they share is a list, whose
    single operations are atomic, and a counter.
    """

    def __init__(self, root: str) -> None:
        """Take over the spares of an earlier agent; those that are not whole become trash."""
        self._root = root
        self._folder = f"{root}/{layout.SPARE}"
        self._spares: list[str] = []
        self._numbers = itertools.count()
        for name in os.listdir(self._folder):
            if _is_spare(f"{self._folder}/{name}"):
                _clear(f"{self._folder}/{name}")
                self._spares.append(f"{self._folder}/{name}")
            else:
                os.rename(f"{self._folder}/{name}", f"{root}/{layout.TRASH}/{name}")

    def take(self) -> str:
        """Return the path of an unused one; raises OSError when none can be made."""
        try:
            return self._spares.pop()
        except IndexError:
            return self._make()

    def place(self, path: str, job_uid: str) -> None:
        """Let a finished directory appear as the job's; raises OSError if there is one."""
        os.rename(path, f"{self._root}/{layout.JOBS}/{job_uid}")

    def take_back(self, job_uid: str) -> bool:
        """
        Make a spare of a job's directory; False, and nothing is changed, where it is not clean.

        Clean is one with a result, since its supervisor has seen the last process go, and with
        nothing in it that the job has left.
        """
        path = f"{self._root}/{layout.JOBS}/{job_uid}"
        if len(self._spares) >= _SPARES_MAX or not _is_clean(path, job_uid):
            return False
        spare = self._new_path()
        os.rename(path, spare)
        os.rename(f"{spare}/{layout.STARTED}", f"{spare}/{layout.LAUNCH}")
        _clear(spare)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{spare}/{layout.OUTPUT}")
        self._spares.append(spare)
        return True

    def _make(self) -> str:
        path = self._new_path()
        os.mkdir(path, 0o700)
        for folder in _FOLDERS:
            os.mkdir(f"{path}/{folder}", 0o700)
        os.mkfifo(f"{path}/{layout.CONTROL}", 0o600)
        result.allocate(f"{path}/{layout.RESULT}")
        return path

    def _new_path(self) -> str:
        # Named by the moment, since an earlier agent's are still here.
        return f"{self._folder}/{time.time_ns():x}-{next(self._numbers)}"


def _clear(path: str) -> None:
    """Take out of a spare what its last job was to do: commands and environment may be secret."""
    # Not cut to nothing: ext4 takes what is then written for a file being replaced, and writes it to
    # the disk at once (mount option auto_da_alloc).
    with contextlib.suppress(FileNotFoundError):
        os.truncate(f"{path}/{layout.LAUNCH}", 1)


def _is_clean(path: str, job_uid: str) -> bool:
    """Tell whether a job has ended here and left nothing."""
    try:
        return (
            set(os.listdir(path)) - {layout.OUTPUT} == _NEEDED | {layout.STARTED}
            and result.read(f"{path}/{layout.RESULT}", job_uid) is not None
            and _are_empty(path)
        )
    except OSError:
        return False


def _is_spare(path: str) -> bool:
    """Tell whether a spare is whole; an agent may have died while it made or filled it."""
    try:
        return (
            set(os.listdir(path)) - {layout.LAUNCH} == _NEEDED
            and os.stat(f"{path}/{layout.RESULT}").st_size == result.SLOT_BYTES
            and _are_empty(path)
        )
    except OSError:
        return False


def _are_empty(path: str) -> bool:
    return all(_is_empty(f"{path}/{folder}") for folder in _FOLDERS)


def _is_empty(path: str) -> bool:
    # A job may have put a link in its place, or taken rights away.
    mode = os.lstat(path).st_mode
    return stat.S_ISDIR(mode) and stat.S_IMODE(mode) == 0o700 and not os.listdir(path)
