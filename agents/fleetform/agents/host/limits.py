"""
How a job's memory is limited, best way first: cgroup 2, cgroup 1, counting.

The names are those of `HostReport.limits`. A host offers what was tried and worked there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol

from fleetform.agents.host import cgroups, processes

KINDS = ("cgroup2", "cgroup1", "poll")

_INTERVAL_MS = 100
"""A process fills about 1 GB in that time; more often, looking itself costs a share of a CPU."""


class Limit(Protocol):
    """
    The limit on one job's memory.

    Attributes:
        interval_ms: How often `exceeded` wants to be asked; None: never.

    `enter` puts this process under the limit, so that what it starts begins there; `leave` takes
    it out again, since it must outlive the job. `exceeded` tells whether the job has to be killed
    now, `killed` whether something of it has been. `close` removes what was made, after the last
    process of the job is gone.
    """

    interval_ms: int | None

    def enter(self) -> None: ...
    def leave(self) -> None: ...
    def exceeded(self) -> bool: ...
    def killed(self) -> bool: ...
    def peak_bytes(self) -> int | None: ...
    def close(self) -> None: ...


CHOICE_VARIABLE = "FLEETFORM_AGENT_LIMITS"
"""Names the ways to be offered, separated by commas; for hosts where one misbehaves."""


def available() -> tuple[str, ...]:
    """Name the ways that work on this host, best first; made and removed once to see."""
    wanted = os.environ.get(CHOICE_VARIABLE, ",".join(KINDS)).split(",")
    tried = {"cgroup2": cgroups.is_cgroup2_usable, "cgroup1": cgroups.is_cgroup1_usable}
    found = [kind for kind, usable in tried.items() if kind in wanted and usable()]
    return (*found, "poll")


def impose(kind: str, job_uid: str, memory_bytes: int) -> Limit:
    """
    Make the limit of one job.

    Raises:
        OSError: The host has withdrawn what it offered.
    """
    if kind == "cgroup2":
        return cgroups.Cgroup2(job_uid, memory_bytes)
    if kind == "cgroup1":
        return cgroups.Cgroup1(job_uid, memory_bytes)
    assert kind == "poll", kind
    return Count(memory_bytes)


def discard(job_uid: str) -> None:
    """Kill what is left under a limit whose supervisor is dead, and remove what it had made."""
    for path in _places(job_uid):
        cgroups.clear(path)


def groups_of(job_uid: str) -> list[str]:
    """Return the cgroups that a job has now, as folders; none where its limit needs none."""
    return [path for path in _places(job_uid) if os.path.isdir(path)]


def _places(job_uid: str) -> Iterator[str]:
    for kind, controller in (("cgroup2", ""), ("cgroup", "memory")):
        place = cgroups.find(kind, controller)
        if place is not None:
            parents = dict.fromkeys((place.path, os.path.dirname(place.path)))
            # The agent asks too, and its own unit has no jobs.
            if kind == "cgroup2" and (folder := cgroups.jobs_folder()) is not None:
                parents.setdefault(folder)
            for parent in parents:
                yield f"{parent}/fleetform-{job_uid}"


class Count:
    """
    Resident memory of all descendants of this process, for hosts that delegate no control group.

    Between two looks a job may exceed its limit, so this bounds a leak and not a burst.
    """

    def __init__(self, memory_bytes: int) -> None:
        self.interval_ms: int | None = _INTERVAL_MS
        self._memory_bytes = memory_bytes
        self._peak_bytes = 0
        self._killed = False

    def enter(self) -> None:
        """Nothing to enter: descent is what counts."""

    def leave(self) -> None:
        """Nothing to leave."""

    def exceeded(self) -> bool:
        pids = processes.descendants(os.getpid())
        used = processes.resident_bytes(pids)
        if used > self._memory_bytes:
            # Workers forked from one big parent share its pages: count those once before killing.
            used = processes.proportional_bytes(pids)
        self._peak_bytes = max(self._peak_bytes, used)
        self._killed = self._killed or used > self._memory_bytes
        return used > self._memory_bytes

    def killed(self) -> bool:
        return self._killed

    def peak_bytes(self) -> int | None:
        return self._peak_bytes or None

    def close(self) -> None:
        """Nothing was made."""
