"""How much memory there is for jobs: the machine's, or the limit of the agent's control group."""

from __future__ import annotations

from typing import NamedTuple

from fleetform.agents.host.limits import groups


class Memory(NamedTuple):
    """In bytes; `free` is what could be had without swapping."""

    total: int
    free: int


def measure() -> Memory:
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
        place = groups.find(kind, controller)
        number = None if place is None else groups.read_number(f"{place.path}/{name}")
        if number is not None:
            candidates.append(number)
    return candidates
