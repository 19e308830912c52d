"""
What is left of a job whose supervisor is dead: found, ended, and whether that is proven.

Its processes have other parents by now. They are found by their tag (`process_tag`), by the job's
uid in the environment that they started with, and as orphans that are at work in the job's
directory. A job whose processes may still run must not be started a second time, so the end of
one is proven or it is unknown.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from fleetform.agents.host import layout, process_tag, processes

_SWEEP_SECONDS = 0.01
"""Between two rounds of killing; a process needs a moment to die."""

_PAUSE_SECONDS_MAX = 0.5
"""Where there is nothing to kill, and what may be the job's is only waited for."""

_DELETED = " (deleted)"
"""What proc(5) puts behind a directory that is gone."""

_TICK_SECONDS = 0.1
"""The kernel counts the start of a process in ticks, which are at most 10 ms apart."""

_ANY_JOB = f"{layout.JOB_UID_VARIABLE}=".encode()


@dataclass(frozen=True)
class Search:
    """
    One look at all processes of the host.

    `found` are the job's. `suspects` may be: they have a limit as only processes of jobs have,
    and no supervisor above them. `is_complete`: no process ended before it was looked at, which
    may have started another one behind the look's back.
    """

    found: tuple[int, ...]
    suspects: tuple[int, ...]
    is_complete: bool

    @property
    def is_clean(self) -> bool:
        return self.is_complete and not self.found and not self.suspects


def end(job_uid: str, folders: Sequence[str], tag: int, *, wait_seconds: float) -> Search:
    """
    Kill what is left until a search proves that there is nothing, or patience ends.

    Args:
        job_uid: The job.
        folders: Its directory, then those outside of the agent's root where it may work.
        tag: That of its processes.
        wait_seconds: The patience.

    Returns:
        The last search. Suspects of before may be gone: another agent ends its own jobs' too.
    """
    deadline = time.monotonic() + wait_seconds
    pause_seconds = _SWEEP_SECONDS
    while True:
        seen = search(job_uid, folders, tag)
        if seen.is_clean or time.monotonic() > deadline:
            return seen
        processes.send(seen.found, signal.SIGKILL)
        time.sleep(pause_seconds)
        pause_seconds = _SWEEP_SECONDS if seen.found else min(pause_seconds * 2, _PAUSE_SECONDS_MAX)


def search(job_uid: str, folders: Sequence[str], tag: int) -> Search:
    """Look for processes of a job whose supervisor is dead; `tag` may be `UNTAGGED`."""
    job = _Job(job_uid, folders, tag)
    found: dict[int, None] = {}
    suspects: list[int] = []
    is_complete = True
    own = os.getpid()
    for pid in processes.all_pids():
        if pid == own:
            continue
        try:
            limit = process_tag.read(pid)
            if limit != process_tag.UNTAGGED and not processes.is_over(pid):
                if limit == tag:
                    found[pid] = None
                elif not _is_of_another(pid, limit) and job.may_have_started(pid):
                    suspects.append(pid)
        except OSError:
            is_complete = False
            continue
        found.update(dict.fromkeys(job.by_other_signs(pid)))
    return Search(tuple(found), tuple(one for one in suspects if one not in found), is_complete)


def is_of_any_job(pid: int) -> bool:
    """Tell whether a process is of a job of any environment, as far as this account can see."""
    try:
        if process_tag.is_tag(process_tag.read(pid)):
            return True
    except (OSError, ValueError):
        pass  # Gone, or a kernel that does not show it.
    try:
        if any(one.startswith(_ANY_JOB) for one in processes.environment(pid)):
            return True
    except OSError:
        pass  # Of another account.
    try:
        return any(_is_of_an_agent(one) for one in _line(pid))
    except OSError:
        return False


class _Job:
    """What a process is compared with."""

    def __init__(self, job_uid: str, folders: Sequence[str], tag: int) -> None:
        self._uid = f"{layout.JOB_UID_VARIABLE}={job_uid}".encode()
        self._folders = tuple(map(os.path.realpath, folders))
        self._tag = tag
        self._age_seconds = _age_seconds(folders[0])
        # Where an orphan goes: to the first process, or to one that has taken this agent in.
        self._reapers = {1, os.getppid()}

    def may_have_started(self, pid: int) -> bool:
        """Tell whether a process with a limit of its own may be this job's, which lowered it."""
        return (
            self._tag != process_tag.UNTAGGED
            and processes.age_seconds(pid) <= self._age_seconds
            and not any(_is_of_an_agent(one) for one in _line(pid))
        )

    def by_other_signs(self, pid: int) -> Sequence[int]:
        """
        Return the process, or it and all below it, if other signs than its tag say that it is ours.

        One that only looks around in the directory has a terminal or another parent that lives.
        """
        try:
            environment = processes.environment(pid)
            if self._uid in environment:
                return (pid,)
            if any(one.startswith(_ANY_JOB) for one in environment):
                return ()
            if _is_orphan_in(pid, self._folders, self._reapers):
                return (pid, *processes.descendants(pid))
        except (OSError, ValueError):
            pass  # Gone, or not ours to look at.
        return ()


def _is_of_another(pid: int, limit: int) -> bool:
    """Tell whether its limit is the tag of the job that its environment names."""
    tag_base = process_tag.base_of(limit)
    environment = processes.environment(pid)
    uids = (one[len(_ANY_JOB) :] for one in environment if one.startswith(_ANY_JOB))
    return any(
        process_tag.of_job(uid.decode("ascii", "replace"), tag_base) == limit for uid in uids
    )


def _age_seconds(job_dir: str) -> float:
    """Return how long ago the job was started; for ever where its directory does not say."""
    try:
        started = os.stat(f"{job_dir}/{layout.STARTED}").st_mtime
    except OSError:
        return float("inf")
    age_seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    # A later time is no stamp of a supervisor: the job has written the file again.
    return age_seconds + _TICK_SECONDS if age_seconds >= 0 else float("inf")


def _line(pid: int) -> Iterator[int]:
    """Yield the process and those above it."""
    while pid > 1:
        yield pid
        pid = processes.parent(pid)


def _is_of_an_agent(pid: int) -> bool:
    """Tell whether it is some agent's own process, such as a job's supervisor."""
    arguments = processes.command_line(pid)
    return b"daemon" in arguments and any(b"fleetform" in one for one in arguments)


def _is_orphan_in(pid: int, folders: Sequence[str], reapers: Container[int]) -> bool:
    here = processes.folder(pid).removesuffix(_DELETED)
    if not any(here == folder or here.startswith(f"{folder}/") for folder in folders):
        return False
    return processes.parent(pid) in reapers
