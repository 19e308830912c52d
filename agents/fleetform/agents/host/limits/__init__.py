"""
How a job's memory is limited, best way first: cgroup 2, cgroup 1, counting.

The names are those of `HostReport.limits`. A host offers what was tried and worked there.
"""

from __future__ import annotations

import os
from typing import Protocol

from fleetform.agents.host.limits import cgroup1, cgroup2, groups, poll

KINDS = ("cgroup2", "cgroup1", "poll")


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
    tried = {"cgroup2": cgroup2.usable, "cgroup1": cgroup1.usable}
    found = [kind for kind, usable in tried.items() if kind in wanted and usable()]
    return (*found, "poll")


def impose(kind: str, job_uid: str, memory_bytes: int) -> Limit:
    """
    Make the limit of one job.

    Raises:
        OSError: The host has withdrawn what it offered.
    """
    if kind == "cgroup2":
        return cgroup2.Group(job_uid, memory_bytes)
    if kind == "cgroup1":
        return cgroup1.Group(job_uid, memory_bytes)
    assert kind == "poll", kind
    return poll.Count(memory_bytes)


def discard(job_uid: str) -> None:
    """Kill what is left under a limit whose supervisor is dead, and remove what it had made."""
    for kind, controller in (("cgroup2", ""), ("cgroup", "memory")):
        place = groups.find(kind, controller)
        if place is not None:
            for parent in dict.fromkeys((place.path, os.path.dirname(place.path))):
                groups.clear(f"{parent}/fleetform-{job_uid}")
