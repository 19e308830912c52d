"""
Directories of this machine as they are: what is at a volume's place, and where its mark is found.

Only looks. The agent makes and marks directories (`agents.host.volumes`); here is what they have
become since, which somebody with a shell may have changed.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from fleetform.providers.contract.observed import NeighbourSeen, PlaceSeen, VolumeSeen
from fleetform.providers.local.folder import VOLUME_MARK, read_mark

__all__ = ["find_volumes", "see_around", "see_place"]

_DEPTH_MAX = 3
"""How deep below the folder of volumes marks are looked for: data may be millions of files."""

_FOLDERS_MAX = 10_000
"""Folders looked into at most, for the same reason."""


def see_place(path: str) -> PlaceSeen:
    """See the directory at an absolute path; what cannot be looked into counts as not there."""
    try:
        found = Path(path).stat()
    except OSError:
        return PlaceSeen(path, exists=False, changed_at_ms=_changed_ms(Path(path).parent))
    if not stat.S_ISDIR(found.st_mode):
        changed_at_ms = found.st_ctime_ns // 1_000_000
        return PlaceSeen(path, exists=False, changed_at_ms=changed_at_ms, is_file=True)
    mark = read_mark(Path(path))
    return PlaceSeen(
        path,
        exists=True,
        environment_uid=str(mark.get("environment_uid", "")),
        volume_uid=str(mark.get("volume_uid", "")),
        volume_name=str(mark.get("name", "")),
        environment_name=str(mark.get("environment", "")),
        marked_at_ms=_moment(mark.get("made_at_ms")),
        # Without the device: its number may be another one after a reboot.
        identity=str(found.st_ino),
        owner=_account(found.st_uid),
        mode=f"{stat.S_IMODE(found.st_mode):04o}",
        is_empty=_is_empty(path),
        changed_at_ms=found.st_ctime_ns // 1_000_000,
    )


def see_around(path: str) -> NeighbourSeen | None:
    """
    Find the volume that an absolute path lies in, or else the first within it.

    What cannot be looked into has none, and below it `_FOLDERS_MAX` folders are looked into: data
    may be millions of files.
    """
    # What a link leads to counts: that is where the data is.
    place = Path(os.path.realpath(path))
    for outer in place.parents:
        if (outer / VOLUME_MARK).exists():
            return NeighbourSeen(see_place(str(outer)), is_inside=False)
    for count, (inner, folders, files) in enumerate(os.walk(place)):
        folders.sort()
        if inner != str(place) and VOLUME_MARK in files:
            return NeighbourSeen(see_place(inner), is_inside=True)
        if count >= _FOLDERS_MAX:
            break
    return None


def find_volumes(folder: Path, environment_uid: str) -> Iterator[VolumeSeen]:
    """Yield what bears the environment's mark below `folder`, by path."""
    for path in sorted(_folders(folder)):
        mark = read_mark(Path(path))
        if mark.get("environment_uid") == environment_uid and mark.get("volume_uid"):
            yield VolumeSeen(str(mark["volume_uid"]), str(mark.get("name", "")), path)


def _folders(folder: Path) -> Iterator[str]:
    level = [str(folder)]
    count = 0
    for _ in range(_DEPTH_MAX):
        below: list[str] = []
        for path in level:
            for entry in _entries(path):
                count += 1
                if count > _FOLDERS_MAX:
                    return
                yield entry
                # A volume's own data holds no volume.
                if not Path(entry, VOLUME_MARK).exists():
                    below.append(entry)
        level = below


def _entries(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [one.path for one in entries if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _is_empty(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return all(one.name.startswith(VOLUME_MARK) for one in entries)
    except OSError:
        # Nobody may look: data must be assumed there.
        return False


def _moment(said: object) -> int | None:
    return said if isinstance(said, int) and said > 0 else None


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _changed_ms(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return None
