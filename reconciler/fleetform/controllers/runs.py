"""
Drives runs: one round takes in what moved, decides, commits, and sends.

Every round starts from rows, never from the event that woke it. What to do is decided by the
pure rooms (`lifecycle`, `schedule`); this module reads, commits and sends in an order in which a
crash between any two leaves rows that the next manager goes on from.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fleetform.agents.protocol.frames import read_value
from fleetform.agents.protocol.messages import JobKey, JobRecord, Reply
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.controllers.hosts import HostSessions, Session
from fleetform.controllers.mirror import Mirror
from fleetform.controllers.nursery import Nursery
from fleetform.controllers.suspects import Suspects
from fleetform.lifecycle import Due, advance, due, job_request
from fleetform.model.decision import Decisions, Finish, Next, Requeue, Wait
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.ports import BlobStore, Clock, Gate, Ledger, LedgerUnavailable, Progress
from fleetform.model.run import FINAL, Attempt, AttemptState, Job, Run, RunState, RunUid
from fleetform.providers.contract.errors import PermanentError, ProviderError
from fleetform.providers.contract.hosts import Host
from fleetform.schedule import Policies, queue_from_book, schedule

UNSETTLED = frozenset(
    {
        AttemptState.RESERVED,
        AttemptState.ABORTING,
        AttemptState.STARTING,
        AttemptState.STOPPING,
    }
)
"""Attempts that a deadline may move although nothing happened."""

DEADLINE_CHECK_MS = 1000


class RunController:
    """All runs of one environment, as long as this process is their manager."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        gate: Gate,
        hosts: HostSessions,
        blobs: BlobStore,
        clock: Clock,
        progress: Progress,
        nursery: Nursery,
        fence: int,
    ) -> None:
        self.mirror = Mirror()
        self.decisions = Decisions()
        self._ledger = ledger
        self._gate = gate
        self._hosts = hosts
        self._blobs = blobs
        self._clock = clock
        self._progress = progress
        self._nursery = nursery
        self._fence = fence
        self._serial: int | None = None
        self._shown: dict[RunUid, RunState] = {}
        self._ended: dict[RunUid, Run] = {}
        self._sent: dict[tuple[JobKey, int, Due], int] = {}
        self._blobs_there: dict[str, set[str]] = {}
        self._volume_paths: asyncio.Future[Mapping[str, str]] | None = None
        self._deadline_check_ms = 0
        self._suspects = Suspects(ledger=ledger, gate=gate, clock=clock, progress=progress)
        self._forgotten: list[JobKey] = []
        self._refused: list[tuple[str, JobRecord]] = []
        self.next_at_ms: int | None = None

    def reload(self) -> None:
        """Read everything anew in the next round."""
        self._serial = None

    def owes_output(self) -> bool:
        """Tell whether a finished job's output is still on a host that answers."""
        for job in self.mirror.all_jobs():
            if job.state is not JobState.FINISHED or self._hosts.output_complete(job):
                continue
            session = self._hosts.session(job.instance_uid)
            if session is not None and session.host is not None:
                return True
        return False

    async def round(self) -> None:
        """Take in what moved, decide, commit and send; returns when all is on its way."""
        touched = await self._refresh()
        touched |= await self._judge(touched)
        # Before runs are placed anew: they would be sent to the same hosts.
        await self._suspects.mark(self.mirror)
        touched |= await self._place()
        await self._send_due(touched)

    # -- taking in ------------------------------------------------------------------------------

    async def _refresh(self) -> dict[RunUid, None]:
        await self._write_forgotten()
        await self._write_refused()
        touched = {RunUid(uid): None for uid in self._hosts.touched}
        self._hosts.touched.clear()
        serial = await self._gate(self._ledger.serial)
        if serial != self._serial or self._hosts.rows_changed:
            self._hosts.rows_changed = False
            self._serial = serial
            book = await self._gate(self._ledger.read_book)
            gone = [uid for uid in self.mirror.runs if uid not in book.runs]
            self.mirror.replace(book)
            self._volume_paths = None
            touched.update(dict.fromkeys((*gone, *self.mirror.runs)))
            touched.update({RunUid(uid): None for uid in self.mirror.lingering_by_run})
            self._show(touched)
        elif touched or self._hosts.instances_changed:
            await self._reread(touched)
        self._hosts.instances_changed = False
        self._hosts.watch(self.mirror.instances, self._occupied())
        for instance_uid in list(self._hosts.greeted):
            self._suspects.greeted(instance_uid)
            touched.update(
                {
                    RunUid(job.key.run_uid): None
                    for job in self.mirror.all_jobs()
                    if job.instance_uid == instance_uid
                }
            )
        self._hosts.greeted.clear()
        return touched

    def _occupied(self) -> set[str]:
        """Say which instances are occupied, where some leave and it matters."""
        leaving = any(one.state is InstanceState.TERMINATING for one in self.mirror.instances)
        return self.mirror.occupied() if leaving else set()

    async def _write_refused(self) -> None:
        refused, self._refused = self._refused, []
        for instance_uid, record in refused:
            session = self._hosts.session(instance_uid)
            if session is not None:
                session.records[record.key] = record
            moved = await self._gate(
                partial(
                    self._ledger.commit_records,
                    instance_uid,
                    [record],
                    None,
                    snapshot=False,
                    fence=self._fence,
                    now_ms=self._clock.now_ms(),
                )
            )
            self._hosts.touched.update(dict.fromkeys(key.run_uid for key in moved))

    async def _reread(self, touched: Mapping[RunUid, None]) -> None:
        uids = tuple(touched)
        book = await self._gate(lambda: self._ledger.read_book(uids))
        names = {uid: self.mirror.runs[uid] for uid in uids if uid in self.mirror.runs}
        self.mirror.merge(uids, book)
        self._show(touched, names)

    async def _write_forgotten(self) -> None:
        if not self._forgotten:
            return
        keys, self._forgotten = self._forgotten, []
        for key in keys:
            job = self.mirror.job(key)
            if job is not None:
                self._hosts.forget_job(job)
            self._hosts.touched[key.run_uid] = None
        await self._gate(lambda: self._ledger.mark_forgotten(keys))

    def _show(self, touched: Iterable[RunUid], before: Mapping[RunUid, Run] | None = None) -> None:
        """Report states that people have not seen yet."""
        for uid in touched:
            run = self.mirror.runs.get(uid) or self._ended.pop(uid, None)
            if run is None and before is not None and (old := before.get(uid)) is not None:
                # Ended by somebody else's hand; only its state is known here.
                state = self.mirror.state_of(old.name)
                run = replace(old, state=state) if state in FINAL and state is not None else None
            if run is None or self._shown.get(uid) is run.state:
                continue
            self._shown[uid] = run.state
            self._progress.run_changed(run, run.message)

    # -- deciding ---------------------------------------------------------------------------------

    async def _judge(self, touched: Mapping[RunUid, None]) -> dict[RunUid, None]:
        """Let `lifecycle` say what happens next to each run that moved or is overdue."""
        now = self._clock.now_ms()
        verdicts: list[tuple[RunUid, Next]] = []
        for uid in self._to_judge(touched, now):
            run, attempt = self.mirror.runs[uid], self.mirror.attempts[uid]
            verdict = advance(run, attempt, now_ms=now)
            if not isinstance(verdict, Wait):
                verdicts.append((uid, verdict))
            if isinstance(verdict, Requeue | Finish):
                self._suspects.note(run, attempt, now_ms=now)
        return await self._commit_verdicts(verdicts, now)

    def _to_judge(self, touched: Mapping[RunUid, None], now: int) -> Sequence[RunUid]:
        uids = dict.fromkeys(uid for uid in touched if uid in self.mirror.attempts)
        if now >= self._deadline_check_ms:
            self._deadline_check_ms = now + DEADLINE_CHECK_MS
            uids.update(
                dict.fromkeys(
                    uid
                    for uid, attempt in self.mirror.attempts.items()
                    if attempt.state in UNSETTLED
                )
            )
        return tuple(uids)

    async def _commit_verdicts(
        self, verdicts: Sequence[tuple[RunUid, Next]], now: int
    ) -> dict[RunUid, None]:
        if not verdicts:
            return {}
        await self._gate(
            lambda: self._ledger.commit_verdicts(verdicts, fence=self._fence, now_ms=now)
        )
        for uid, verdict in verdicts:
            if isinstance(verdict, Finish) and (run := self.mirror.runs.get(uid)) is not None:
                self._ended[uid] = replace(
                    run,
                    state=RunState(verdict.state),
                    cause=verdict.cause,
                    message=verdict.message,
                    finished_at_ms=now,
                )
        moved = dict.fromkeys(uid for uid, _ in verdicts)
        await self._reread(moved)
        return moved

    async def _place(self) -> dict[RunUid, None]:
        """Start what can start; end what never can."""
        now = self._clock.now_ms()
        decisions = schedule(
            queue_from_book(self.mirror.as_book()),
            self.mirror.instances,
            (),
            Policies(),
            now_ms=now,
        )
        self.decisions = decisions
        self.next_at_ms = decisions.next_at_ms
        ends: list[tuple[RunUid, Next]] = [
            (
                one.run_uid,
                Finish(RunState.ABORTED, "impossible", "; ".join(one.reasons)),
            )
            for one in decisions.impossible
        ]
        ends.extend(
            (uid, Finish(RunState.ABORTED, "dependency", sentence))
            for uid, sentence in decisions.aborts.items()
        )
        moved = await self._commit_verdicts(ends, now)
        if decisions.starts:
            starts = decisions.starts
            await self._gate(
                lambda: self._ledger.commit_placements(starts, fence=self._fence, now_ms=now)
            )
            placed = dict.fromkeys(placement.run_uid for placement in starts)
            await self._reread(placed)
            moved.update(placed)
        if ends:
            # Somebody may have waited for one of these: look again at once.
            self.next_at_ms = now
        return moved

    # -- sending ----------------------------------------------------------------------------------

    async def _send_due(self, touched: Mapping[RunUid, None]) -> None:
        """Compare rows with what hosts said, and start the message that is due for each job."""
        forgets: dict[str, list[Job]] = {}
        for uid in touched:
            for job in self.mirror.jobs_of(uid):
                session = self._hosts.session(job.instance_uid) if job.instance_uid else None
                if session is None or session.host is None:
                    continue
                attempt = self.mirror.attempts.get(uid)
                gang = len(attempt.jobs) if attempt and attempt.number == job.key.attempt else 1
                what = due(
                    job,
                    session.records.get(job.key),
                    gang=gang,
                    output_complete=self._hosts.output_complete(job),
                )
                if what is None:
                    continue
                mark = (job.key, job.gen, what)
                if self._sent.get(mark) == session.generation:
                    continue
                self._sent[mark] = session.generation
                if what is Due.FORGET:
                    forgets.setdefault(job.instance_uid, []).append(job)
                else:
                    self._start_sending(uid, job, session, session.host, what, mark)
        for instance_uid, jobs in forgets.items():
            session = self._hosts.session(instance_uid)
            assert session is not None
            assert session.host is not None
            self._nursery.start(self._forget(session.host, jobs), name="forget")

    def _start_sending(
        self,
        uid: RunUid,
        job: Job,
        session: Session,
        host: Host,
        what: Due,
        mark: tuple[JobKey, int, Due],
    ) -> None:
        run, attempt = self.mirror.runs.get(uid), self.mirror.attempts.get(uid)
        if what is Due.PREPARE:
            assert run is not None
            assert attempt is not None
            self._hosts.know_job(job, run.name)
            work = self._prepare(run, attempt, job, session, host)
        elif what is Due.START:
            work = self._start(job, session, host)
        else:
            work = self._stop(run, job, session, host)
        self._nursery.start(self._sending(work, mark), name=f"{what} {job.key}")

    async def _sending(
        self, work: Coroutine[Any, Any, None], mark: tuple[JobKey, int, Due]
    ) -> None:
        try:
            await work
        except PermanentError as problem:
            self._progress.notice(f"job {mark[0]}: {problem}")
        except ProviderError:
            # The connection is gone; its keeper says hello again and rows are compared anew.
            self._sent.pop(mark, None)
        except LedgerUnavailable:
            # The round meets the same and waits; then this message is due once more.
            self._volume_paths = None
            self._sent.pop(mark, None)
            self.reload()

    async def _prepare(
        self, run: Run, attempt: Attempt, job: Job, session: Session, host: Host
    ) -> None:
        peers = {
            one.rank: instance
            for one in (other.key for other in attempt.jobs)
            if (instance := self._instance_of(attempt.jobs[one.rank])) is not None
        }
        request = job_request(run, attempt, job, peers, await self._paths(run))
        try:
            await self._send_blobs(session, host, [entry.sha256 for entry in request.files])
        except PermanentError as problem:
            self._take_refusal(session, job, str(problem))
            return
        reply = await host.prepare(request)
        if not reply.ok and not self._take_known(session, reply):
            self._take_refusal(session, job, reply.message or reply.code)

    async def _start(self, job: Job, session: Session, host: Host) -> None:
        reply = await host.start(job.key, job.gen, job.boot_id)
        if not reply.ok and not self._take_known(session, reply):
            self._progress.notice(f"job {job.key}: {reply.message or reply.code}")

    async def _stop(self, run: Run | None, job: Job, session: Session, host: Host) -> None:
        grace = run.template.stop_grace_seconds if run is not None else None
        reply = await host.stop(job.key, job.uid, job.gen, cause=Cause.STOPPED, grace_seconds=grace)
        if not reply.ok and not self._take_known(session, reply):
            self._progress.notice(f"job {job.key}: {reply.message or reply.code}")

    async def _forget(self, host: Host, jobs: Sequence[Job]) -> None:
        try:
            reply = await host.forget([job.key for job in jobs])
        except ProviderError:
            return
        if reply.ok:
            self._forgotten.extend(job.key for job in jobs)
            for job in jobs:
                self._sent.pop((job.key, job.gen, Due.FORGET), None)
            self._hosts.touched.update(dict.fromkeys(job.key.run_uid for job in jobs))
            self._hosts.wake()

    async def _send_blobs(self, session: Session, host: Host, digests: Sequence[str]) -> None:
        there = self._blobs_there.setdefault(session.instance.uid, set())
        wanted = [digest for digest in dict.fromkeys(digests) if digest not in there]
        if not wanted:
            return
        for digest in await host.missing_blobs(wanted):
            await host.put_blob(digest, self._blobs.path(digest))
        there.update(wanted)

    async def _paths(self, run: Run) -> Mapping[str, str]:
        """Return where each volume lies on its hosts; read once until somebody applies."""
        if not run.template.volumes:
            return {}
        if self._volume_paths is None:
            # A task, so that all who prepare at once wait for one reading.
            self._volume_paths = asyncio.ensure_future(self._read_volume_paths())
        return await asyncio.shield(self._volume_paths)

    async def _read_volume_paths(self) -> Mapping[str, str]:
        live = await self._gate(self._ledger.read_live)
        return {
            key.name: self._hosts.volume_path(json.loads(resource.document)["path"])
            for key, resource in live.resources.items()
            if key.kind == "volume"
        }

    def _instance_of(self, job: Job) -> Instance | None:
        session = self._hosts.session(job.instance_uid)
        return session.instance if session is not None else None

    def _take_known(self, session: Session, reply: Reply) -> bool:
        """A refusal that carries what the host knows is news, and settles the matter."""
        known = reply.body.get("record")
        if known is None:
            return False
        self._refused.append((session.instance.uid, read_value(JobRecord, known)))
        self._hosts.wake()
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
        self._refused.append((session.instance.uid, record))
        self._hosts.wake()
