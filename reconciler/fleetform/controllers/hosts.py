"""
Keeps one session with every host, and takes in what hosts say.

A keeper an instance makes it exist, says hello, writes what it learns in one transaction, and
listens until the connection is lost; then again. It decides nothing about runs: it notes which
runs moved and wakes who does. Silence is written down and proves nothing.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fleetform.agents.protocol.messages import (
    Cursor,
    Event,
    GpuProcess,
    JobKey,
    JobRecord,
    LogData,
)
from fleetform.agents.protocol.states import JobState
from fleetform.controllers.news_writer import NewsWriter
from fleetform.controllers.rank_calls import OtherRank, serve_rank_calls
from fleetform.controllers.task_group import TaskGroup
from fleetform.model.history import LogLevel
from fleetform.model.instance import LOCAL, Instance, InstanceState, request_of
from fleetform.model.ports import (
    Clock,
    Gate,
    HostNews,
    Ledger,
    LedgerUnavailable,
    LogStore,
    Progress,
)
from fleetform.model.run import Job
from fleetform.providers.contract.errors import (
    OwnedElsewhere,
    PermanentError,
    ProviderError,
    SameMachine,
    SignInRefused,
    TemporaryError,
)
from fleetform.providers.contract.hosts import Host, HostProvider, Identity, JobAddress, RankCall

RECONNECT_FIRST_SECONDS = 0.05
RECONNECT_MAX_SECONDS = 10.0
"""A host that is silent costs one try each 10 s: news of its return is that late at most."""

REFUSED_SECONDS = 300.0
"""
Pause after a host has refused to sign in.

Programs that guard SSH servers ban an address after five attempts in ten minutes (the defaults of
`fail2ban`), and then people cannot sign in either. A new controller, and a step, try at once.
"""

NEWS_MS = 10_000
"""A session that lasted so long has gone well: what ends it then is told, although it was before."""

GRACE_MS = 10_000
"""
How long a host whose connection was lost is `recovering` before it is unreachable.

An agent that is restarted or updated, or a switch that restarts a link, is back within seconds, and
runs need not become unknown for that. What proves silence does not wait for it.
"""

HEARTBEATS_MISSED_SECONDS = 30.0
"""A connection that carried nothing for two heartbeats was no short break: the grace is over with it."""

STEADY_MS = 1000
"""A session that lasted so long was a good one: the next is opened without a pause."""

REACH_TOLD_SECONDS = 3.0
"""How long a step waits before it says for which host."""

REACH_TIMEOUT_SECONDS = 60.0
"""How long a step waits for a host's first hello; a daemon's start takes well under a second."""


GPU_PROCESSES_SECONDS = 30.0
"""
Pause between two questions to a host with GPUs: who uses them outside fleetform.

A change is known within a minute: the agent asks the driver at most every 10 s. Hosts without GPUs
are never asked.
"""

STRAGGLERS_SECONDS = 10.0
"""
How long a fleet waits for the rest of its hosts once the first has answered.

To install an agent takes three seconds, and twice as long where many are installed at once. Runs of
the same plan wait for this.
"""

_ENDED = frozenset({JobState.FINISHED})


@dataclass(slots=True)
class Session:
    """
    One host as the manager knows it.

    `records` are what its agent said last, by job; None until a hello has brought a snapshot
    or events. `host` is None while nobody answers.
    """

    instance: Instance
    host: Host | None = None
    records: dict[JobKey, JobRecord] = field(default_factory=dict)
    cursor: Cursor | None = None
    problem: str = ""
    told: str = ""
    """The problem that was told last: one that comes back at once is not told again."""
    machine: tuple[str, str] = ("", "")
    """Id and boot id of the machine that answered last."""
    noted: set[str] = field(default_factory=set)
    """What limits the host although it works, as far as it was told."""
    waiters: list[asyncio.Future[Host]] = field(default_factory=list)
    is_wanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a step that waits for the host: the pause before the next try ends."""
    task: asyncio.Task[None] | None = None
    is_installed: bool = False
    """Its agent has answered since the host was last made sure of."""
    grace_until_ms: int = 0
    """Until when it is recovering, by a clock that counts suspend; 0: it has lost no connection."""
    grace: asyncio.Task[None] | None = None
    """Marks it unreachable when that time is over."""
    generation: int = 0
    """Number of its hello, never used twice: a call of an older session is known as such."""
    unheard_since_ms: int | None = None
    """
    Since when the host can hear nothing from this process, by a clock that counts suspend; None while
    it can. At first when this process began: what an earlier manager said was before that.
    """


