"""
Directories of the host at absolute paths of a job, by a mount namespace of its own.

Root needs nothing else. Anybody else needs a user namespace, which some hosts forbid: that is
tried once when the agent starts, so that a job which needs it fails while it is prepared. A
relative path of a job is a link in its working directory and none of this.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from fleetform.agents.host import kernel
from fleetform.agents.host.launch import Bind

# What a mount inherits from the host stays set inside a user namespace, so a remount that
# leaves one of them out is refused (mount_namespaces(7), "locked"). By statvfs(3) and mount(2).
_LOCKED_FLAGS = ((os.ST_NOSUID, 0x2), (os.ST_NODEV, 0x4), (os.ST_NOEXEC, 0x8),
                 (os.ST_NOATIME, 0x400), (os.ST_NODIRATIME, 0x800), (os.ST_RELATIME, 0x200000))  # fmt: skip


def enter(binds: Sequence[Bind]) -> None:
    """
    Give this process mounts of its own; all that it starts later sees them.

    Raises:
        OSError: The host does not allow it, or a source or target is not there.
    """
    _leave_the_host()
    for bind in binds:
        kernel.mount(bind.source, bind.target, kernel.MS_BIND | kernel.MS_REC)
        if bind.read_only:
            flags = kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY
            kernel.mount(bind.source, bind.target, flags | _locked_flags(bind.target))


def obstacle() -> str:
    """
    Say why this host cannot give a job mounts of its own; empty when it can.

    Tries it in a child, since a process cannot leave a namespace again.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _leave_the_host()
            status = 0
        except OSError as error:
            status = error.errno or 1
        finally:
            os._exit(status)
    number = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if number == 0:
        return ""
    reason = os.strerror(number) if number > 0 else "it was killed"
    return (
        f"this host does not give jobs a mount namespace ({reason}): mount at a path relative to the "
        "working directory, run the agent as root, or allow user namespaces"
    )


def _leave_the_host() -> None:
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        kernel.unshare(kernel.CLONE_NEWNS)
    else:
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUSER)
        # In this order: a group may be mapped without privilege only where setgroups is denied
        # (user_namespaces(7)).
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    # Or else what is mounted here would show on the host.
    kernel.mount("none", "/", kernel.MS_REC | kernel.MS_PRIVATE)


def _locked_flags(path: str) -> int:
    found = os.statvfs(path).f_flag
    return sum(flag for bit, flag in _LOCKED_FLAGS if found & bit)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
