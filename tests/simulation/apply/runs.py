"""
What becomes of runs meanwhile: placed, started, over, by the ledger's own calls.

What happens next to a run is `lifecycle`'s to say, as in production. Where it runs is not what is
looked for here: whoever holds the lock places what waits wherever there is place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fleetform.agents.protocol.messages import JobRecord
from fleetform.agents.protocol.states import JobState
from fleetform.lifecycle import advance
from fleetform.model.decision import Next, Placement, Requeue, Share, Wait
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.ports import Clock
from fleetform.model.rollout import ENDED, EXCHANGED, SURGE, UNWANTED
from fleetform.model.run import AttemptState, Run, RunUid
from fleetform.model.scheduler_state import SchedulerState
from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.contract.hosts import Identity
from simulation.apply.documents import CPU_MILLICORES
from simulation.apply.exchanges import exchange_hosts, open_jobs
from simulation.apply.ports import Torn
from simulation.apply.process import Crashed, Process

__all__ = ["RunDriver"]


_ANY_OPEN = (
    "SELECT 1 FROM runs WHERE final = 0 UNION ALL"
    " SELECT 1 FROM jobs WHERE instance_uid <> '' AND state <> 'finished' UNION ALL"
    " SELECT 1 FROM resources WHERE kind = 'fleet' AND outputs LIKE '%strategy%' UNION ALL"
    # Of a fleet that says nothing of it, hosts are exchanged where somebody asks for others.
    " SELECT 1 FROM instances i WHERE state <> 'terminated' AND (template_digest = ? OR number >= ?)"
    " OR message IN (?, ?) AND NOT EXISTS (SELECT 1 FROM instances n WHERE n.fleet = i.fleet"
    " AND n.number = i.number AND n.state = 'ready') LIMIT 1"
)
"""To read the whole book costs twenty times as much, and often there is nothing in it."""


class RunDriver:
    """One round at a time, each a few transactions; belongs to the process with the fence."""

    def __init__(self, process: Process, clock: Clock, identity: Identity) -> None:
        self._process = process
        self._disk = process.room.disk
        self._ledger = process.ledger
        self._machine = process.room.machine
        self._judge = process.room.judge
        self._clock = clock
        self._identity = identity
        self._fence = identity.fence

    def round(self, *, start: bool = True) -> bool:
        """
        Take in news, judge, exchange, place, send; returns whether something is not over.

        Raises:
            Crashed: The process died at one of them.
        """
        try:
            return self._round(start=start)
        except Torn as torn:
            raise Crashed from torn

    def _round(self, *, start: bool) -> bool:
        if not self._disk.ask(_ANY_OPEN, (UNWANTED, SURGE, EXCHANGED, ENDED)):
            return False
        book = self._ledger.read_book()
        self._greet(book)
        self._send(book)
        if self._take_in(book):
            book = self._ledger.read_book()
        now_ms = self._clock.now_ms()
        verdicts = list(self._verdicts(book))
        if verdicts:
            self._ledger.commit_transitions(verdicts, fence=self._fence, now_ms=now_ms)
            for uid, verdict in verdicts:
                if isinstance(verdict, Requeue):
                    self._judge.requeued(uid)
            book = self._ledger.read_book()
        if start and exchange_hosts(self._ledger, book, self._clock, self._fence):
            book = self._ledger.read_book()
        placements = list(_placements(book)) if start else []
        if placements:
            self._ledger.commit_placements(placements, fence=self._fence, now_ms=now_ms)
            book = self._ledger.read_book()
        self._send(book)
        return bool(book.runs or book.templates or any(open_jobs(book)))

    # -- between rows and hosts ---------------------------------------------------------------

    def _greet(self, book: SchedulerState) -> None:
        """
        Say hello to each host that has not heard of this fence; one that knows more says so.

        Raises:
            LedgerOutgrown: A host does.
        """
        for instance in book.instances:
            host = self._machine.hosts.get(instance.uid)
            if host is not None and host.fence < self._identity.fence:
                with contextlib.suppress(ProviderError), self._calling("hello"):
                    seen = self._machine.hello(instance.uid, self._identity)
                    self._ledger.commit_host(
                        seen, fence=self._identity.fence, now_ms=self._clock.now_ms()
                    )

    def _send(self, book: SchedulerState) -> None:
        """Compare each job's row with what its host knows, and send what is due."""
        names = {uid: run.name for uid, run in book.runs.items()}
        for job in open_jobs(book):
            host = self._machine.hosts.get(job.instance_uid)
            if host is None or host.fence != self._fence:
                continue
            if job.boot_id != host.boot_id:
                continue  # It refuses what was meant for another installation.
            known = host.records.get(job.key)
            name = names.get(RunUid(job.key.run_uid), known.run_name if known else "")
            run = book.runs.get(RunUid(job.key.run_uid))
            record = JobRecord(
                key=job.key,
                job_uid=job.uid,
                gen=job.gen,
                digest="",
                state=JobState.RUNNING,
                started_at_ms=self._clock.now_ms(),
                run_name=name,
                execution_digest=run.execution_digest if run else "",
            )
            if job.stop_wanted:
                with self._calling("job.stop"):
                    self._machine.stop(host, record)
            elif known is None and job.state is JobState.STARTING:
                with self._calling("job.start"):
                    self._machine.start(host, record)

    def _take_in(self, book: SchedulerState) -> bool:
        """Write down what hosts know and rows do not."""
        news: dict[str, list[JobRecord]] = {}
        for job in open_jobs(book):
            host = self._machine.hosts.get(job.instance_uid)
            if host is None:
                continue
            self._machine.advance(host)
            record = host.records.get(job.key)
            if record is not None and record.state is not job.state:
                news.setdefault(job.instance_uid, []).append(record)
        for uid, records in news.items():
            self._ledger.commit_records(
                uid, records, None, snapshot=False, fence=self._fence, now_ms=self._clock.now_ms()
            )
            self._machine.hosts[uid].commits = self._ledger.commits()
        return bool(news)

    @contextlib.contextmanager
    def _calling(self, name: str) -> Iterator[None]:
        """Something is asked of a host: whoever asks may die before, and after."""
        self._process.pass_point("before a call", name)
        yield
        self._process.pass_point("after a call", name)

    # -- what happens next ----------------------------------------------------------------------

    def _verdicts(self, book: SchedulerState) -> Iterator[tuple[RunUid, Next]]:
        now_ms = self._clock.now_ms()
        for uid, run in book.runs.items():
            verdict = advance(run, book.attempts[uid], now_ms=now_ms)
            if not isinstance(verdict, Wait):
                yield uid, verdict


