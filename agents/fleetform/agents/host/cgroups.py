"""
Where this process lies in the cgroup hierarchies, and a limit of one job's memory in each version.

Both versions are directories with small files; what differs is the names.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import NamedTuple

_CLEAR_ROUNDS = 100
_CLEAR_SECONDS = 0.01
"""A killed process leaves its group within milliseconds, unless it cannot die at all."""


class Place(NamedTuple):
    """Where a hierarchy is mounted, and this process's group below it."""

    mountpoint: str
    group: str

    @property
    def path(self) -> str:
        return self.mountpoint + self.group.rstrip("/")


def parse_mountpoint(mountinfo: str, kind: str, controller: str) -> tuple[str, str] | None:
    """
    Find a hierarchy in /proc/self/mountinfo: its root within cgroupfs, and where that shows.

    `kind` is `cgroup` or `cgroup2`; `controller` must be among the options of the former.
    """
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, tail = left.split(" "), right.split(" ")
        if len(fields) > 4 and len(tail) > 2 and tail[0] == kind:
            if kind == "cgroup" and controller not in tail[2].split(","):
                continue
            return fields[3], fields[4]
    return None


def parse_group(cgroup: str, controller: str) -> str | None:
    """Find this process's group in /proc/self/cgroup; an empty controller is cgroup 2's."""
    for line in cgroup.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "" == controller or (controller and controller in controllers.split(",")):
            return group
    return None


def find(kind: str, controller: str) -> Place | None:
    """Say where this process is; None where there is no such hierarchy."""
    try:
        mounted = parse_mountpoint(_text("/proc/self/mountinfo"), kind, controller)
        group = parse_group(_text("/proc/self/cgroup"), controller)
    except OSError:
        return None
    if mounted is None or group is None:
        return None
    root, mountpoint = mounted
    # In a container the group is named from the host's root, of which only a part is mounted.
    if root != "/" and group.startswith(root):
        group = group[len(root) :] or "/"
    place = Place(mountpoint, group)
    return place if os.path.isdir(place.path) else Place(mountpoint, "/")


JOBS_UNIT_VARIABLE = "FLEETFORM_AGENT_JOBS_UNIT"
"""
Names the unit of systemd that has the jobs: it is next to the agent's own, and its group is delegated.

`providers.host_service` writes both units. The agent's unit can then be stopped and started, and
nothing of the jobs is in it.
"""

_SPAWNER_GROUP = "spawner"


def jobs_folder() -> str | None:
    """Return the group of the unit that has the jobs; None where this agent has none."""
    unit = os.environ.get(JOBS_UNIT_VARIABLE, "")
    place = find("cgroup2", "")
    if not unit or place is None:
        return None
    # The agent is in its own unit, and what the spawner started is in a group of the other one.
    for path in (os.path.dirname(place.path), os.path.dirname(os.path.dirname(place.path))):
        if os.path.isdir(f"{path}/{unit}"):
            return f"{path}/{unit}"
    return None


def enter_jobs_folder() -> None:
    """Move this process, and what it starts from now on, to the unit of the jobs where there is one."""
    folder = jobs_folder()
    if folder is None:
        return
    # Not in the folder itself: a group that gives controllers to others has no processes.
    group = f"{folder}/{_SPAWNER_GROUP}"
    os.makedirs(group, mode=0o755, exist_ok=True)
    write(f"{group}/cgroup.procs", str(os.getpid()))


def read(path: str) -> str:
    return _text(path)


def read_number(path: str) -> int | None:
    """Read one number; None where the file is missing or says `max`."""
    try:
        return int(_text(path))
    except (OSError, ValueError):
        return None


def read_counter(path: str, name: str) -> int:
    """Read one of the lines `name number`; 0 where it is missing."""
    try:
        lines = _text(path).splitlines()
    except OSError:
        return 0
    for line in lines:
        key, _, value = line.partition(" ")
        if key == name and value.isdigit():
            return int(value)
    return 0


def write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def remove(path: str) -> None:
    """Remove a group with those that the job made below it; left where one is still in use."""
    for directory, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(directory)
        except OSError:
            continue


