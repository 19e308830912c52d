"""
A job's memory limited by the `memory` controller of cgroup 1.

Names and meanings: Documentation/admin-guide/cgroup-v1/memory.rst. The kernel kills one
process at a time there, not the group; which one stays its choice.
"""

from __future__ import annotations

import contextlib
import os

from fleetform.agents.host.limits import groups


def usable() -> bool:
    """Try it: writable is not what the mode bits say in a container."""
    try:
        Group(f"probe-{os.getpid()}", 1 << 30).close()
    except OSError:
        return False
    return True


class Group:
    """One group below the agent's own; fills `limits.Limit`."""

    interval_ms: int | None = None

    def __init__(self, job_uid: str, memory_bytes: int) -> None:
        place = groups.find("cgroup", "memory")
        if place is None:
            raise FileNotFoundError("no cgroup 1 hierarchy with the memory controller")
        self._parent = place.path
        self._path = f"{place.path}/fleetform-{job_uid}"
        os.mkdir(self._path, 0o755)
        try:
            groups.write(f"{self._path}/memory.limit_in_bytes", str(memory_bytes))
        except OSError:
            groups.remove(self._path)
            raise
        self._forbid_swap(memory_bytes)

    def enter(self) -> None:
        groups.write(f"{self._path}/cgroup.procs", str(os.getpid()))

    def leave(self) -> None:
        groups.write(f"{self._parent}/cgroup.procs", str(os.getpid()))

    def exceeded(self) -> bool:
        return False

    def killed(self) -> bool:
        return groups.read_counter(f"{self._path}/memory.oom_control", "oom_kill") > 0

    def peak_bytes(self) -> int | None:
        return groups.read_number(f"{self._path}/memory.max_usage_in_bytes")

    def close(self) -> None:
        groups.remove(self._path)

    def _forbid_swap(self, memory_bytes: int) -> None:
        # Swap is not accounted on every host; then it only makes the job slow.
        with contextlib.suppress(OSError):
            groups.write(f"{self._path}/memory.memsw.limit_in_bytes", str(memory_bytes))
