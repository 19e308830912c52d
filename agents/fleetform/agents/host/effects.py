"""
What the journal wants done, as values; the daemon carries them out in the order given.

`Persist` comes before whatever rests on it. Effects are not retried: what became of them shows
in the job's directory, which is where an agent that crashed in between looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from fleetform.agents.protocol.messages import Event, Reply, StartJob
from fleetform.agents.protocol.states import Cause


@dataclass(frozen=True)
class Persist:
    """
    Append an entry, as `memory` encodes it, to the store.

    `sync`: it must survive a power cut before anything else happens. Only owner, epoch and
    forgotten jobs need that: a start carries the boot id, so what a power cut loses cannot
    lead to a second one.
    """

    entry: bytes
    sync: bool = False


@dataclass(frozen=True)
class Send:
    """Answer a request, on the connection it came from."""

    reply: Reply


@dataclass(frozen=True)
class Announce:
    """Report to the controller; kept in the journal until it is acknowledged."""

    event: Event


@dataclass(frozen=True)
class StartPreparing:
    """Make the job's directory; answer with `prepared` or `prepare_failed`."""

    job: StartJob
    digest: str


@dataclass(frozen=True)
class StartSupervisor:
    """Have the spawner fork one; answer with `supervisor_started` and what follows it."""

    job_uid: str


@dataclass(frozen=True)
class WatchSupervisor:
    """One runs that an earlier agent started: find out when it ends."""

    job_uid: str


@dataclass(frozen=True)
class SignalStop:
    """Ask the job's supervisor to end it; repeated until it listens or is gone."""

    job_uid: str
    cause: Cause
    grace_seconds: int | None


@dataclass(frozen=True)
class KillLeftovers:
    """Its supervisor is dead: end what is left of the job, then answer with `cleared`."""

    job_uid: str


@dataclass(frozen=True)
class RemoveJobDirectory:
    job_uid: str


Effect = Union[
    Persist,
    Send,
    Announce,
    StartPreparing,
    StartSupervisor,
    WatchSupervisor,
    SignalStop,
    KillLeftovers,
    RemoveJobDirectory,
]