@dataclass(frozen=True, slots=True)
class LogAddress:
    run_uid: str
    attempt: int
    rank: int
    run_name: str


class HostSessions:
    """All sessions of one environment; fills `touched` and calls `wake` when runs moved."""

    def __init__(
        self,
        *,
        provider: HostProvider,
        identity: Identity,
        ledger: Ledger,
        gate: Gate,
        logs: LogStore,
        clock: Clock,
        progress: Progress,
        task_group: TaskGroup,
        wake: Callable[[], None],
        note_told: Callable[[int], None],
    ) -> None:
        self.environment_uid = identity.environment_uid
        self.environment_name = identity.environment_name
        self._provider = provider
        self._identity = identity
        self._ledger = ledger
        self._gate = gate
        self._logs = logs
        self._clock = clock
        self._progress = progress
        self._nursery = task_group
        self.wake = wake
        self._sessions: dict[str, Session] = {}
        self._hellos = 0
        self._addresses: dict[str, LogAddress] = {}
        self.touched: dict[str, None] = {}
        """Uids of runs whose jobs moved since the last round, in order."""
        self.greeted: dict[str, None] = {}
        """Uids of instances that said hello since the last round: compare all their jobs."""
        self.changed: dict[str, None] = {}
        """Uids of instances whose rows have changed since the last round."""
        self.broken: dict[str, str] = {}
        """Why hosts are to be quarantined, by uid of the instance, since the last round."""
        self.rows_changed = False
        """Somebody of this process has written rows of runs: read everything anew."""
        self.last_output_ms = 0
        """When a host last sent output, by the clock of people."""
        self._news = NewsWriter(
            ledger, gate, task_group, fence=identity.fence, clock=clock,
            note=self._note, note_commits=note_told,
        )  # fmt: skip
        self._departing: dict[str, asyncio.Event] = {}
        """Instances that are being released; nobody reaches one before it is gone."""

    # -- what the manager asks --------------------------------------------------------------

    def watch(self, instances: Iterable[Instance], occupied: Container[str] = frozenset()) -> None:
        """Keep a session with each of these that takes jobs, or leaves and is still `occupied`."""
        for instance in instances:
            if instance.state is InstanceState.TERMINATED or instance.uid in self._departing:
                continue
            session = self._sessions.get(instance.uid)
            if instance.state is InstanceState.TERMINATING and instance.uid not in occupied:
                # A greeting would make it exist again.
                if session is not None:
                    session.instance = instance
                continue
            if session is None:
                # The first hello of a process asks for a snapshot: comparing every record with
                # its row is what makes a restart safe.
                session = Session(instance, unheard_since_ms=self._clock.boot_ms())
                self._sessions[instance.uid] = session
                session.task = self._nursery.start(
                    self._keep(session), name=f"host {instance.name}"
                )
            else:
                session.instance = instance

    def session(self, instance_uid: str) -> Session | None:
        return self._sessions.get(instance_uid)

    def unheard_ms(self, instance_uid: str) -> int:
        """Say for how long a host has certainly heard nothing; 0 where that is not known."""
        session = self._sessions.get(instance_uid)
        if session is None or session.unheard_since_ms is None:
            return 0
        return self._clock.boot_ms() - session.unheard_since_ms

    def know_job(self, job: Job, run_name: str) -> None:
        """Say whose output `job_uid` is, before the host can send any."""
        self._addresses[job.uid] = LogAddress(
            job.key.run_uid, job.key.attempt, job.key.rank, run_name
        )

    def forget_job(self, job: Job) -> None:
        self._addresses.pop(job.uid, None)
        session = self._sessions.get(job.instance_uid)
        if session is not None:
            session.records.pop(job.key, None)

    def output_complete(self, job: Job) -> bool:
        """Tell whether all that the job wrote is in the log store."""
        session = self._sessions.get(job.instance_uid)
        record = None if session is None else session.records.get(job.key)
        # The row of a job that was proven dead does not know what the host tells when it is back.
        written = job.log_bytes or (0 if record is None else record.log_bytes)
        return written == 0 or self._logs.is_complete(
            job.key.run_uid, job.key.attempt, job.key.rank
        )

    def look_again(self) -> None:
        """Ask each host again what it has: somebody may have made an account that a run waits for."""
        for session in self._sessions.values():
            if session.host is not None and session.instance.accounts is not None:
                work = self._look_again(session, session.host)
                self._nursery.start(work, name=f"look at {session.instance.name}")

    async def _look_again(self, session: Session, host: Host) -> None:
        try:
            seen = await host.look_again()
        except ProviderError:
            return  # Its keeper connects again, and that is a look as well.
        if frozenset(seen.report.accounts) == session.instance.accounts:
            return
        try:
            await self._gate(
                lambda: self._ledger.commit_host(
                    seen, fence=self._identity.fence, now_ms=self._clock.now_ms()
                )
            )
        except LedgerUnavailable:
            return  # The next look writes it down.
        self.changed[session.instance.uid] = None
        self.wake()

    # -- the world that apply's steps see ------------------------------------------------------

    async def instances(self, fleet: str) -> Sequence[Instance]:
        book = await self._gate(lambda: self._ledger.read_book(()))
        return [one for one in book.instances if one.fleet == fleet]

    async def is_exchanging(self, fleet: str) -> bool:
        book = await self._gate(lambda: self._ledger.read_book(()))
        return fleet in book.templates

    async def reach(self, instance: Instance) -> Host:
        while (departing := self._departing.get(instance.uid)) is not None:
            # Taken back at the last moment: it is made anew once it is gone.
            await departing.wait()
        known = self._sessions.get(instance.uid)
        waiters: list[asyncio.Future[Host]] = []
        if known is not None and _needs_hello(known, instance):
            # Who waits for the host waits for its next session.
            waiters, known.waiters = known.waiters, waiters
            try:
                await self._drop(known)
            except BaseException:
                known.waiters = waiters
                self._fail_waiters(
                    known, TemporaryError(f"host {instance.name} lost its connection")
                )
                raise
        self.watch([instance])
        session = self._sessions[instance.uid]
        session.waiters += waiters
        if session.host is not None:
            return session.host
        waiter: asyncio.Future[Host] = asyncio.get_running_loop().create_future()
        session.waiters.append(waiter)
        session.is_wanted.set()
        told = asyncio.get_running_loop().call_later(
            REACH_TOLD_SECONDS, self._tell_waiting, session
        )
        try:
            async with asyncio.timeout(REACH_TIMEOUT_SECONDS):
                return await waiter
        except TimeoutError:
            detail = f": {session.problem}" if session.problem else ""
            silence = f"host {instance.name} does not answer{detail}"
            if instance.provider == LOCAL:
                raise TemporaryError(silence) from None
            # The minute was spent on trying again: another minute for each try would tell no more.
            raise PermanentError(
                silence,
                advice=f"make it reachable or remove it from fleet {instance.fleet}, and apply again",
            ) from None
        finally:
            told.cancel()

    async def reach_some(self, instances: Sequence[Instance]) -> Mapping[str, Host]:
        """See `apply.host_access.HostAccess.reach_some`."""
        # A dict, because a set of tasks iterates by address: cancel order must not vary.
        tasks = {asyncio.ensure_future(self.reach(one)): one for one in instances}
        try:
            await _first_answers(tasks)
            for task in tasks:
                if task.done() and isinstance(task.exception(), SameMachine):
                    # To go on without it would hide a mistake that no later answer cures.
                    task.result()
            answers = [task for task in tasks if task.done() and task.exception() is None]
            for task in tasks if not answers else ():
                task.result()
            for task, instance in tasks.items():
                if task not in answers:
                    self._tell_left_out(instance, task.exception() if task.done() else None)
            return {tasks[task].uid: task.result() for task in answers}
        finally:
            for task in tasks:
                # Asked for its exception, or the loop would complain that nobody has.
                if not task.cancel() and not task.cancelled():
                    task.exception()

    def _tell_left_out(self, instance: Instance, problem: BaseException | None) -> None:
        """Say which host its fleet works without; raises what is no problem of a host."""
        if problem is not None and not isinstance(problem, ProviderError):
            raise problem
        session = self._sessions.get(instance.uid)
        why = str(problem) if problem is not None else (session.problem if session else "")
        why = why.removeprefix(f"instance {instance.name}: ")
        advice = problem.advice if isinstance(problem, PermanentError) else ""
        self._progress.notice(
            f"host {instance.name} is not ready{': ' if why else ''}{why}{'; ' if advice else ''}{advice};"
            f" fleet {instance.fleet} works without it, and it joins when it answers"
            f" (`fleetform fleet check {instance.fleet}` says what is wrong)",
            event="host.left-out",
            level=LogLevel.WARNING,
            details={"host": instance.name, "fleet": instance.fleet},
        )

    def _tell_waiting(self, session: Session) -> None:
        why = f": {session.problem}" if session.problem else ""
        self._progress.notice(
            f"waiting for host {session.instance.name} to answer{why}",
            event="host.waiting",
            level=LogLevel.WARNING,
            details={"host": session.instance.name},
        )

    async def release(self, instance: Instance) -> None:
        """
        End a leaving instance for good; nothing when it is gone, or was taken back meanwhile.

        From the look at its row on nobody reaches it: who takes it back later makes it anew.
        """
        assert instance.uid not in self._departing, instance.name
        departing = self._departing[instance.uid] = asyncio.Event()
        try:
            if not await self._is_leaving(instance):
                return
            session = self._sessions.get(instance.uid)
            if session is not None:
                await self._drop(session)
                self._fail_waiters(
                    session, TemporaryError(f"host {instance.name} is being released")
                )
            told = asyncio.get_running_loop().call_later(
                REACH_TOLD_SECONDS, self._tell_releasing, instance
            )
            try:
                await self._provider.release(request_of(instance))
            except ProviderError as problem:
                # No job was ever given to it, so nothing is lost with it: a wrong address must
                # not keep its fleet for ever.
                if instance.install_id or instance.provider == LOCAL:
                    raise
                self._progress.notice(
                    f"host {instance.name} never answered, and is given up:"
                    f" {str(problem).removeprefix(f'instance {instance.name}: ')}",
                    event="host.given-up",
                    level=LogLevel.WARNING,
                    details={"host": instance.name},
                )
            finally:
                told.cancel()
        finally:
            del self._departing[instance.uid]
            departing.set()

    def _tell_releasing(self, instance: Instance) -> None:
        self._progress.notice(
            f"waiting for host {instance.name} to end its jobs and its agent",
            event="host.waiting",
            level=LogLevel.WARNING,
            details={"host": instance.name},
        )

    async def _is_leaving(self, instance: Instance) -> bool:
        row = await self._row_of(instance)
        return row is not None and row.state is InstanceState.TERMINATING

    async def _row_of(self, instance: Instance) -> Instance | None:
        """Read an instance from the ledger; None: it is terminated."""
        book = await self._gate(lambda: self._ledger.read_book((), (instance.uid,)))
        return next(iter(book.instances), None)

    async def _drop(self, session: Session) -> None:
        self._sessions.pop(session.instance.uid, None)
        _end_grace(session)
        if session.task is not None:
            session.task.cancel()
        if session.host is not None:
            host, session.host = session.host, None
            await host.close()

    # -- one host -------------------------------------------------------------------------------

    async def _keep(self, session: Session) -> None:
        delay = RECONNECT_FIRST_SECONDS
        while True:
            is_refused, is_break = False, True
            session.is_wanted.clear()
            try:
                host = await self._greet(session)
                greeted_ms = self._clock.boot_ms()
                try:
                    await self._listen(session, host)
                finally:
                    # One that is lost as soon as it is there is no better than none.
                    lasted_ms = self._clock.boot_ms() - greeted_ms
                    if lasted_ms >= STEADY_MS:
                        delay = RECONNECT_FIRST_SECONDS
                    if lasted_ms >= NEWS_MS:
                        session.told = ""
                problem = "the connection was lost"
            except OwnedElsewhere as refusal:
                problem, is_break = str(refusal), False
                self._fail_waiters(session, refusal)
            except ProviderError as failure:
                problem = str(failure)
                is_refused = isinstance(failure, SignInRefused)
                is_break = isinstance(failure, TemporaryError)
                if not is_break:
                    self._fail_waiters(session, failure)
            except LedgerUnavailable as failure:
                # Nothing was acknowledged, so the host will say it again.
                problem = f"its report cannot be stored: {failure}"
            await self._lose(session, problem, is_break=is_break)
            if is_refused:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REFUSED_SECONDS):
                        await session.is_wanted.wait()
            if await self._is_gone(session.instance):
                self._sessions.pop(session.instance.uid, None)
                _end_grace(session)
                return
            if is_refused:
                continue
            await asyncio.sleep(delay)
            delay = min(delay * 2, RECONNECT_MAX_SECONDS)

    async def _is_gone(self, instance: Instance) -> bool:
        """Tell whether the ledger has written off the host: it was declared lost, say."""
        try:
            return await self._row_of(instance) is None
        except LedgerUnavailable:
            return False

    async def _greet(self, session: Session) -> Host:
        request = request_of(session.instance)
        # After a lost connection the agent is most likely there: one call tells, where `ensure` takes
        # six commands on a host over SSH. When a switch fails, all hosts of a fleet are lost at once.
        is_installed, session.is_installed = session.is_installed, False
        if not is_installed:
            for note in await self._provider.ensure(request):
                self._tell_note(session, note)
        host = await self._provider.connect(request, self._identity, session.cursor)
        session.unheard_since_ms = None
        host.answer_heartbeats(lambda: session.unheard_since_ms is None)
        try:
            await self._take_hello(session, host)
        except BaseException:
            await host.close()
            raise
        return host

    def _tell_note(self, session: Session, note: str) -> None:
        """Say what limits a host that works: once, for every connection finds it again."""
        if note in session.noted:
            return
        session.noted.add(note)
        self._progress.notice(
            f"host {session.instance.name}: {note}",
            event="host.note",
            level=LogLevel.WARNING,
            details={"host": session.instance.name},
        )

    async def _take_hello(self, session: Session, host: Host) -> None:
        seen = host.seen
        self._refuse_same_machine(session, (seen.machine_id, seen.boot_id))
        # Or it were marked unreachable after its hello. A hello that fails is news again.
        _end_grace(session)
        session.problem = ""
        now = self._clock.now_ms()
        moved = await self._gate(
            lambda: self._ledger.commit_host(seen, fence=self._identity.fence, now_ms=now)
        )
        self.changed[session.instance.uid] = None
        if seen.records is not None:
            session.records = {record.key: record for record in seen.records}
            records = seen.records
            more = await self._gate(
                lambda: self._ledger.commit_records(
                    session.instance.uid,
                    records,
                    seen.cursor,
                    snapshot=True,
                    fence=self._identity.fence,
                    now_ms=now,
                )
            )
            moved = (*moved, *more)
            self.changed[session.instance.uid] = None
        session.cursor = seen.cursor
        session.host = host
        session.is_installed = True
        self._hellos += 1
        session.generation = self._hellos
        session.grace_until_ms = 0
        session.problem = ""
        self.greeted[session.instance.uid] = None
        self._note(moved)
        for waiter in session.waiters:
            if not waiter.done():
                waiter.set_result(host)
        session.waiters.clear()
        for record in list(session.records.values()):
            await self._follow(host, record)
        self.wake()

    def _refuse_same_machine(self, session: Session, machine: tuple[str, str]) -> None:
        """
        Keep the first of two names that lead to one machine.

        Raises:
            SameMachine: Another host has answered as this machine.
            TemporaryError: That one is leaving, as one does that gets another name.
        """
        session.machine = ("", "")
        if session.instance.provider == LOCAL or "" in machine:
            return
        for other in self._sessions.values():
            if other.machine != machine or other is session:
                continue
            same = (
                f"host {session.instance.name} is the same machine as host {other.instance.name}"
                f" of fleet {other.instance.fleet}"
            )
            if other.instance.state is InstanceState.TERMINATING:
                raise TemporaryError(f"{same}, which is leaving: it joins when that one has gone")
            raise SameMachine(
                f"{same}: its CPUs, memory and GPUs would be allocated twice",
                advice="remove one of the two names from the configuration",
            )
        session.machine = machine

    async def _follow(self, host: Host, record: JobRecord) -> None:
        """After a reconnect, ask for the output that is not here yet."""
        if record.tombstone:
            return
        key = record.key
        if not self._logs.is_complete(key.run_uid, key.attempt, key.rank):
            self._addresses.setdefault(
                record.job_uid,
                # The record's own name: this manager may never have sent the job.
                LogAddress(key.run_uid, key.attempt, key.rank, record.run_name),
            )
            size = self._logs.size(key.run_uid, key.attempt, key.rank)
            await host.follow_log(record.job_uid, size)

    async def _listen(self, session: Session, host: Host) -> None:
        calls = self._nursery.start(
            serve_rank_calls(host, lambda call: self._other_rank(session, call), self._nursery),
            name=f"rank calls of host {session.instance.name}",
        )
        gpus = self._nursery.start(
            self._watch_gpus(session, host), name=f"GPUs of host {session.instance.name}"
        )
        try:
            async for batch in host.news():
                await self._take(session, host, batch)
        finally:
            calls.cancel()
            gpus.cancel()
            await host.close()

    async def _watch_gpus(self, session: Session, host: Host) -> None:
        """Record which GPUs become used outside fleetform, or free again, while the session lasts."""
        known = {gpu.uuid: gpu.used_by for gpu in host.seen.report.gpus}
        names = {gpu.uuid: f"{gpu.index} ({gpu.name})" for gpu in host.seen.report.gpus}
        missing: set[str] = set()
        while known:
            await asyncio.sleep(GPU_PROCESSES_SECONDS)
            try:
                found = await host.gpu_processes()
            except ProviderError:
                return  # The connection is lost, and the next one begins with a report.
            # Twice in a row: the driver may be asked while it restarts.
            missing, before = known.keys() - found.keys(), missing
            if lost := [names[uuid] for uuid in known if uuid in missing & before]:
                is_one = len(lost) == 1
                self.broken[session.instance.uid] = (
                    f"{'GPU' if is_one else 'GPUs'} {', '.join(lost)} {'is' if is_one else 'are'} lost:"
                    f" the driver no longer reports {'it' if is_one else 'them'}"
                )
                self.wake()
                known = {uuid: use for uuid, use in known.items() if uuid not in missing & before}
            found = {uuid: use for uuid, use in found.items() if uuid in known}
            if found.items() <= known.items():
                continue
            # Not written down, it is news again the next time.
            with contextlib.suppress(LedgerUnavailable):
                await self._note_gpu_processes(session, found)
                known.update(found)

    async def _note_gpu_processes(
        self, session: Session, found: Mapping[str, GpuProcess | None]
    ) -> None:
        await self._gate(
            lambda: self._ledger.note_gpu_processes(
                session.instance.uid, found, fence=self._identity.fence
            )
        )
        self.changed[session.instance.uid] = None
        self.wake()

    def _other_rank(self, session: Session, call: RankCall) -> OtherRank | str | None:
        """Find the job that a job of this host may start a command in."""
        caller = call.caller
        asking = session.records.get(caller.key)
        if asking is None or asking.job_uid != caller.job_uid or asking.state in _ENDED:
            return "the job that asks does not run"
        key = caller.key._replace(rank=call.rank)
        for other in self._sessions.values():
            record = other.records.get(key)
            if record is not None and record.state in _ENDED:
                return f"rank {call.rank} is over: it is {record.state.value}"
            if record is not None and record.state is JobState.RUNNING and other.host is not None:
                return OtherRank(other.host, JobAddress(key, record.job_uid))
        return None

    async def _take(self, session: Session, host: Host, batch: Sequence[Event | LogData]) -> None:
        events = [item for item in batch if isinstance(item, Event)]
        for item in batch:
            if isinstance(item, LogData):
                self._store_output(item)
        if not events:
            self.wake()
            return
        assert session.cursor is not None
        cursor = Cursor(session.cursor.log_id, events[-1].number)
        records = [event.record for event in events]

        commits = await self._news.write(
            HostNews(session.instance.uid, records, cursor),
            is_local=session.instance.provider == LOCAL,
        )
        session.cursor = cursor
        self.changed[session.instance.uid] = None
        for record in records:
            session.records[record.key] = record
        # Also those whose rows had ended before: only now the host may forget them.
        self._note([one.key for one in records if one.state in _ENDED])
        await host.acknowledge(cursor, commits)
        self.wake()

    def _store_output(self, piece: LogData) -> None:
        address = self._addresses.get(piece.job_uid)
        if address is None:
            return  # A job that this ledger does not know; its record shows as foreign.
        try:
            data = base64.b64decode(piece.data, validate=True)
        except ValueError as problem:
            raise TemporaryError(f"it sends invalid output: {problem}") from problem
        if not data and not piece.offset:
            return  # It wrote nothing, and nothing is kept of that.
        try:
            self._logs.append(
                address.run_uid,
                address.attempt,
                address.rank,
                piece.offset,
                data,
                complete=piece.complete,
            )
        except OSError as problem:
            # The host keeps its copy until the job is forgotten, which needs the whole output.
            raise LedgerUnavailable(f"its output cannot be stored: {problem.strerror}") from problem
        if data:
            self.last_output_ms = self._clock.now_ms()
            self._progress.output(address.run_name, address.rank, data)
        if piece.complete:
            # Its end has been known for a while, and the job may be forgotten only now.
            self.touched[address.run_uid] = None

    def _note(self, keys: Iterable[JobKey]) -> None:
        for key in keys:
            self.touched[key.run_uid] = None

    async def _lose(self, session: Session, problem: str, *, is_break: bool) -> None:
        """Write down that a host does not answer; `is_break`: it may answer again in a moment."""
        host, session.host = session.host, None
        if session.unheard_since_ms is None:
            session.unheard_since_ms = self._clock.boot_ms()
        # Every sentence about a host names it.
        problem = problem.removeprefix(f"instance {session.instance.name}: ")
        was_reached, now_ms = host is not None, self._clock.now_ms()
        heard_at_ms = None if host is None else now_ms - int(host.silent_seconds * 1000)
        if host is not None and host.silent_seconds < HEARTBEATS_MISSED_SECONDS:
            session.grace_until_ms = self._clock.boot_ms() + GRACE_MS
        if not is_break:
            session.grace_until_ms = 0
        left_ms = session.grace_until_ms - self._clock.boot_ms()
        _end_grace(session)
        if left_ms > 0:
            session.grace = self._nursery.start(
                self._await_grace(session, left_ms / 1000, heard_at_ms),
                name=f"grace of host {session.instance.name}",
            )
        if not was_reached and problem == session.problem:
            return
        session.problem = problem
        if problem != session.told:
            session.told = problem
            self._progress.notice(
                f"host {session.instance.name}: {problem}",
                event="host.problem",
                level=LogLevel.WARNING,
                details={"host": session.instance.name},
            )
        state = InstanceState.RECOVERING if left_ms > 0 else InstanceState.UNREACHABLE
        await self._mark(session, state, heard_at_ms)

    async def _await_grace(self, session: Session, seconds: float, heard_at_ms: int | None) -> None:
        await asyncio.sleep(seconds)
        session.grace_until_ms = 0
        await self._mark(session, InstanceState.UNREACHABLE, heard_at_ms)

    async def _mark(self, session: Session, state: InstanceState, heard_at_ms: int | None) -> None:
        problem, now_ms = session.problem, self._clock.now_ms()
        try:
            await self._gate(
                lambda: self._ledger.mark_instance(
                    session.instance.uid,
                    state=state,
                    message=problem,
                    heard_at_ms=heard_at_ms,
                    fence=self._identity.fence,
                    now_ms=now_ms,
                )
            )
        except LedgerUnavailable:
            # Not written down: the next failure is news again, and tries once more.
            session.problem = ""
            return
        self.changed[session.instance.uid] = None
        self.wake()

    def _fail_waiters(self, session: Session, problem: ProviderError) -> None:
        for waiter in session.waiters:
            if not waiter.done():
                waiter.set_exception(problem)
        session.waiters.clear()


def _end_grace(session: Session) -> None:
    if session.grace is not None:
        session.grace.cancel()
        session.grace = None


async def _first_answers(tasks: Collection[asyncio.Future[Host]]) -> None:
    """Wait until all are over, or `STRAGGLERS_SECONDS` after the first that has an answer."""
    waiting = list(tasks)
    until: float | None = None
    clock = asyncio.get_running_loop().time
    while waiting:
        seconds = None if until is None else until - clock()
        if seconds is not None and seconds <= 0:
            return
        _, open_tasks = await asyncio.wait(
            waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        has_answer = any(one.done() and one.exception() is None for one in waiting)
        if has_answer and until is None:
            until = clock() + STRAGGLERS_SECONDS
        waiting = [one for one in waiting if one in open_tasks]


def _needs_hello(session: Session, instance: Instance) -> bool:
    """Tell whether only a new hello reports its capacity, or makes it ready again."""
    if request_of(session.instance) != request_of(instance):
        return True
    # It was leaving and has been taken back.
    return session.host is not None and instance.state is InstanceState.PROVISIONING
