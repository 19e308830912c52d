"""
Refuses a folder of state or cache that another user could change, and closes one that others read.

What lies there is believed and run: the ledger, the agent's archive, sockets that start processes.
So each folder on the way to it is judged as OpenSSH judges the way to its keys (`StrictModes` in
sshd_config(5)): it belongs to this user or to root, and no other user can write to it.
"""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["require_private"]

_FOLDER = 0o700
_FILE = 0o600


def require_private(home: Path, variable: str) -> None:
    """
    Refuse a home that another user could change, and close it to others; it need not exist yet.

    Args:
        home: Absolute.
        variable: The environment variable that chooses another folder.

    Raises:
        Problem: Says which folder, why, and the command that cures it.
    """
    for folder in _way_to(home):
        try:
            seen = folder.stat()
        except OSError:
            # It is not there yet, or cannot be used: its user reports that.
            continue
        why = _weakness(folder, seen, home)
        if why:
            from fleetform.app.problems import Problem

            raise Problem(
                f"{folder} {why}",
                f"run `{_cure(folder, seen)}`, or set {variable} to a folder that only you can write to",
            )
        if folder == home and stat.S_IMODE(seen.st_mode) & 0o077:
            _close(home)


def _way_to(home: Path) -> Iterator[Path]:
    """Yield home and all folders above it, as it is written and where its links lead."""
    known = set()
    for path in (home, home.resolve()):
        for folder in (path, *path.parents):
            if folder not in known:
                known.add(folder)
                yield folder


# -- one folder -----------------------------------------------------------------------------------


def _weakness(folder: Path, seen: os.stat_result, home: Path) -> str:
    """Say why another user could change what lies in `home`, or nothing."""
    me = os.geteuid()
    if folder == home:
        if seen.st_uid != me:
            return (
                f"belongs to {_name(seen.st_uid)}, who could change what fleetform reads and runs"
            )
        if _is_written_by_others(seen):
            return (
                "can be written to by other users, who could change what fleetform reads and runs"
            )
        return ""
    if seen.st_uid not in {0, me} and _is_mapped(seen.st_uid):
        return (
            f"belongs to {_name(seen.st_uid)}, who could put another folder in the place of {home}"
        )
    # In a sticky folder, such as /tmp, only its owner may rename an entry: see `t` in chmod(1).
    if not seen.st_mode & stat.S_ISVTX and _is_written_by_others(seen):
        return (
            f"can be written to by other users, who could put another folder in the place of {home}"
        )
    return ""


def _cure(folder: Path, seen: os.stat_result) -> str:
    if _is_written_by_others(seen):
        return f"chmod go-w {shlex.quote(str(folder))}"
    return f"chown {_name(os.geteuid())} {shlex.quote(str(folder))}"


def _is_written_by_others(seen: os.stat_result) -> bool:
    if seen.st_mode & stat.S_IWOTH:
        return True
    return bool(seen.st_mode & stat.S_IWGRP) and _has_others(seen.st_gid)


def _has_others(gid: int) -> bool:
    """
    Tell whether a group has members beside this user and root.

    Where each user has a group of their own, umask 002 is usual and gives it all rights.
    """
    import grp

    trusted = {0, os.geteuid()}
    accounts = pwd.getpwall()
    if any(one.pw_gid == gid and one.pw_uid not in trusted for one in accounts):
        return True
    try:
        members = set(grp.getgrgid(gid).gr_mem)
    except KeyError:
        return False
    return bool(members - {one.pw_name for one in accounts if one.pw_uid in trusted})


def _is_mapped(uid: int) -> bool:
    """Tell whether any process here can be this user: in a user namespace all others are 65534."""
    try:
        lines = Path("/proc/self/uid_map").read_text("ascii").splitlines()
    except OSError:
        return True
    ranges = [tuple(map(int, line.split())) for line in lines]
    return any(first <= uid < first + count for first, _, count in ranges)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


# -- what an older version left open --------------------------------------------------------------


def _close(home: Path) -> None:
    """
    Take from others what an older version left them, once: afterwards no other user comes this far.

    Below an agent's folder all was private already, and what lies in volumes is the jobs'.
    """
    home.chmod(_FOLDER)
    for pattern in ("hosts", "hosts/*", "volumes", "volumes/*"):
        for folder in home.glob(pattern):
            folder.chmod(_FOLDER)
    for name in ("agent", "environments", "readings"):
        for place, _, files in os.walk(home / name):
            Path(place).chmod(_FOLDER)
            for path in (Path(place) / file for file in files):
                if not path.is_symlink():
                    path.chmod(_FILE)
