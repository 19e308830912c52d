"""
What is at work for this root in a folder that is this root no more.

A root can be removed, or exchanged for an older copy, while its agent and its jobs go on: they hold
files that nobody finds again. The next agent at this path would know nothing of them and start the
same work a second time, so it looks for them once, before it says hello.

What is in a folder that was removed is ended: how it ends could be written nowhere. What is in one
that was moved away can be gone back to, and a person decides. Afterwards an agent's records are all
there is at work for its root, and that it lacks one is proof that the job is over.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from fleetform.agents.host import layout, processes

_DELETED = " (deleted)"
"""What proc(5) puts behind a directory that is gone."""

_SWEEP_SECONDS = 0.02
"""Between two rounds of killing; a process needs a moment to die."""

_WAIT_SECONDS = 10.0
"""What SIGKILL has not ended by then hangs in the kernel."""


@dataclass(frozen=True)
class Misplaced:
    """
    Processes of this root that are not in it.

    `removed` are in a folder that is gone, with all below them. `moved` are supervisors of jobs, and
    where their directories lie now.
    """

    removed: tuple[int, ...]
    moved: tuple[tuple[int, str], ...]


def find(root: str) -> Misplaced:
    """Look for them in /proc; processes of other users are not visible, and not searched for."""
    here = os.path.realpath(root)
    removed: dict[int, None] = {}
    spared: set[int] = set()
    moved: list[tuple[int, str]] = []
    own = os.getpid()
    for pid in processes.all_pids():
        if pid == own:
            continue
        try:
            place = os.readlink(f"/proc/{pid}/cwd")
            gone = place.endswith(_DELETED) and not os.path.exists(place)
            if is_agent_of(processes.command_line(pid), here):
                if gone and _is_at_work_in(pid, here):
                    spared.update([pid, *processes.descendants(pid)])
                elif gone and _is_in(place.removesuffix(_DELETED), here):
                    removed.update(dict.fromkeys([pid, *processes.descendants(pid)]))
                elif not gone and not _is_in(place, here) and _is_of_a_job(place):
                    moved.append((pid, place))
            elif _is_of_a_lost_job(processes.environment(pid), (root, here)):
                removed[pid] = None
        except OSError:
            continue
    spared.add(own)
    return Misplaced(tuple(pid for pid in removed if pid not in spared), tuple(moved))


def supervisor_of(root: str, job_uid: str) -> int | None:
    """
    Find a job's supervisor by where it is, also where the job has removed its directory.

    The file that has its pid, and its lock, may be gone with that.
    """
    here = os.path.realpath(root)
    directory = f"{here}/{layout.JOBS}/{job_uid}"
    for pid in processes.all_pids():
        try:
            is_there = processes.folder(pid).removesuffix(_DELETED) == directory
            if is_there and is_agent_of(processes.command_line(pid), here):
                return pid
        except OSError:
            continue
    return None


def end_removed(root: str, removed: tuple[int, ...]) -> tuple[int, ...]:
    """Kill what works for a folder that was removed, and what is found of it then; who is left?"""
    deadline = time.monotonic() + _WAIT_SECONDS
    while removed and time.monotonic() < deadline:
        processes.send(removed, signal.SIGKILL)
        time.sleep(_SWEEP_SECONDS)
        removed = find(root).removed
    return removed


def is_agent_of(arguments: list[bytes], root: str) -> bool:
    """
    Tell whether these are an agent's arguments, or those of its spawner and supervisors.

    `root` is a real path; that of the arguments may go by another name.
    """
    if b"daemon" not in arguments or not any(b"fleetform" in one for one in arguments):
        return False
    for number, one in enumerate(arguments):
        value = one.removeprefix(b"--root=")
        if one == b"--root" and number + 1 < len(arguments):
            value = arguments[number + 1]
        elif value == one:
            continue
        path = os.fsdecode(value)
        return os.path.isabs(path) and os.path.realpath(path) == root
    return False


def _is_in(place: str, root: str) -> bool:
    return place == root or place.startswith(f"{root}/")


def _is_at_work_in(pid: int, root: str) -> bool:
    """Tell whether it supervises a job of this very folder that has removed its own directory."""
    try:
        # Behind a removed directory stands the one that it was in.
        return os.path.samestat(os.stat(f"/proc/{pid}/cwd/../.."), os.stat(root))
    except OSError:
        return False


def _is_of_a_job(place: str) -> bool:
    """Tell whether this is the directory of a job that was started."""
    inside = os.path.basename(os.path.dirname(place)) == layout.JOBS
    return inside and os.path.exists(f"{place}/{layout.STARTED}")


def _is_of_a_lost_job(environment: list[bytes], roots: Sequence[str]) -> bool:
    """Tell whether a process has the tag of a job of this root whose directory is gone."""
    tag = f"{layout.JOB_UID_VARIABLE}=".encode()
    uid = next((one.removeprefix(tag) for one in environment if one.startswith(tag)), b"")
    if not uid:
        return False
    places = [os.fsencode(f"{root}/{layout.JOBS}/") + uid for root in roots]
    # Its TMPDIR, if nothing else of it, lies there, or in the folder that goes with the root.
    works = [*places, *(os.fsencode(f"{layout.accounts_folder(root)}/") + uid for root in roots)]
    used = any(work + b"/" in one for work in works for one in environment)
    return used and not any(map(os.path.exists, places))
