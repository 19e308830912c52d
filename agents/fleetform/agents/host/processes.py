"""
Processes of a job: its descendants, what they catch, and those nobody watches any more.

Read from /proc. All of it is for the slow paths, stopping and clearing up; a job that ends by
itself and leaves nothing behind is never looked at here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterable, Iterator

from fleetform.agents.host import layout

_SWEEP_SECONDS = 0.01
"""Between two rounds of killing; a process needs a moment to die."""


def descendants(pid: int) -> list[int]:
    """
    Return all processes below `pid`, parents first, without `pid`.

    A snapshot that may miss what was forked meanwhile: whoever kills by it asks again.
    """
    try:
        found = [pid]
        for parent in found:
            found.extend(_children(parent))
    except FileNotFoundError:
        # A kernel without CONFIG_PROC_CHILDREN.
        return _descendants_by_scan(pid)
    return found[1:]


def children(pid: int) -> list[int]:
    """Return the processes whose parent is `pid`, as of this moment."""
    try:
        return _children(pid)
    except FileNotFoundError:
        return _by_parent().get(pid, [])


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            found.extend(map(int, _read(f"/proc/{pid}/task/{thread}/children").split()))
        except FileNotFoundError:
            if os.path.exists(f"/proc/{pid}/task/{thread}"):
                raise
        except OSError:
            continue
    return found


def _descendants_by_scan(pid: int) -> list[int]:
    below = _by_parent()
    found = [pid]
    for parent in found:
        found.extend(below.get(parent, ()))
    return found[1:]


def _by_parent() -> dict[int, list[int]]:
    below: dict[int, list[int]] = {}
    for number in all_pids():
        try:
            below.setdefault(parse_parent(_read(f"/proc/{number}/stat")), []).append(number)
        except (OSError, ValueError):
            continue
    return below


def all_pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def command_line(pid: int) -> list[bytes]:
    """Return its arguments, the program's name first; none of what is dead or the kernel's own."""
    return _read(f"/proc/{pid}/cmdline").split(b"\0")


def environment(pid: int) -> list[bytes]:
    """Return the variables it was started with, each as `NAME=value`."""
    return _read(f"/proc/{pid}/environ").split(b"\0")


def parse_parent(stat: bytes) -> int:
    """Read the parent's pid from /proc/PID/stat; a name in it may hold spaces and brackets."""
    return int(stat[stat.rindex(b")") + 1 :].split()[1])


def parse_caught(status: bytes) -> int:
    """Read the mask of caught signals from /proc/PID/status: bit n-1 is signal n."""
    for line in status.splitlines():
        if line.startswith(b"SigCgt:"):
            return int(line[7:], 16)
    return 0


def catching(pids: Iterable[int], signal: int) -> list[int]:
    """Keep those that have a handler for the signal: it would kill the others."""
    bit = 1 << (signal - 1)
    found = []
    for pid in pids:
        try:
            caught = parse_caught(_read(f"/proc/{pid}/status"))
        except OSError:
            continue
        if caught & bit:
            found.append(pid)
    return found


def send(pids: Iterable[int], signal: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal)
        except OSError:
            continue  # Gone, which is what was wanted, or not ours to touch.


def left_behind(job_uid: str, job_dir: str) -> list[int]:
    """
    Find processes of a job whose supervisor is dead, so that they have other parents now.

    By the job's uid in the environment they started with; and, of those that have cleared it,
    orphans that are at work in the job's directory, with all below them. Whoever only looks
    around in there has a terminal or another parent that lives.
    """
    tag = f"{layout.JOB_UID_VARIABLE}={job_uid}".encode()
    inside = os.path.realpath(job_dir)
    own = os.getpid()
    # Where an orphan goes: to the first process, or to whoever has taken this one in.
    reapers = {1, os.getppid()}
    found: dict[int, None] = {}
    for pid in all_pids():
        try:
            environment = _read(f"/proc/{pid}/environ")
            if pid == own:
                continue
            if tag in environment and tag in environment.split(b"\0"):
                found[pid] = None
            elif _OTHER_TAG not in environment and _is_orphan_in(pid, inside, reapers):
                found.update(dict.fromkeys([pid, *descendants(pid)]))
        except (OSError, ValueError):
            continue
    return list(found)


_OTHER_TAG = f"{layout.JOB_UID_VARIABLE}=".encode()


def _is_orphan_in(pid: int, directory: str, reapers: Container[int]) -> bool:
    here = os.readlink(f"/proc/{pid}/cwd").removesuffix(_DELETED)
    if here != directory and not here.startswith(f"{directory}/"):
        return False
    return parse_parent(_read(f"/proc/{pid}/stat")) in reapers


_DELETED = " (deleted)"
"""What proc(5) puts behind a directory that is gone."""


def kill_left_behind(
    job_uid: str, job_dir: str, signal: int, *, patience_seconds: float
) -> list[int]:
    """Kill until none is left or patience ends; return those that would not die."""
    deadline = time.monotonic() + patience_seconds
    while True:
        left = left_behind(job_uid, job_dir)
        if not left or time.monotonic() > deadline:
            return left
        send(left, signal)
        time.sleep(_SWEEP_SECONDS)


def resident_bytes(pids: Iterable[int]) -> int:
    """Add up resident memory. Pages that processes share count for each of them."""
    pages = 0
    for pid in pids:
        try:
            pages += int(_read(f"/proc/{pid}/statm").split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return pages * _PAGE_BYTES


def proportional_bytes(pids: Iterable[int]) -> int:
    """Add up memory with shared pages counted once; slow, since the kernel walks all pages."""
    total = 0
    for pid in pids:
        try:
            total += parse_proportional(_read(f"/proc/{pid}/smaps_rollup"))
        except OSError:
            # Not readable or an old kernel: what is resident is the next best.
            total += resident_bytes([pid])
    return total


def parse_proportional(rollup: bytes) -> int:
    """Read `Pss` from /proc/PID/smaps_rollup, in bytes."""
    for line in rollup.splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, 1 << 16)
        # Most files of /proc come whole; an environment may be longer.
        while data and len(data) % (1 << 12) == 0:
            more = os.read(descriptor, 1 << 16)
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)
