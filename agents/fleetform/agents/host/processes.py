"""
Processes: those below another, what they catch, how they are, and signals to them.

Read from /proc. All of it is for the slow paths, stopping and clearing up; a job that ends by
itself and leaves nothing behind is never looked at here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator


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


def parent(pid: int) -> int:
    """Return its parent's pid; raises OSError where it is gone."""
    return parse_parent(_read(f"/proc/{pid}/stat"))


def state(pid: int) -> str:
    """Return its state as one letter of proc(5): `T` is stopped; empty where it is gone."""
    try:
        stat = _read(f"/proc/{pid}/stat")
    except OSError:
        return ""
    return stat[stat.rindex(b")") + 1 :].split()[0].decode("ascii")


def is_over(pid: int) -> bool:
    """Tell whether it executes nothing any more: it is gone, or only its status is left."""
    return state(pid) in {"", "Z", "X"}


def age_seconds(pid: int) -> float:
    """Return how long ago it was started; raises OSError where it is gone."""
    stat = _read(f"/proc/{pid}/stat")
    began = int(stat[stat.rindex(b")") + 1 :].split()[19]) / _TICKS_PER_SECOND
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began


def folder(pid: int) -> str:
    """Return its working directory, with ` (deleted)` behind one that is gone; raises OSError."""
    return os.readlink(f"/proc/{pid}/cwd")


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


def parse_pending(status: bytes) -> int:
    """Read the mask of pending signals, of the thread and of the process, from /proc/PID/status."""
    pending = 0
    for line in status.splitlines():
        if line.startswith((b"SigPnd:", b"ShdPnd:")):
            pending |= int(line[7:], 16)
    return pending


def has_pending(pid: int) -> bool:
    """Tell whether a signal waits for this process; not of one that is gone."""
    try:
        return parse_pending(_read(f"/proc/{pid}/status")) != 0
    except OSError:
        return False


def send(pids: Iterable[int], signal: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal)
        except OSError:
            continue  # Gone, which is what was wanted, or not ours to touch.


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


_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
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
