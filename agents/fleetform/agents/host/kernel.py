"""
System calls that Python has no name for: prctl, unshare, setns, mount, fallocate.

Loaded before the spawner forks, so that no supervisor pays for it. Each function raises
OSError as its namesakes in `os` do. Numbers are from the headers named beside them; they are
the same on every architecture of Linux.
"""

from __future__ import annotations

import ctypes
import os
import signal

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_CHILD_SUBREAPER = 36

# linux/sched.h
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000

# linux/mount.h
MS_RDONLY = 0x1
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_SLAVE = 0x80000

# linux/falloc.h
_FALLOC_FL_KEEP_SIZE = 0x1
_FALLOC_FL_PUNCH_HOLE = 0x2

_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl
_unshare = _libc.unshare
_setns = _libc.setns
_mount = _libc.mount
_mount.argtypes = (
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_ulong,
    ctypes.c_char_p,
)
# `fallocate64` takes a 64-bit offset on every architecture; musl has the plain name only.
_fallocate = getattr(_libc, "fallocate64", None) or _libc.fallocate
_fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def become_subreaper() -> None:
    """Inherit every orphaned descendant, so that none can hide by losing its parent."""
    _check(_prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def die_with_parent() -> None:
    """Have this process killed when the thread that forked it ends."""
    _check(_prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0))


def forbid_new_privileges() -> None:
    """Have no program that this process executes, and none below it, gain privileges by setuid bits."""
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def setns(namespace: int, flags: int) -> None:
    """Enter a namespace by a descriptor of it."""
    _check(_setns(namespace, flags))


def unshare(flags: int) -> None:
    _check(_unshare(flags))


def mount(source: str, target: str, flags: int) -> None:
    _check(_mount(os.fsencode(source), os.fsencode(target), None, flags, None), target)


def punch_hole(descriptor: int, offset: int, length: int) -> None:
    """Give the space of a part of a file back; its size stays and the part reads as zeros."""
    mode = _FALLOC_FL_KEEP_SIZE | _FALLOC_FL_PUNCH_HOLE
    _check(_fallocate(descriptor, mode, offset, length))


def _check(status: int, path: str = "") -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path or None)
