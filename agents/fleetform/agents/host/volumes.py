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
import time
from collections.abc import Iterator
from typing import Any

from fleetform.agents.host import accounts, layout
from fleetform.agents.protocol.messages import MakeVolume, RemoveVolume
from fleetform.agents.protocol.naming import short_uid

MARK = ".fleetform-volume"

KEEP_IT = "remove that volume first, or keep the data of this volume with `deletion_policy: retain`"


class VolumeError(Exception):
    """`code` is one of `Reply`'s."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def make(command: MakeVolume, owner: str, *, owner_name: str = "", now_ms: int = 0) -> None:
    """
    Make the directory and mark it; nothing when it has our marker already.

    Args:
        command: What to make.
        owner: The environment's uid.
        owner_name: What people call it; with `now_ms` for those who come upon the mark later.
        now_ms: Unix milliseconds.

    Raises:
        VolumeError: It is somebody else's, or the path makes no sense.
        OSError: It cannot be made.
    """
    path = checked(command.path)
    _check_taken(command, path)
    if os.geteuid() == 0 and path.startswith(f"{layout.SHARED}/"):
        # Below its folder other accounts than root's must reach their volumes.
        accounts.make_passage(os.path.dirname(path))
    os.makedirs(path, exist_ok=True)
    mark = {
        "environment_uid": owner,
        "environment": owner_name,
        "made_at_ms": now_ms,
        "volume_uid": command.volume_uid,
        "name": command.name,
        "operation_uid": command.operation_uid,
    }
    if _leave_mark(path, mark):
        return
    found = read_mark(f"{path}/{MARK}")
    if command.take == "found" and found.get("environment_uid") == owner:
        # A volume of ours that was forgotten, or made before another ledger.
        if found.get("volume_uid") != command.volume_uid:
            write_mark(f"{path}/{MARK}", mark)
        return
    require_owner(path, owner, command.volume_uid)


def _check_taken(command: MakeVolume, path: str) -> None:
    """Require that the directory is the one that the command names."""
    if os.path.lexists(path) and not os.path.isdir(path):
        raise VolumeError(
            "invalid",
            f"{path} is not a directory, and `volume/{command.name}` must be one: declare the path of"
            " a directory",
        )
    is_ours = read_mark(f"{path}/{MARK}").get("volume_uid") == command.volume_uid
    if not is_ours:
        _require_outside(path)
    if command.take == "found" and not os.path.isdir(path):
        raise VolumeError(
            "invalid",
            f"{path} does not exist on this host, so there is nothing to import: remove"
            f" `volume/{command.name}` from `import:`; then the volume is created",
        )
    if command.take == "kept" and not is_ours:
        _require_kept(command, path)
    if command.take == "found" and not is_ours:
        require_alone(path, "cannot be adopted: import directories outside of it")
    if command.take == "new" and os.path.isdir(path) and not os.path.exists(f"{path}/{MARK}"):
        # Half a mark is of an agent beside us, which makes the same volume.
        there = [name for name in os.listdir(path) if not name.startswith(MARK)]
        if there:
            raise VolumeError(
                "conflict",
                f"{path} contains data that belongs to no volume ({min(there)}"
                f"{' and more' if len(there) > 1 else ''}): write"
                f" `import: [volume/{command.name}]` in environment.yaml to adopt it, or choose"
                " another path",
            )


def _require_kept(command: MakeVolume, path: str) -> None:
    """
    Return when the directory of a volume that was made before is there.

    Raises:
        VolumeError: It is gone, or an empty one without a mark is in its place, such as a mount
            point on which nothing is mounted. Marked anew, it would hide that the data is gone.
    """
    if not os.path.isdir(path):
        seen = "no longer exists"
    elif all(name.startswith(f"{MARK}.") for name in os.listdir(path)):
        seen = "is empty and has no marker file"
    else:
        return
    raise VolumeError(
        "invalid",
        f"{path} {seen}, so the data of volume {command.name} is missing: put it back, or"
        f" start with an empty volume: `fleetform apply --refresh --replace volume/{command.name}`",
    )


def _require_outside(path: str) -> None:
    """
    Return when no volume has the place that a new one is to be made in.

    Raises:
        VolumeError: It would go with that other one's data.
    """
    # What a link leads to counts: that is where the data will be.
    inner = os.path.realpath(path)
    while (outer := os.path.dirname(inner)) != inner:
        if os.path.exists(f"{outer}/{MARK}"):
            mark = read_mark(f"{outer}/{MARK}")
            raise VolumeError(
                "conflict",
                f"{path} is in {outer}, which is volume {mark.get('name', '?')} of environment"
                f" {_owner(mark)}, and would be deleted with it: choose a path outside of it",
            )
        inner = outer


def require_alone(path: str, so: str) -> None:
    """
    Return when no other volume is in a directory that is to be deleted, moved or adopted.

    Args:
        path: The directory. Links in it are not followed: what they lead to stays where it is.
        so: What cannot be done to it where one does, and what to do instead.

    Raises:
        VolumeError: One does, and whose it is. It may have been made before this was taken in.
    """
    for inner, _, files in os.walk(path):
        if inner != path and MARK in files:
            mark = read_mark(f"{inner}/{MARK}")
            raise VolumeError(
                "conflict",
                f"{inner} is volume {mark.get('name', '?')} of environment {_owner(mark)}, so"
                f" {path} {so}",
            )


def remove(command: RemoveVolume, owner: str) -> None:
    """
    Take the mark away, and with `delete_data` all that lies there; nothing when it is gone.

    Raises:
        VolumeError: It is not ours, or another volume lies in what would be deleted.
        OSError: It cannot be removed; trying again goes on where this ended.
    """
    path = checked(command.path)
    if not os.path.lexists(path):
        return
    if not os.path.exists(f"{path}/{MARK}"):
        if command.delete_data and os.listdir(path):
            raise VolumeError(
                "invalid", f"{path} has no marker file of fleetform; its data was not changed"
            )
        return
    require_owner(path, owner, command.volume_uid)
    with _pinned(path) as place:
        if command.delete_data:
            require_alone(path, f"cannot be removed: {KEEP_IT}")
            empty(place)
        os.unlink(f"{place}/{MARK}")
    if command.delete_data:
        # A mount point stays, and so does what is new there; it is no longer ours.
        with contextlib.suppress(OSError):
            os.rmdir(path)


@contextlib.contextmanager
def _pinned(path: str) -> Iterator[str]:
    """
    Give the directory with the mark of a path a name that no other process can give to another one.

    An account that may write above it could put a link to /etc in its place while it is emptied.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        place = f"/proc/self/fd/{descriptor}"
        if read_mark(f"{place}/{MARK}") != read_mark(f"{path}/{MARK}"):
            raise VolumeError("conflict", f"{path} was replaced while it was removed: try again")
        yield place
    finally:
        os.close(descriptor)


