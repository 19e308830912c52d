"""
Measure what a host has for jobs: CPU, memory, disk and addresses.

Knows no message of the protocol, since a plan measures this machine too and loads no agent for it.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from typing import NamedTuple

from fleetform.agents.host import cgroups


def cpu_millicores() -> int:
    """
    Return how much CPU there is for jobs: the least of affinity and quotas, at least one millicore.

    Not what the machine has but what this process may use: the quota of its control group is
    what a container or a slice gives.
    """
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
    place = cgroups.find("cgroup2", "")
    if place is None:
        return None
    try:
        return parse_cpu_max(cgroups.read(f"{place.path}/cpu.max"))
    except (OSError, ValueError):
        return None  # The root group has no such file.


def _quota1() -> int | None:
    place = cgroups.find("cgroup", "cpu")
    if place is None:
        return None
    quota = cgroups.read_number(f"{place.path}/cpu.cfs_quota_us")
    period = cgroups.read_number(f"{place.path}/cpu.cfs_period_us")
    if quota is None or period is None or quota < 0:
        return None
    return quota * 1000 // period


class Memory(NamedTuple):
    """In bytes; `free` is what could be had without swapping."""

    total: int
    free: int


def measure_memory() -> Memory:
    """Return the machine's memory, or the limit of the agent's control group where that is less."""
    with open("/proc/meminfo", encoding="ascii") as file:
        found = parse_meminfo(file.read())
    total = min([found.total, *_limits()])
    return Memory(total, min(found.free, total))


def parse_meminfo(text: str) -> Memory:
    """
    Read /proc/meminfo, whose `kB` are 1024 bytes.

    Raises:
        KeyError: It says no total, which every kernel does.
    """
    lines = (line.split() for line in text.splitlines())
    numbers = {words[0]: int(words[1]) * 1024 for words in lines if len(words) > 1}
    # MemAvailable is missing before Linux 3.14 only.
    return Memory(numbers["MemTotal:"], numbers.get("MemAvailable:", numbers["MemFree:"]))


def _limits() -> list[int]:
    candidates = []
    for kind, controller, name in (
        ("cgroup2", "", "memory.max"),
        ("cgroup", "memory", "memory.limit_in_bytes"),
    ):
        place = cgroups.find(kind, controller)
        number = None if place is None else cgroups.read_number(f"{place.path}/{name}")
        if number is not None:
            candidates.append(number)
    return candidates


class Disk(NamedTuple):
    """In bytes; `free` is what an ordinary user may take."""

    total: int
    free: int


def measure_disk(path: str) -> Disk:
    """Return how much room the file system of `path` has."""
    found = os.statvfs(path)
    return Disk(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


_SIOCGIFADDR = 0x8915
"""linux/sockios.h. The request and the answer are a `struct ifreq`: name, then sockaddr_in."""


def addresses() -> tuple[str, ...]:
    """
    Return the IPv4 address of each interface in the kernel's order, without loopback.

    Other hosts may reach this one under them: they are what the ranks of a gang are told.
    """
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # It has no address.
            found.append(socket.inet_ntoa(answer[20:24]))
    return tuple(a for a in dict.fromkeys(found) if not a.startswith("127."))
