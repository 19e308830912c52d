"""
How much CPU there is for jobs, and how busy it is.

Not what the machine has but what this process may use: its affinity, and the quota of its
control group, which is what a container or a slice gives.
"""

from __future__ import annotations

import os

from fleetform.agents.host.limits import groups


def millicores() -> int:
    """Return the least of affinity and quotas, at least one millicore."""
    affinity = len(os.sched_getaffinity(0)) * 1000
    quotas = [quota for quota in (_quota2(), _quota1()) if quota is not None]
    return max(min([affinity, *quotas]), 1)


def load_1m_milli() -> int:
    return round(os.getloadavg()[0] * 1000)


def parse_cpu_max(text: str) -> int | None:
    """Read cgroup 2's cpu.max, `QUOTA PERIOD` in microseconds; None for `max`."""
    quota, _, period = text.strip().partition(" ")
    return None if quota == "max" else int(quota) * 1000 // int(period)


def _quota2() -> int | None:
    place = groups.find("cgroup2", "")
    if place is None:
        return None
    try:
        return parse_cpu_max(groups.read(f"{place.path}/cpu.max"))
    except (OSError, ValueError):
        return None  # The root group has no such file.


def _quota1() -> int | None:
    place = groups.find("cgroup", "cpu")
    if place is None:
        return None
    quota = groups.read_number(f"{place.path}/cpu.cfs_quota_us")
    period = groups.read_number(f"{place.path}/cpu.cfs_period_us")
    if quota is None or period is None or quota < 0:
        return None
    return quota * 1000 // period
