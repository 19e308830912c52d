"""
A job's memory limited by cgroup 2.

Names and meanings: Documentation/admin-guide/cgroup-v2.rst. A group with processes of its own
cannot give controllers to groups below it ("no internal processes"), so the job's group lies
beside the agent's where it cannot lie below.
"""

from __future__ import annotations

import contextlib
import os

from fleetform.agents.host.limits import groups


def usable() -> bool:
    """Try it: which part of the tree is delegated shows in no other way."""
    try:
        Group(f"probe-{os.getpid()}", 1 << 30).close()
    except OSError:
        return False
    return True


class Group:
    """One group below or beside the agent's own; fills `limits.Limit`."""

    interval_ms: int | None = None

    def __init__(self, job_uid: str, memory_bytes: int) -> None:
        place = groups.find("cgroup2", "")
        if place is None:
            raise FileNotFoundError("no cgroup 2 hierarchy")
        self._home = place.path
        self._path = f"{_parent_of_jobs(place)}/fleetform-{job_uid}"
        os.mkdir(self._path, 0o755)
        try:
            groups.write(f"{self._path}/memory.max", str(memory_bytes))
        except OSError:
            groups.remove(self._path)
            raise
        self._set_where_known("memory.swap.max", "0")
        # The whole job, not one process of it: a half-dead job hangs more often than it ends.
        self._set_where_known("memory.oom.group", "1")

    def enter(self) -> None:
        groups.write(f"{self._path}/cgroup.procs", str(os.getpid()))

    def leave(self) -> None:
        groups.write(f"{self._home}/cgroup.procs", str(os.getpid()))

    def exceeded(self) -> bool:
        return False

    def killed(self) -> bool:
        return groups.read_counter(f"{self._path}/memory.events", "oom_kill") > 0

    def peak_bytes(self) -> int | None:
        return groups.read_number(f"{self._path}/memory.peak")

    def close(self) -> None:
        groups.remove(self._path)

    def _set_where_known(self, name: str, value: str) -> None:
        # Missing in kernels before 4.19, or without swap accounting.
        with contextlib.suppress(OSError):
            groups.write(f"{self._path}/{name}", value)


def _parent_of_jobs(place: groups.Place) -> str:
    candidates = [place.path]
    if place.group.strip("/"):
        candidates.append(os.path.dirname(place.path))
    for path in candidates:
        if "memory" in groups.read(f"{path}/cgroup.subtree_control").split():
            return path
    raise PermissionError(f"no group at or above {place.path} gives memory to groups below it")
