"""
A job as plain processes of this host, each under a supervisor that outlives the agent.

Paths are relative: the agent's root is the current directory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from fleetform.agents.host import (
    directory,
    job_command,
    layout,
    leftovers,
    limits,
    orphans,
    process_tag,
    processes,
    result,
    supervisor_messages,
    watch,
)
from fleetform.agents.host.job_command import Command, JobPlace, Started
from fleetform.agents.host.leftovers import Search
from fleetform.agents.host.recovery import Condition, Found
from fleetform.agents.host.result import Result
from fleetform.agents.host.runtimes import process_directory
from fleetform.agents.host.runtimes.base import Listener, NotRunning
from fleetform.agents.host.runtimes.means import Means
from fleetform.agents.host.supervisor import REPAIR
from fleetform.agents.protocol.messages import StartJob
from fleetform.agents.protocol.states import Cause

_REPAIR_WAIT_SECONDS = 5.0
_REPAIR_CHECK_SECONDS = 0.01
_START_WAIT_SECONDS = 1.0

_LEFTOVERS_WAIT_SECONDS = 5
"""A process that is killed goes in milliseconds; one in an uninterruptible sleep may never die."""

_PIDS_MAX = 4


class ProcessRuntime:
    """Fills `base.Runtime`; a runtime that changes only what a supervisor executes is a subclass."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._root = means.host.root

    def listen(self, listener: Listener) -> None:
        self._means.forks.listen(listener)

    def prepare(self, job: StartJob, digest: str) -> None:
        process_directory.prepare(job, digest, self._means.host)

    def start(self, job_uid: str) -> None:
        self._means.forks.request(job_uid)

    def attach(self, job_uid: str, ended: Callable[[], None]) -> None:
        watch.watch(_path(job_uid), ended)

    def stop(self, job_uid: str, cause: Cause, grace_seconds: int | None) -> bool:
        return supervisor_messages.ask_to_stop(_path(job_uid), cause, grace_seconds)

    def exec(self, job_uid: str, command: Command) -> Started:
        path = _path(job_uid)
        found = self._started(job_uid)
        supervisor = directory.supervisor_pid(path) or orphans.supervisor_of(self._root, job_uid)
        if found.condition is not Condition.RUNNING or found.launch is None or supervisor is None:
            raise NotRunning("the job does not run on this host, or it has removed its directory")
        place = JobPlace(
            job_uid=job_uid,
            job_dir=f"{self._root}/{path}",
            directory=found.launch.directory,
            env=found.launch.env,
            supervisor=supervisor,
            groups=limits.groups_of(job_uid),
            account=found.launch.account,
            has_mounts=bool(found.launch.binds),
        )
        return job_command.start(place, command)

    def _started(self, job_uid: str) -> Found:
        """Inspect a job; waits a moment for a supervisor that was forked and has not begun."""
        deadline = time.monotonic() + _START_WAIT_SECONDS
        found = self.inspect(job_uid)
        while found.condition is Condition.PREPARED and time.monotonic() < deadline:
            time.sleep(_REPAIR_CHECK_SECONDS)
            found = self.inspect(job_uid)
        return found

    def repair(self, job_uid: str) -> bool:
        """Have a job's supervisor make its directory whole; False when there is none."""
        pid = orphans.supervisor_of(self._root, job_uid)
        if pid is not None:
            processes.send([pid], REPAIR)
        return pid is not None

    def inspect(self, job_uid: str) -> Found:
        return directory.inspect(_path(job_uid))

    def result(self, job_uid: str) -> Result | None:
        return result.read(f"{_path(job_uid)}/{layout.RESULT}", job_uid)

    def is_supervised(self, job_uid: str) -> bool:
        """
        Tell whether a supervisor lives whose lock cannot be found, or has left a result by now.

        A job that removes its directory removes the file with the lock.
        """
        deadline = time.monotonic() + _REPAIR_WAIT_SECONDS
        while self.repair(job_uid) and time.monotonic() < deadline:
            time.sleep(_REPAIR_CHECK_SECONDS)
            if self.inspect(job_uid).condition is Condition.RUNNING:
                return True
        return self.inspect(job_uid).condition is Condition.ENDED

    def end_leftovers(self, job_uid: str, tag: int, left: Sequence[int] | None) -> str:
        return _doubt(_clear(self._root, job_uid, tag), left, tag)

    def remove(self, job_uid: str) -> None:
        self._means.sweeper.take(job_uid)

    def flush(self) -> None:
        self._means.forks.flush()

    def close(self) -> None:
        self._means.forks.close()
        self._means.sweeper.close()


def _path(job_uid: str) -> str:
    return f"{layout.JOBS}/{job_uid}"


def _clear(root: str, job_uid: str, tag: int) -> Search:
    folders = (_path(job_uid), f"{layout.accounts_folder(root)}/{job_uid}")
    seen = leftovers.end(job_uid, folders, tag, wait_seconds=_LEFTOVERS_WAIT_SECONDS)
    if not seen.found:
        limits.discard(job_uid)
    return seen


def _doubt(seen: Search, orphans: Sequence[int] | None, tag: int) -> str:
    """
    Say why it is not proven that all processes of a job have ended; empty where it is.

    `orphans` are those that the spawner could not end. It was the parent of all that the
    supervisor left; None: it did not live to tell.
    """
    left = sorted({*seen.found, *(pid for pid in orphans or () if not processes.is_over(pid))})
    if left:
        return f"processes of the job cannot be ended (pid {_listed(left)})"
    if orphans is not None and len(orphans) == 0:
        return ""
    if tag == process_tag.UNTAGGED:
        return (
            "processes of the job may still run: this host cannot tell which processes belong to it"
        )
    if seen.suspects:
        return f"other processes may belong to the job (pid {_listed(seen.suspects)})"
    if not seen.is_complete:
        return (
            "processes of the job may still run: processes start and end too fast to check them all"
        )
    return ""


def _listed(pids: Sequence[int]) -> str:
    more = f" and {len(pids) - _PIDS_MAX} more" if len(pids) > _PIDS_MAX else ""
    return ", ".join(map(str, pids[:_PIDS_MAX])) + more