def clear(path: str) -> None:
    """Kill all in a group and below until it can be removed; nothing where there is none."""
    for _ in range(_CLEAR_ROUNDS):
        if not os.path.isdir(path):
            return
        for directory, _, _ in os.walk(path):
            try:
                pids = [int(pid) for pid in _text(f"{directory}/cgroup.procs").split()]
            except OSError:
                continue
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        remove(path)
        time.sleep(_CLEAR_SECONDS)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def is_cgroup1_usable() -> bool:
    """Try it: writable is not what the mode bits say in a container."""
    try:
        Cgroup1(f"probe-{os.getpid()}", 1 << 30).close()
    except OSError:
        return False
    return True


class Cgroup1:
    """
    One group below the agent's own, under the `memory` controller of cgroup 1; fills `limits.Limit`.

    Names and meanings: Documentation/admin-guide/cgroup-v1/memory.rst. The kernel kills one
    process at a time there, not the group; which one stays its choice.
    """

    interval_ms: int | None = None

    def __init__(self, job_uid: str, memory_bytes: int) -> None:
        place = find("cgroup", "memory")
        if place is None:
            raise FileNotFoundError("no cgroup 1 hierarchy with the memory controller")
        self._parent = place.path
        self._path = f"{place.path}/fleetform-{job_uid}"
        os.mkdir(self._path, 0o755)
        try:
            write(f"{self._path}/memory.limit_in_bytes", str(memory_bytes))
        except OSError:
            remove(self._path)
            raise
        self._forbid_swap(memory_bytes)

    def enter(self) -> None:
        write(f"{self._path}/cgroup.procs", str(os.getpid()))

    def leave(self) -> None:
        write(f"{self._parent}/cgroup.procs", str(os.getpid()))

    def exceeded(self) -> bool:
        return False

    def killed(self) -> bool:
        return read_counter(f"{self._path}/memory.oom_control", "oom_kill") > 0

    def peak_bytes(self) -> int | None:
        return read_number(f"{self._path}/memory.max_usage_in_bytes")

    def close(self) -> None:
        remove(self._path)

    def _forbid_swap(self, memory_bytes: int) -> None:
        # Swap is not accounted on every host; then it only makes the job slow.
        with contextlib.suppress(OSError):
            write(f"{self._path}/memory.memsw.limit_in_bytes", str(memory_bytes))


def is_cgroup2_usable() -> bool:
    """Try it: which part of the tree is delegated shows in no other way."""
    try:
        Cgroup2(f"probe-{os.getpid()}", 1 << 30).close()
    except OSError:
        return False
    return True


class Cgroup2:
    """
    One group of cgroup 2 below the agent's own or next to it; fills `limits.Limit`.

    Names and meanings: Documentation/admin-guide/cgroup-v2.rst. A group with processes of its own
    cannot give controllers to groups below it ("no internal processes"), so the job's group lies
    beside the agent's where it cannot lie below.
    """

    interval_ms: int | None = None

    def __init__(self, job_uid: str, memory_bytes: int) -> None:
        place = find("cgroup2", "")
        if place is None:
            raise FileNotFoundError("no cgroup 2 hierarchy")
        self._home = place.path
        self._path = f"{_parent_of_jobs(place)}/fleetform-{job_uid}"
        os.mkdir(self._path, 0o755)
        try:
            write(f"{self._path}/memory.max", str(memory_bytes))
        except OSError:
            remove(self._path)
            raise
        self._set_where_known("memory.swap.max", "0")
        # The whole job, not one process of it: a half-dead job hangs more often than it ends.
        self._set_where_known("memory.oom.group", "1")

    def enter(self) -> None:
        write(f"{self._path}/cgroup.procs", str(os.getpid()))

    def leave(self) -> None:
        write(f"{self._home}/cgroup.procs", str(os.getpid()))

    def exceeded(self) -> bool:
        return False

    def killed(self) -> bool:
        return read_counter(f"{self._path}/memory.events", "oom_kill") > 0

    def peak_bytes(self) -> int | None:
        return read_number(f"{self._path}/memory.peak")

    def close(self) -> None:
        remove(self._path)

    def _set_where_known(self, name: str, value: str) -> None:
        # Missing in kernels before 4.19, or without swap accounting.
        with contextlib.suppress(OSError):
            write(f"{self._path}/{name}", value)


def _parent_of_jobs(place: Place) -> str:
    candidates = [place.path]
    if place.group.strip("/"):
        candidates.append(os.path.dirname(place.path))
    for path in candidates:
        if "memory" in read(f"{path}/cgroup.subtree_control").split():
            return path
    raise PermissionError(f"no group at or above {place.path} gives memory to groups below it")
