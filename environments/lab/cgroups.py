"""
A control group for each host of a lab, in each hierarchy of this machine, of version 1 and 2.

A host sees its own group as the root of the tree: what its agents and jobs make there is the
host's, and goes with it. A hierarchy that this machine does not let us write to is left out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Hierarchy(NamedTuple):
    kind: str
    """`cgroup` or `cgroup2`: the type for mount(8)."""

    options: str
    """The options for mount(8): controllers of version 1, or the name of a hierarchy with none."""

    mountpoint: Path

    parent: Path
    """Where the groups of hosts lie."""


def find_hierarchies() -> list[Hierarchy]:
    """Return the hierarchies that can be written to, the outermost mount point first."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            mounts.append((kind, set(options.split(",")), Path(left.split(" ")[4])))
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        wanted = "cgroup" if controllers else "cgroup2"
        for kind, present, mountpoint in mounts:
            if kind == wanted and (not controllers or set(controllers.split(",")) <= present):
                # Version 2 gives a controller only where the group above has no processes
                # ("no internal processes"), which of our own group is not so.
                parent = mountpoint / group.strip("/") if controllers else mountpoint
                if os.access(parent, os.W_OK):
                    found.append(Hierarchy(kind, controllers or "rw", mountpoint, parent))
                break
    return sorted(found, key=lambda hierarchy: hierarchy.mountpoint)


def make(groups: Iterable[Path]) -> None:
    for group in groups:
        group.mkdir()
        # In version 1 a group without these takes no process (cgroup-v1/cpusets.rst).
        for file in ("cpuset.cpus", "cpuset.mems"):
            with contextlib.suppress(OSError):
                (group / file).write_text((group.parent / file).read_text())


def join(groups: Iterable[Path], pid: int = 0) -> None:
    """Move a process into these groups; 0 is the caller."""
    for group in groups:
        (group / "cgroup.procs").write_text(str(pid))


def delegate(group: Path, pids: Iterable[int]) -> None:
    """
    Let the groups below one of version 2 have its controllers; they are of the host's own.

    The host's first processes go below it too, since a group that gives has none itself.
    """
    (group / "init").mkdir()
    for pid in pids:
        join([group / "init"], pid)
    for controller in (group / "cgroup.controllers").read_text().split():
        with contextlib.suppress(OSError):
            (group / "cgroup.subtree_control").write_text(f"+{controller}")


def for_processes(groups: Iterable[Path]) -> list[Path]:
    """Return where more processes of a running host go."""
    return [group / "init" if (group / "init").exists() else group for group in groups]


def remove(group: Path) -> bool:
    """Remove a group with those below; false while one still has a process that is ending."""
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return not group.exists()
