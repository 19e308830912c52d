"""
Disks that a cloud attaches to this host: found by their id, formatted once, and mounted where a volume lies.

A disk is formatted only if it is empty: it has neither a file system nor partitions, and begins with zeros, and was not
made of a snapshot. Anything else on it is data that its owner may need.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence

from fleetform.agents.host.volumes import VolumeError, checked
from fleetform.agents.protocol.messages import MountDisk

BY_ID = "/dev/disk/by-id"
"""Has links to devices by their serial numbers; udev makes them."""

DEVICE_SECONDS = 30.0
"""For how long an attached disk is waited for: the kernel finds it within seconds."""

_LOOK_SECONDS = 0.2

_START_BYTES = 1 << 20
"""At the start of a disk that are read: boot sectors, partition tables and superblocks lie there."""

_NOTHING_FOUND = 2
"""The exit code of blkid where it knows nothing of what is on the disk."""

_LOST_AND_FOUND = "lost+found"

NETWORK_TYPES = ("nfs4", "lustre")
"""Types of shared file systems, as the kernel calls them; EFS is NFS."""

FULL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def mount(command: MountDisk) -> str:
    """
    Mount a disk, and format it first if it is empty; nothing more than growing where it is mounted.

    Returns:
        Why the file system is smaller than the disk; empty where it is not.

    Raises:
        VolumeError: The disk is not there, or has something else on it.
        OSError: The directory cannot be created.
    """
    path = checked(command.path)
    require_root()
    if not os.path.ismount(path):
        device = _wait_for(command.disk)
        if not file_system(device):
            _require_empty(command.disk, device)
            if command.snapshot:
                raise VolumeError(
                    "invalid",
                    f"{command.disk} was made of {command.snapshot} and has no file system, so it is not formatted:"
                    " use a snapshot of a disk with a file system, or remove `snapshot_id` for an empty disk",
                )
            # Without a discard of the whole disk, it takes a second for a terabyte.
            run("mkfs.ext4", "-q", "-m", "0", "-E", "nodiscard", device)
        os.makedirs(path, exist_ok=True)
        run("mount", device, path)
        if set(os.listdir(path)) <= {_LOST_AND_FOUND}:
            _open_new(path)
    try:
        _grow(path)
    except VolumeError as error:
        # The data is there; it has less room.
        return f"{command.disk} is mounted with the size that its file system had: {error}"
    return ""


def unmount(path: str) -> None:
    """
    Write back and unmount what is mounted at a path; nothing where nothing is.

    Raises:
        VolumeError: Something on the host uses it.
    """
    path = checked(path)
    if mounted := mount_at(path):
        # `umount` waits for the server of a file system, for ever if the server is gone.
        lazily = ("--lazy",) if mounted[1] in NETWORK_TYPES else ()
        run("umount", *lazily, path)
    if os.path.isdir(path) and not os.listdir(path):
        os.rmdir(path)


def require_root() -> None:
    """
    Make sure that this agent can mount something.

    Raises:
        VolumeError: It is not root.
    """
    if os.geteuid() != 0:
        raise VolumeError(
            "invalid", "only an agent that is root can mount disks: set `become: sudo` of the fleet"
        )


def mount_at(path: str) -> tuple[str, str] | None:
    """
    Return device and type of what is mounted at a path; None: nothing is.

    The table of the kernel says it without a question to the server of a file system, which may be gone.
    """
    folder, name = os.path.split(path)
    wanted = os.path.join(os.path.realpath(folder), name)
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        lines = [line.split() for line in mounts]
    # Spaces are written as \040.
    found = [one for one in lines if one[1].encode().decode("unicode_escape") == wanted]
    return (found[-1][0], found[-1][2]) if found else None


def file_system(device: str) -> str:
    """
    Name what is on a device: a file system, or a table of partitions; empty where blkid knows nothing.

    Raises:
        VolumeError: It cannot be told.
    """
    found = _call("blkid", "-p", "-o", "export", device)
    if found.returncode == _NOTHING_FOUND:
        return ""
    pairs = [line.partition("=") for line in found.stdout.splitlines()]
    facts = {name: value for name, _, value in pairs}
    kind = facts.get("TYPE") or facts.get("PTTYPE")
    if found.returncode != 0 or not kind:
        raise VolumeError(
            "invalid",
            f"it cannot be told what is on {device}: {found.stderr.strip() or 'ambivalent'}",
        )
    if "TYPE" not in facts:
        raise VolumeError(
            "invalid",
            f"{device} has partitions ({kind}), and only a disk with one file system can be mounted",
        )
    return kind


def _require_empty(disk: str, device: str) -> None:
    with open(device, "rb") as file:
        start = file.read(_START_BYTES)
    if start.strip(b"\0"):
        raise VolumeError(
            "invalid",
            f"{disk} has data that is no file system, so it is not formatted: create a file system on it"
            " yourself, or use another disk",
        )


def _open_new(path: str) -> None:
    """Make a new file system like a new directory, which the first account that mounts it gets."""
    if os.path.isdir(f"{path}/{_LOST_AND_FOUND}"):
        os.rmdir(f"{path}/{_LOST_AND_FOUND}")
    os.chmod(path, 0o700)


def _wait_for(disk: str) -> str:
    deadline = time.monotonic() + DEVICE_SECONDS
    while True:
        device = find(disk)
        if device:
            return device
        if time.monotonic() > deadline:
            raise VolumeError("invalid", f"{disk} is not attached to this host")
        time.sleep(_LOOK_SECONDS)


def find(disk: str) -> str:
    """Return the device of a disk by the cloud's id of it; empty where there is none."""
    # The serial number is the id without its dash: vol0f1e2d3c4b5a69788.
    serial = disk.replace("-", "")
    for name in _names(BY_ID):
        if name.endswith(f"_{serial}"):
            return os.path.realpath(f"{BY_ID}/{name}")
    for name in _names("/sys/block"):
        if _text(f"/sys/block/{name}/device/serial") == serial:
            return f"/dev/{name}"
    return ""


def _names(folder: str) -> Sequence[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return ()


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def _grow(path: str) -> None:
    """Let the file system have all of a disk that has grown; nothing where it has."""
    mounted = mount_at(path)
    assert mounted is not None, f"nothing is mounted at {path}"
    device, kind = mounted
    if kind in ("ext3", "ext4"):
        run("resize2fs", device)
    elif kind == "xfs":
        run("xfs_growfs", path)


def run(*argv: str) -> None:
    """
    Run a program of the host.

    Raises:
        VolumeError: It failed; the message has what it said.
    """
    done = _call(*argv)
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise VolumeError("invalid", f"`{' '.join(argv)}` failed: {said}")


def _call(*argv: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": FULL_PATH, "LC_ALL": "C"}
    try:
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        raise VolumeError("invalid", f"this host has no program {argv[0]}") from None
