"""
Says to each host what is due: prepare, start, stop, forget.

What is due comes from comparing rows with records (`lifecycle.due`). Here it is sent, once in
each session, and what hosts answer is collected for the next round to write down. Nothing is
remembered that a new manager would miss: it compares again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from fleetform.agents.protocol.frames import FrameError, ignored_fields, read_value
from fleetform.agents.protocol.messages import JobKey, JobRecord, Reply, StartJob
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.controllers.disks import Disks
from fleetform.controllers.host_session import Session
from fleetform.controllers.hosts import HostSessions
from fleetform.controllers.mirror import Mirror
from fleetform.controllers.task_group import TaskGroup
from fleetform.controllers.uploads import Uploads
from fleetform.lifecycle import Due, SlurmFacts, due, job_request, must_wait
from fleetform.model.history import LogLevel
from fleetform.model.instance import Instance
from fleetform.model.ports import BlobStore, Gate, Ledger, LedgerUnavailable, Progress
from fleetform.model.run import ArrayFacts, Attempt, Job, Run, RunUid
from fleetform.providers.contract.errors import PermanentError, ProviderError, RefusedForNow
from fleetform.providers.contract.hosts import Host


class Sender:
    """Sends for one manager; `unavailable` is called when the ledger could not be read."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        gate: Gate,
        hosts: HostSessions,
        disks: Disks,
        blobs: BlobStore,
        mirror: Mirror,
        progress: Progress,
        task_group: TaskGroup,
        unavailable: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._gate = gate
        self._hosts = hosts
        self._disks = disks
        self._uploads = Uploads(blobs)
        self._mirror = mirror
        self._progress = progress
        self._task_group = task_group
        self._unavailable = unavailable
        # By job, then by (gen, message): in which session it was sent. Gone with the job.
        self._sent: dict[JobKey, dict[tuple[int, Due], int]] = {}
        self._volume_paths: asyncio.Future[Mapping[str, str]] | None = None
        self._arrays: dict[str, asyncio.Future[ArrayFacts]] = {}
        self._forgotten: list[JobKey] = []
        self._answers: list[tuple[str, JobRecord]] = []

    def resources_changed(self) -> None:
        """Read again where volumes lie and what arrays consist of, when a job needs it."""
        self._volume_paths = None
        self._arrays.clear()

    def take_answers(self) -> Sequence[tuple[str, JobRecord]]:
        """Return records that came as answers, with their instances; each once."""
        answers, self._answers = self._answers, []
        return answers

    def give_back(self, answers: Sequence[tuple[str, JobRecord]]) -> None:
        """Keep answers that could not be written down for the next round."""
        self._answers[:0] = answers

    def take_forgotten(self) -> Sequence[JobKey]:
        """Return the jobs that hosts have forgotten since; each once."""
        keys, self._forgotten = self._forgotten, []
        for key in keys:
            self._sent.pop(key, None)
            job = self._mirror.job(key)
            if job is not None:
                self._hosts.forget_job(job)
        return keys

    def send_due(self, touched: Iterable[RunUid]) -> None:
        """Compare rows with what hosts said, and start the message that is due for each job."""
        forgets: dict[str, list[Job]] = {}
        for uid in touched:
            for job in self._mirror.jobs_of(uid):
                session = self._hosts.session(job.instance_uid) if job.instance_uid else None
                if session is None or session.host is None:
                    continue
                what = self._due(uid, job, session)
                if what is None or self._is_sent(job, what, session):
                    continue
                if what is Due.FORGET:
                    forgets.setdefault(job.instance_uid, []).append(job)
                else:
                    self._start_sending(uid, job, session, session.host, what)
        for instance_uid, jobs in forgets.items():
            session = self._hosts.session(instance_uid)
            assert session is not None
            assert session.host is not None
            self._task_group.start(self._forget(session.host, jobs), name="forget")

    def owes_stop(self, job: Job) -> bool:
        """Tell whether the job's host has yet to say that it ends it; asked of what is to end."""
        if not job.instance_uid or job.state is JobState.FINISHED:
            return False
        session = self._hosts.session(job.instance_uid)
        if session is None or session.host is None:
            return True
        return self._due(RunUid(job.key.run_uid), job, session) is Due.STOP

    def _due(self, uid: RunUid, job: Job, session: Session) -> Due | None:
        attempt = self._mirror.attempts.get(uid)
        latest = attempt is not None and attempt.number == job.key.attempt
        run = self._mirror.runs.get(uid)
        current = attempt if latest else None
        return due(
            job,
            session.records.get(job.key),
            gang=1 if current is None else len(current.jobs),
            output_complete=self._hosts.output_complete(job),
            waits=run is not None and current is not None and must_wait(run.template, current, job),
        )

    def _is_sent(self, job: Job, what: Due, session: Session) -> bool:
        """Tell whether this was said in this session; from now on it was."""
        sent = self._sent.setdefault(job.key, {})
        if sent.get((job.gen, what)) == session.generation:
            return True
        sent[job.gen, what] = session.generation
        return False

    def _unsend(self, job: Job, what: Due) -> None:
        self._sent.get(job.key, {}).pop((job.gen, what), None)

    def _start_sending(
        self, uid: RunUid, job: Job, session: Session, host: Host, what: Due
    ) -> None:
        run, attempt = self._mirror.runs.get(uid), self._mirror.attempts.get(uid)
        if what is Due.PREPARE:
            assert run is not None
            assert attempt is not None
            self._hosts.output.know_job(job, run.name)
            work = self._prepare(run, attempt, job, session, host)
        elif what is Due.START:
            work = self._start(job, session, host)
        else:
            work = self._stop(run, job, session, host)
        self._task_group.start(self._sending(work, job, what), name=f"{what} {job.key}")

    async def _sending(self, work: Coroutine[Any, Any, None], job: Job, what: Due) -> None:
        try:
            await work
        except PermanentError as problem:
            self._progress.notice(
                f"job {job.key}: {problem}", event="job.problem", level=LogLevel.ERROR
            )
        except ProviderError:
            # The connection is gone; its keeper says hello again and rows are compared anew.
            self._unsend(job, what)
        except LedgerUnavailable:
            # The round meets the same and waits; then this message is due once more.
            self.resources_changed()
            self._unsend(job, what)
            self._unavailable()

    # -- the messages -----------------------------------------------------------------------------

    async def _prepare(
        self, run: Run, attempt: Attempt, job: Job, session: Session, host: Host
    ) -> None:
        peers = {
            other.key.rank: instance
            for other in attempt.jobs
            if (instance := self._instance_of(other)) is not None
        }
        declared, slurm = await self._paths(run), await self._slurm(run)
        try:
            disks = await self._disks.mounted(run, session.instance, host, self._mirror)
        except ProviderError as problem:
            self._take_refusal(session, job, str(problem))
            return
        declared = {**declared, **disks}
        paths = {name: host.volume_path(path) for name, path in declared.items()}
        request = job_request(run, attempt, job, peers, paths, slurm)
        if ignored := ignored_fields(request, host.seen.capabilities):
            # It would start the job without them: without its account as its own, which may be root.
            self._take_refusal(session, job, _too_old(session, request, ignored[0]))
            return
        try:
            bundle = [request.bundle] if request.bundle else []
            digests = [*bundle, *(entry.sha256 for entry in request.files)]
            await self._uploads.ensure(host, digests)
        except (PermanentError, RefusedForNow) as problem:
            self._take_refusal(session, job, str(problem))
            return
        reply = await host.prepare(request)
        if not reply.ok and not await self._is_settled(session, host, reply):
            self._take_refusal(session, job, reply.message or reply.code)

    async def _start(self, job: Job, session: Session, host: Host) -> None:
        reply = await host.start(job.key, job.gen, job.boot_id)
        await self._take_reply(job, session, host, reply)

    async def _stop(self, run: Run | None, job: Job, session: Session, host: Host) -> None:
        grace = run.template.stop_grace_seconds if run is not None else None
        reply = await host.stop(job.key, job.uid, job.gen, cause=Cause.STOPPED, grace_seconds=grace)
        await self._take_reply(job, session, host, reply)

    async def _forget(self, host: Host, jobs: Sequence[Job]) -> None:
        try:
            reply = await host.forget([job.key for job in jobs])
        except ProviderError:
            return
        if not reply.ok:
            # One of them has not ended there: news of it comes, and all are looked at again.
            for job in jobs:
                self._unsend(job, Due.FORGET)
            return
        self._forgotten.extend(job.key for job in jobs)
        self._hosts.touched.update(dict.fromkeys(job.key.run_uid for job in jobs))
        self._hosts.wake()

    # -- what messages need -------------------------------------------------------------------------

    async def _paths(self, run: Run) -> Mapping[str, str]:
        """Return the declared path of each volume; read once until the next apply."""
        if not run.template.volumes:
            return {}
        if self._volume_paths is None:
            # A task, so that all who prepare at once wait for one reading.
            self._volume_paths = asyncio.ensure_future(self._read_volume_paths())
        return await asyncio.shield(self._volume_paths)

    async def _slurm(self, run: Run) -> SlurmFacts | None:
        """Return what a run with `compat: slurm` is to find; None for any other run."""
        template = run.template
        if "slurm" not in template.compat:
            return None
        array = None
        if template.index is not None and template.parent:
            name = template.parent
            if name not in self._arrays:
                # A task, so that all elements that prepare at once wait for one reading.
                reading = self._gate(lambda: self._ledger.read_array(name))
                self._arrays[name] = asyncio.ensure_future(reading)
            array = await asyncio.shield(self._arrays[name])
        return SlurmFacts(self._hosts.environment_name, os.uname().nodename, array)

    async def _read_volume_paths(self) -> Mapping[str, str]:
        live = await self._gate(self._ledger.read_live)
        return {
            key.name: resource.parsed["path"]
            for key, resource in live.resources.items()
            if key.kind == "volume" and "path" in resource.parsed
        }

    def _instance_of(self, job: Job) -> Instance | None:
        session = self._hosts.session(job.instance_uid)
        return session.instance if session is not None else None

    # -- answers ----------------------------------------------------------------------------------

    async def _take_reply(self, job: Job, session: Session, host: Host, reply: Reply) -> None:
        if not reply.ok and not await self._is_settled(session, host, reply):
            self._progress.notice(
                f"job {job.key}: {reply.message or reply.code}",
                event="job.problem",
                level=LogLevel.ERROR,
            )

    async def _is_settled(self, session: Session, host: Host, reply: Reply) -> bool:
        """
        A refusal that says more than no: what the host knows, or that it has restarted.

        After another boot nobody can tell from a refusal whether the job had begun before it;
        the next hello proves what is lost.
        """
        if reply.code == "boot_changed":
            await host.close()
            return True
        known = reply.body.get("record")
        if known is None:
            return False
        try:
            self._take_answer(session, read_value(JobRecord, known))
        except FrameError as problem:
            # An agent of another release: what it means is not known, so nothing follows from it.
            self._progress.notice(
                f"host {session.instance.name}: {problem}",
                event="host.problem",
                level=LogLevel.ERROR,
                details={"host": session.instance.name},
            )
        return True

    def _take_refusal(self, session: Session, job: Job, message: str) -> None:
        """
        A host that refuses to prepare has not started anything: that is proof enough.

        The row ends as `prepare_failed` through the same door as any news.
        """
        record = JobRecord(
            key=job.key,
            job_uid=job.uid,
            gen=job.gen,
            digest="",
            state=JobState.FINISHED,
            cause=Cause.PREPARE_FAILED,
            message=message,
        )
        self._take_answer(session, record)

    def _take_answer(self, session: Session, record: JobRecord) -> None:
        self._answers.append((session.instance.uid, record))
        self._hosts.wake()


def _too_old(session: Session, request: StartJob, field: str) -> str:
    value = getattr(request, field)
    what = {"account": f"as {value}", "silence_seconds": "with `on_silence`"}.get(
        field, f"with {field} {value}"
    )
    return (
        f"the agent of host {session.instance.name} is of an earlier release, which cannot start jobs"
        f" {what}: it is updated when the host is reached again"
    )
