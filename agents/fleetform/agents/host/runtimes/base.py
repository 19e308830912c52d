"""
What carries jobs out on a host: the interface that daemon and jobs know, whatever is behind it.

A runtime owns what a job is made of: plain processes under a supervisor, later a container. What
the job's state is, and what may follow what, stays with the journal; a runtime reports what it
sees and gives proof that nothing of a job is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fleetform.agents.host.job_command import Command, Started
from fleetform.agents.host.recovery import Found
from fleetform.agents.host.result import Result
from fleetform.agents.protocol.messages import StartJob
from fleetform.agents.protocol.states import Cause


class PrepareError(Exception):
    """The job cannot be started on this host; the message says why and what to do."""


class NotRunning(Exception):
    """Nothing can be executed in a job: it does not run here, or no longer."""


@dataclass(frozen=True)
class Listener:
    """
    Receives what a runtime reports of jobs.

    Attributes:
        started: The job has begun; nobody else can begin it.
        refused: It cannot begin, and why.
        ended: What ran it is gone, how that ended, and the processes that it could not end; None
            in place of these where it did not live to tell.
        gone: The runtime can start no more jobs; those that run go on.
    """

    started: Callable[[str], None]
    refused: Callable[[str, str], None]
    ended: Callable[[str, str, Sequence[int]], None]
    gone: Callable[[], None]


class Runtime(Protocol):
    """
    One way to carry jobs out. Methods marked as slow are called in a thread of their own.

    `start` and `remove` may wait for `flush`, which is called once the journal is written.
    """

    def listen(self, listener: Listener) -> None:
        """Report to this listener from now on; called once, before anything else."""

    def prepare(self, job: StartJob, digest: str) -> None:
        """
        Make all that the job needs, whole or not at all; nothing of the job is executed yet.

        Slow where the job has files.

        Raises:
            PrepareError: The host cannot.
        """

    def start(self, job_uid: str) -> None:
        """Begin a prepared job; the listener hears of it."""

    def attach(self, job_uid: str, ended: Callable[[], None]) -> None:
        """Call `ended` once when a job that an earlier agent started is over."""

    def stop(self, job_uid: str, cause: Cause, grace_seconds: int | None) -> bool:
        """Ask the job to end; False when nothing listens yet, or no longer. Raises OSError."""
        ...

    def exec(self, job_uid: str, command: Command) -> Started:
        """
        Start a command inside a running job; its process is a child of the agent.

        Raises:
            NotRunning: The job does not run.
            OSError: The host has nothing left to start it with.
        """
        ...

    def repair(self, job_uid: str) -> bool:
        """Mend what the job has removed of its own; False where nothing runs it. Slow."""
        ...

    def inspect(self, job_uid: str) -> Found:
        """Say how far the job got, from what outlives the agent."""
        ...

    def result(self, job_uid: str) -> Result | None:
        """Return how the job ended; None as long as that is not known."""

    def is_supervised(self, job_uid: str) -> bool:
        """Tell whether something runs the job after all, or has left a result by now. Slow."""
        ...

    def end_leftovers(self, job_uid: str, tag: int, left: Sequence[int] | None) -> str:
        """
        Kill what is left of a job that nothing runs any more. Slow.

        Returns:
            Why it is not proven that all of it has ended; empty where it is. `left` is what the
            listener was told at its end.
        """
        ...

    def remove(self, job_uid: str) -> None:
        """Make what the job leaves on the host vanish; nothing where there is none."""

    def flush(self) -> None:
        """Send what waits to be started."""

    def close(self) -> None:
        """Give back what the agent itself holds; jobs go on."""
