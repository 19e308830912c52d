"""
A number that each process of a job carries and cannot drop: its hard limit RLIMIT_RTTIME.

A process can leave its session, its parent and its directory and clear its environment. When its
supervisor and the spawner are killed then, nothing of that leads back to the job. A hard resource
limit is inherited through fork(2) and execve(2), and without privileges it can only be lowered
(setrlimit(2)); /proc shows it of each process. RLIMIT_RTTIME counts microseconds that a process
with a real-time schedule runs without a pause: 36 000 years of them limit nothing.

A job may lower its own. Its processes are not found by the number then, but no other process of
this host has a finite limit without a reason, and what has one is named as a suspect.
"""

from __future__ import annotations

import os
import re
import resource

UNTAGGED = 0
"""Stands for the tag of a job whose processes carry none."""

_MOST = 1 << 62

_LEAST_BASE = 1 << 40
"""Below it two jobs might get one number, and a real-time program would meet its limit in days."""

_LINE = re.compile(rb"^Max realtime timeout +\S+ +(\d+|unlimited)", re.MULTILINE)


def base() -> int:
    """
    Return what the tags of this process's descendants are counted from; 0: they can have none.

    An agent that runs within a job of another one has that job's tag as its limit, and its own
    jobs get lower numbers.
    """
    try:
        read(os.getpid())
    except (OSError, ValueError):
        return 0  # A kernel whose /proc does not show it.
    _, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    power = 1 << max(most.bit_length() - 2, 0)
    return power if power >= _LEAST_BASE else 0


def of_job(job_uid: str, tag_base: int) -> int:
    """Return a job's tag: the same in each life of the agent, another for each job."""
    if not tag_base:
        return UNTAGGED
    # Below twice the base. Without a hash: its library would be mapped into each supervisor.
    return tag_base + int.from_bytes(job_uid.encode(), "big") % (tag_base - 1)


def base_of(tag: int) -> int:
    """Return the base that a tag was counted from."""
    return 1 << (tag.bit_length() - 1)


def is_tag(limit: int) -> bool:
    """Tell a tag from a limit that a system sets, such as 200 ms for sound servers."""
    return limit >= _LEAST_BASE


def put_on(tag: int) -> None:
    """Tag this process and all that it starts from now on."""
    if tag != UNTAGGED:
        resource.setrlimit(resource.RLIMIT_RTTIME, (tag, tag))


def read(pid: int) -> int:
    """
    Return the limit of a process, `UNTAGGED` where it has none.

    Raises:
        OSError: The process is gone.
        ValueError: The kernel does not show this limit.
    """
    descriptor = os.open(f"/proc/{pid}/limits", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = _LINE.search(os.read(descriptor, 1 << 13))
    finally:
        os.close(descriptor)
    if found is None:
        raise ValueError(f"/proc/{pid}/limits has no line for RLIMIT_RTTIME")
    return UNTAGGED if found[1] == b"unlimited" else int(found[1])
