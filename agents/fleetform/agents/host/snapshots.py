"""
Snapshots of volumes: the directory under another name in the same folder, marked with its origin.

Where it lies on the same file system that is a rename, and takes no time or space. Where it is a
mount point it is a copy, which gets its name only when it is whole. Nothing here removes a
snapshot: that is for a person to do.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator

from fleetform.agents.host import volumes
from fleetform.agents.host.volumes import VolumeError
from fleetform.agents.protocol.messages import SnapshotVolume

MARK = ".fleetform-snapshot"

_CANNOT_RENAME = frozenset({errno.EXDEV, errno.EBUSY})
"""Another file system, or a mount point itself: rename(2)."""


def put_aside(command: SnapshotVolume, owner: str, now_ms: int) -> tuple[str, ...]:
    """
    Put the volume's directory aside; nothing when that was done, or when there is no directory.

    Returns:
        Where data of this volume lies by now, in order: more than one place where it was put aside
        before, whoever heard of that; none where there was nothing.

    Raises:
        VolumeError: It is not ours, another volume lies in it, which would go along, or the new
            name is taken or is not beside it.
        OSError: It cannot be done; trying again goes on where this ended.
    """
    path, into = volumes.checked(command.path), volumes.checked(command.into)
    if os.path.dirname(path) != os.path.dirname(into) or path == into:
        raise VolumeError("invalid", f"{into} is not in the folder of {path}")
    with _alone(os.path.dirname(path)):
        beside = f"{into}-{command.operation_uid[:12]}"
        # An earlier try of this operation may have ended there.
        if os.path.lexists(beside) or _is_another(path, into, command.volume_uid):
            into = beside
        if os.path.lexists(into):
            _require_same(into, command, owner)
        elif os.path.lexists(path):
            volumes.require_owner(path, owner, command.volume_uid)
            volumes.require_alone(path, f"cannot be kept as a snapshot: {volumes.KEEP_IT}")
            volumes.write_mark(f"{path}/{MARK}", _mark(command, owner, now_ms))
            _move(path, into)
        else:
            return ()
        _release(path, owner, command.volume_uid)
        # Last: as long as it is there, this is not finished.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{into}/{volumes.MARK}")
        return _all_of(command, owner)


def _all_of(command: SnapshotVolume, owner: str) -> tuple[str, ...]:
    first = volumes.checked(command.into)
    folder, name = os.path.split(first)
    found = (f"{folder}/{one}" for one in os.listdir(folder) if one.startswith(f"{name}-"))
    return tuple(one for one in (first, *sorted(found)) if _is_of(one, command, owner))


def _is_another(path: str, into: str, volume_uid: str) -> bool:
    """
    Tell whether the volume was created again since its snapshot was taken.

    A try that has not ended leaves the volume's mark in the snapshot; one that has, none in the
    directory. What is there now was never put aside, and is not emptied for what was.
    """
    is_finished = os.path.exists(f"{into}/{MARK}") and not os.path.exists(f"{into}/{volumes.MARK}")
    mark = volumes.read_mark(f"{path}/{volumes.MARK}")
    return is_finished and mark.get("volume_uid") == volume_uid


def _mark(command: SnapshotVolume, owner: str, now_ms: int) -> dict[str, object]:
    return {
        "environment_uid": owner,
        "volume_uid": command.volume_uid,
        "name": command.name,
        "operation_uid": command.operation_uid,
        "path": command.path,
        "taken_at_ms": now_ms,
    }


def _require_same(into: str, command: SnapshotVolume, owner: str) -> None:
    """Accept what an earlier try has put there, and nothing else."""
    if not _is_of(into, command, owner):
        raise VolumeError("conflict", f"{into} exists already and does not belong to this volume")


def _is_of(into: str, command: SnapshotVolume, owner: str) -> bool:
    mark = volumes.read_mark(f"{into}/{MARK}")
    return (mark.get("environment_uid"), mark.get("volume_uid")) == (owner, command.volume_uid)


def _move(path: str, into: str) -> None:
    try:
        os.rename(path, into)
    except OSError as error:
        if error.errno not in _CANNOT_RENAME:
            raise
        partial = f"{into}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(path, partial, symlinks=True)
        os.rename(partial, into)


def _release(path: str, owner: str, volume_uid: str) -> None:
    """Empty a directory that was copied; a mount point stays, and is no longer ours."""
    if not os.path.exists(f"{path}/{volumes.MARK}"):
        return
    mark = volumes.read_mark(f"{path}/{volumes.MARK}")
    if (mark.get("environment_uid"), mark.get("volume_uid")) == (owner, volume_uid):
        # The copy may have taken long, and another volume been made here meanwhile.
        volumes.require_alone(path, f"cannot be emptied after its copy: {volumes.KEEP_IT}")
        volumes.empty(path)
        os.unlink(f"{path}/{volumes.MARK}")
        with contextlib.suppress(OSError):
            os.rmdir(path)


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Keep the other agents of this machine out, which put the same volume aside just now."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