def _placements(book: SchedulerState) -> Iterator[Placement]:
    used: dict[str, int] = {}
    for one in book.allocations:
        used[one.instance_uid] = used.get(one.instance_uid, 0) + one.cpu_millicores
    for uid, run in book.runs.items():
        attempt = book.attempts[uid]
        if attempt.state is not AttemptState.WAITING or run.stop_requested:
            continue
        if run.template.wanted == "stopped":
            continue
        instance = _place(book, run, used)
        if instance is None:
            continue
        used[instance.uid] = used.get(instance.uid, 0) + CPU_MILLICORES
        share = Share(
            rank=0,
            instance_uid=instance.uid,
            instance_generation=instance.generation,
            boot_id=instance.boot_id,
            cpu_millicores=CPU_MILLICORES,
            memory_bytes=0,
            memory_limited=False,
            disk_bytes=0,
            blocks=int(instance.sharing == "blocks"),
        )
        yield Placement(uid, run.generation, attempt.number, (share,))


def _place(book: SchedulerState, run: Run, used: dict[str, int]) -> Instance | None:
    volumes = {book.volume_fleets.get(mount.name) for mount in run.template.volumes}
    for instance in book.instances:
        if (
            instance.state is InstanceState.READY
            and not instance.drained
            and (not run.template.fleets or instance.fleet in run.template.fleets)
            and volumes <= {instance.fleet}
            and used.get(instance.uid, 0) + CPU_MILLICORES <= instance.cpu_millicores
        ):
            return instance
    return None
