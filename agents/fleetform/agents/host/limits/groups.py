"""
Where in a cgroup hierarchy this process lies, and the few file operations on a group.

Both versions of cgroups are directories with small files; what differs is the names.
"""

from __future__ import annotations

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
