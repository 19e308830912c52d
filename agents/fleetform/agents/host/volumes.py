"""
Directories of this host that are volumes: made once, marked with whose they are.

The mark lies in the directory itself, so that it goes where the data goes: two environments, or
two volumes of one, can never take the same directory without one of them being told.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from typing import Any

from fleetform.agents.protocol.messages import MakeVolume, RemoveVolume

MARK = ".fleetform-volume"


class VolumeError(Exception):
    """`code` is one of `Reply`'s."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def make(command: MakeVolume, owner: str) -> None:
    """
    Make the directory and mark it; nothing when it bears our mark already.

    Raises:
        VolumeError: It is somebody else's, or the path makes no sense.
        OSError: It cannot be made.
    """
    path = _checked(command.path)
    os.makedirs(path, exist_ok=True)
    mark = {
        "environment_uid": owner,
        "volume_uid": command.volume_uid,
        "name": command.name,
        "operation_uid": command.operation_uid,
    }
    if not _leave_mark(path, mark):
        _check_owner(path, owner, command.volume_uid)


def remove(command: RemoveVolume, owner: str) -> None:
    """
    Take the mark away, and with `delete_data` all that lies there; nothing when it is gone.

    Raises:
        VolumeError: It is not ours.
        OSError: It cannot be removed; trying again goes on where this ended.
    """
    path = _checked(command.path)
    if not os.path.lexists(path):
        return
    if not os.path.exists(f"{path}/{MARK}"):
        if command.delete_data and os.listdir(path):
            raise VolumeError("invalid", f"{path} bears no mark of ours; its data is left alone")
        return
    _check_owner(path, owner, command.volume_uid)
    if command.delete_data:
        _empty(path)
    os.unlink(f"{path}/{MARK}")
    if command.delete_data:
        # A mount point stays, and so does what is new there; it is no longer ours.
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _leave_mark(path: str, mark: dict[str, str]) -> bool:
    """
    Put the mark there unless there is one; returns whether it was put.

    It appears whole: two agents of one machine make the volume of their fleet at the same moment,
    and one that found the other's half of a mark would take the directory for a stranger's.
    """
    text = json.dumps(mark, indent=2) + "\n"
    partial = f"{path}/{MARK}.{os.getpid()}"
    _write(partial, text, "w")
    try:
        os.link(partial, f"{path}/{MARK}")
    except FileExistsError:
        return False
    except OSError:
        # Some shared file systems have no hard links. There one of the two may have to try again.
        return _write(f"{path}/{MARK}", text, "x")
    finally:
        os.unlink(partial)
    return True


def _write(path: str, text: str, mode: str) -> bool:
    """Write it down to the disk; False where it is there and `mode` is `x`."""
    try:
        with open(path, mode, encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        return False
    return True


def _empty(path: str) -> None:
    """Remove all but the mark, which goes last: an interrupted removal stays ours."""
    for name in os.listdir(path):
        if name == MARK:
            continue
        inner = f"{path}/{name}"
        if os.path.isdir(inner) and not os.path.islink(inner):
            shutil.rmtree(inner)
        else:
            os.unlink(inner)


def _check_owner(path: str, owner: str, volume_uid: str) -> None:
    mark = _read_mark(path)
    if mark.get("environment_uid") != owner:
        raise VolumeError(
            "conflict",
            f"{path} belongs to volume {mark.get('name', '?')} of environment "
            f"{mark.get('environment_uid', 'unknown')}: choose another path, or remove it there",
        )
    if mark.get("volume_uid") != volume_uid:
        raise VolumeError(
            "conflict",
            f"{path} belongs to volume {mark.get('name', '?')} ({mark.get('volume_uid')}) of this "
            "environment: two volumes cannot share a directory",
        )


def _read_mark(path: str) -> dict[str, Any]:
    try:
        with open(f"{path}/{MARK}", encoding="utf-8") as file:
            mark = json.load(file)
    except (OSError, ValueError):
        return {}
    return mark if isinstance(mark, dict) else {}


def _checked(path: str) -> str:
    normal = os.path.normpath(path)
    if not os.path.isabs(path) or normal == "/":
        raise VolumeError("invalid", f"{path!r} is no absolute path of a directory")
    return normal
