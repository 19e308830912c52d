"""
Directories of the host at absolute paths of a job, by a mount namespace of its own.

Root needs nothing else. Anybody else needs a user namespace, which some hosts forbid: that is
tried once when the agent starts, so that a job which needs it fails while it is prepared. A
relative path of a job is a link in its working directory and none of this.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from fleetform.agents.host import kernel
from fleetform.agents.host.credentials import Assumed
from fleetform.agents.host.launch import Account, Bind

# What a mount inherits from the host stays set inside a user namespace, so a remount that
# leaves one of them out is refused (mount_namespaces(7), "locked"). By statvfs(3) and mount(2).
_LOCKED_FLAGS = ((os.ST_NOSUID, 0x2), (os.ST_NODEV, 0x4), (os.ST_NOEXEC, 0x8),
                 (os.ST_NOATIME, 0x400), (os.ST_NODIRATIME, 0x800), (os.ST_RELATIME, 0x200000))  # fmt: skip


def enter(binds: Sequence[Bind], account: Account | None = None) -> None:
    """
    Give this process mounts of its own; all that it starts later sees them.

    Args:
        binds: What to mount where.
        account: Who may look up sources and targets, where that is another account than this
            process's: root would follow a link of that account to a place that is closed to it.

    Raises:
        OSError: The host does not allow it, or a source or target is not there.
    """
    _leave_the_host()
    if account is not None:
        for bind in binds:
            _bind_as(bind, account)
        # A mount may hide /etc from a program such as sudo, which then believes what is there.
        kernel.forbid_new_privileges()
        return
    for bind in binds:
        kernel.mount(bind.source, bind.target, kernel.MS_BIND | kernel.MS_REC)
        if bind.read_only:
            flags = kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY
            kernel.mount(bind.source, bind.target, flags | _locked_flags(bind.target))


def _bind_as(bind: Bind, account: Account) -> None:
    source = _open_as(bind.source, account)
    target = _open_as(bind.target, account)
    try:
        kernel.mount(_path_of(source), _path_of(target), kernel.MS_BIND | kernel.MS_REC)
        if bind.read_only:
            _make_read_only(bind, account, source)
    finally:
        os.close(source)
        os.close(target)


def _make_read_only(bind: Bind, account: Account, source: int) -> None:
    mounted = _open_as(bind.target, account)
    try:
        if not os.path.samestat(os.fstat(mounted), os.fstat(source)):
            raise OSError(errno.EBUSY, "was replaced while it was mounted", bind.target)
        flags = kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY
        kernel.mount(_path_of(mounted), _path_of(mounted), flags | _locked_flags(_path_of(mounted)))
    finally:
        os.close(mounted)


def _open_as(path: str, account: Account) -> int:
    with Assumed(account):
        return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _path_of(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


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
    # Or else what is mounted here would show on the host. What the host unmounts goes here too, or a job
    # would keep a disk that it never mounted.
    kernel.mount("none", "/", kernel.MS_REC | kernel.MS_SLAVE)


def _locked_flags(path: str) -> int:
    found = os.statvfs(path).f_flag
    return sum(flag for bit, flag in _LOCKED_FLAGS if found & bit)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
