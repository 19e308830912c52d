"""
Releases a volume's data only when no run has it mounted any more.

A plan asks runs to end, and takes the volume away behind that. To ask takes a moment and to end does
not: who catches the signal writes a last checkpoint, and writes it there. So the step waits until
the hosts have told of each end. Whom nobody has asked to end is not waited for, and loses nothing:
then the step fails, and the next plan says why. Decided in every round from rows alone.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from fleetform.agents.protocol.states import JobState
from fleetform.controllers.hosts import HostSessions
from fleetform.controllers.mirror import Mirror
from fleetform.model.ports import Clock, Progress
from fleetform.model.run import Job, Run, RunUid
from fleetform.providers.contract.errors import PermanentError

__all__ = ["SILENCE_MS", "Volumes"]

SILENCE_MS = 30_000
"""How long a step waits for a host that does not answer: as long as the removal of a fleet does."""


@dataclass(slots=True)
class _Wait:
    """A step that waits for all who have one volume mounted; it lies on the hosts of `fleet`."""

    volume: str
    fleet: str
    since_ms: int
    free: asyncio.Future[None]
    is_reported: bool = False


class Volumes:
    """All volumes that are about to go, as long as this process is the manager."""

    def __init__(self, *, hosts: HostSessions, clock: Clock, progress: Progress) -> None:
        self._hosts = hosts
        self._clock = clock
        self._progress = progress
        self._waits: list[_Wait] = []

    async def unmounted(self, volume: str, fleet: str) -> None:
        """See `apply.host_access.HostAccess.unmounted`."""
        free = asyncio.get_running_loop().create_future()
        wait = _Wait(volume, fleet, self._clock.now_ms(), free)
        self._waits.append(wait)
        self._hosts.rows_changed = True
        self._hosts.wake()
        try:
            await free
        finally:
            self._waits.remove(wait)

    def round(self, mirror: Mirror) -> None:
        """Wake the steps that wait and whose volume is not mounted any more."""
        # Rows that are older than the wait may know nothing of the ends that were asked for.
        if self._hosts.rows_changed:
            return
        for wait in self._waits:
            if not wait.free.done():
                self._settle(wait, mirror)

    def _settle(self, wait: _Wait, mirror: Mirror) -> None:
        fleets = {one.uid: one.fleet for one in mirror.instances}
        users = [
            (job, run)
            for job in mirror.all_jobs()
            if job.instance_uid and job.state is not JobState.FINISHED
            # Of a run that is over only its hosts are known by now: it may be any volume there.
            for run in (mirror.runs.get(RunUid(job.key.run_uid)),)
            if (fleets.get(job.instance_uid) == wait.fleet if run is None else _mounts(run, wait))
        ]
        names = sorted({run.name for _, run in users if run is not None})
        going_on = sorted({run.name for job, run in users if run and not _is_ending(job, run)})
        if not users:
            wait.free.set_result(None)
        elif going_on:
            wait.free.set_exception(
                PermanentError(
                    f"run/{going_on[0]} is running with it mounted, and no stop was requested",
                    advice="plan again once it has ended",
                )
            )
        elif (silent := self._silent(wait, [job for job, _ in users], mirror)) is not None:
            wait.free.set_exception(
                PermanentError(
                    f"host {silent} is unreachable, and a job there may still have it mounted",
                    advice="apply again once the host answers",
                )
            )
        else:
            self._tell(wait, names)

    def _silent(self, wait: _Wait, jobs: list[Job], mirror: Mirror) -> str | None:
        """Name a host that has been silent about its jobs for long."""
        if self._clock.now_ms() - wait.since_ms < SILENCE_MS:
            return None
        names = {one.uid: one.name for one in mirror.instances}
        for job in jobs:
            session = self._hosts.session(job.instance_uid)
            if session is None or session.host is None:
                return names.get(job.instance_uid, "(removed since)")
        return None

    def _tell(self, wait: _Wait, names: list[str]) -> None:
        """Say once for whose end it waits."""
        if wait.is_reported:
            return
        wait.is_reported = True
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        who = f"run/{names[0]}{more}" if names else "a job that was declared lost"
        self._progress.notice(
            f"volume/{wait.volume} waits for the end of {who}",
            event="volume.waiting",
            details={"volume": wait.volume},
        )


def _mounts(run: Run, wait: _Wait) -> bool:
    return any(mount.name == wait.volume for mount in run.template.volumes)


def _is_ending(job: Job, run: Run) -> bool:
    """Tell whether this job's end was requested; an earlier attempt's was decided on."""
    return run.stop_requested != "" or job.stop_wanted or job.key.attempt != run.attempt