def _leave_mark(path: str, mark: dict[str, Any]) -> bool:
    """
    Put the mark there unless there is one; returns whether it was put.

    It appears whole: two agents of one machine make the volume of their fleet at the same moment,
    and one that found the other's half of a mark would take the directory for a stranger's.
    """
    text = _text(mark)
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


def write_mark(file_path: str, mark: dict[str, Any]) -> None:
    """Write a mark down to the disk, in whole, in the place of one that may be there."""
    partial = f"{file_path}.{os.getpid()}"
    _write(partial, _text(mark), "w")
    os.replace(partial, file_path)


def _text(mark: dict[str, Any]) -> str:
    return json.dumps(mark, indent=2) + "\n"


def _write(path: str, text: str, mode: str) -> bool:
    """Write it down to the disk; False where it is there and `mode` is `x`."""
    try:
        with open(path, mode, encoding="utf-8", opener=_open_no_link) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        return False
    return True


def _open_no_link(path: str, flags: int) -> int:
    """Open a file in a directory that may be another account's: its links could lead anywhere."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def empty(path: str) -> None:
    """Remove all but the mark, which goes last: an interrupted removal stays ours."""
    for name in os.listdir(path):
        if name == MARK:
            continue
        inner = f"{path}/{name}"
        if os.path.isdir(inner) and not os.path.islink(inner):
            shutil.rmtree(inner)
        else:
            os.unlink(inner)


def require_owner(path: str, owner: str, volume_uid: str) -> None:
    """
    Return when the directory is this volume's.

    Raises:
        VolumeError: It is another's, who is named, or bears no mark.
    """
    mark = read_mark(f"{path}/{MARK}")
    if not os.path.exists(f"{path}/{MARK}"):
        raise VolumeError(
            "invalid", f"{path} has no marker file of fleetform; its data was not changed"
        )
    if mark.get("environment_uid") != owner:
        raise VolumeError(
            "conflict",
            f"{path} belongs to volume {mark.get('name', '?')} of environment "
            f"{_owner(mark)}: choose another path, or remove it there",
        )
    if mark.get("volume_uid") != volume_uid:
        raise VolumeError(
            "conflict",
            f"{path} belongs to volume {mark.get('name', '?')} ({mark.get('volume_uid')}) of this "
            f"environment: two volumes cannot share a directory. If that volume was released,"
            f" `import:` in environment.yaml adopts its data",
        )


def _owner(mark: dict[str, Any]) -> str:
    """Name whose a directory is: `lab (0b2f6a0e…) since 2026-11-21T10:26:30Z`."""
    uid = short_uid(str(mark.get("environment_uid", "unknown")))
    name = mark.get("environment")
    owner = f"{name} ({uid})" if name else uid
    since_ms = mark.get("made_at_ms")
    if not isinstance(since_ms, int) or not since_ms:
        return owner
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since_ms // 1000))
    return f"{owner} since {since}"


def read_mark(file_path: str) -> dict[str, Any]:
    """Return what a mark says; empty where there is none, or none that can be read."""
    try:
        with open(file_path, encoding="utf-8", opener=_open_no_link) as file:
            mark = json.load(file)
    except (OSError, ValueError):
        return {}
    return mark if isinstance(mark, dict) else {}


def checked(path: str) -> str:
    normal = os.path.normpath(path)
    if not os.path.isabs(path) or normal == "/":
        raise VolumeError("invalid", f"{path!r} is not an absolute path of a directory")
    return normal
