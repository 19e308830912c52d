"""
Keeps one session with every host, and takes in what hosts say.

A keeper an instance makes it exist, says hello, writes what it learns in one transaction, and
listens until the connection is lost; then again. It decides nothing about runs: it notes which
runs moved and wakes who does. Silence is written down and proves nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from fleetform.agents.protocol.messages import (
    Cursor,
    Event,
    JobKey,
    LogData,
)
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.controllers.batched_calls import BatchedCalls
from fleetform.controllers.bought_hosts import BoughtHosts
from fleetform.controllers.gpu_use import GpuUse, watch_gpus
from fleetform.controllers.host_identity import check_is_lost, refuse_same_machine
from fleetform.controllers.host_notices import HostNotices
from fleetform.controllers.host_session import Session
from fleetform.controllers.news_writer import NewsWriter
from fleetform.controllers.output import Output
from fleetform.controllers.rank_calls import find_rank, serve_rank_calls
from fleetform.controllers.silence import Silence
from fleetform.controllers.stragglers import wait_for_first
from fleetform.controllers.task_group import TaskGroup
from fleetform.model.instance import (
    LOCAL,
    Instance,
    InstanceState,
    missing_devices_text,
    request_of,
)
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
    AgentFound,
    NameUnknown,
    OwnedElsewhere,
    PermanentError,
    ProviderError,
    SameMachine,
    SignInRefused,
    TemporaryError,
)
from fleetform.providers.contract.hosts import Host, HostProvider, Identity

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

STEADY_MS = 1000
"""A session that lasted so long was a good one: the next is opened without a pause."""

REACH_TOLD_SECONDS = 3.0
"""How long a step waits before it says for which host."""

REACH_TIMEOUT_SECONDS = 60.0
"""How long a step waits for a host's first hello; a daemon's start takes well under a second."""

_ENDED = frozenset({JobState.FINISHED})


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
        self._clock = clock
        self._nursery = task_group
        self.wake = wake
        self._sessions: dict[str, Session] = {}
        self._hellos = 0
        self.output = Output(logs, clock, progress)
        self._notices = HostNotices(progress)
        self._bought = BoughtHosts(
            provider, environment_uid=identity.environment_uid, ledger=ledger, gate=gate,
            clock=clock, notices=self._notices, task_group=task_group, fence=identity.fence,
            row_of=self._row_of,
        )  # fmt: skip
        self._silence = Silence(
            ledger=ledger, gate=gate, clock=clock, notices=self._notices, task_group=task_group,
            fence=identity.fence, tell_waiting=self._tell_waiting, changed=self._note_changed,
        )  # fmt: skip
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
        self._news = NewsWriter(
            ledger, gate, task_group, fence=identity.fence, clock=clock,
            note=self._note, note_commits=note_told,
        )  # fmt: skip
        self._rows = BatchedCalls[str, dict[str, Instance]](
            lambda uids: {one.uid: one for one in ledger.read_book((), tuple(uids)).instances},
            gate=gate, task_group=task_group, name="rows of hosts",
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

    async def watch_silence(self) -> None:
        """Mark hosts that miss heartbeats, and those that are heard again, until it is cancelled."""
        await self._silence.watch(self._sessions.values)

    def unheard_ms(self, instance_uid: str) -> int:
        """Say for how long a host has certainly heard nothing; 0 where that is not known."""
        session = self._sessions.get(instance_uid)
        if session is None or session.unheard_since_ms is None:
            return 0
        return self._clock.boot_ms() - session.unheard_since_ms

    def forget_job(self, job: Job) -> None:
        self.output.forget_job(job)
        session = self._sessions.get(job.instance_uid)
        if session is not None:
            session.records.pop(job.key, None)

    def output_complete(self, job: Job) -> bool:
        """Tell whether all that the job wrote is in the log store."""
        session = self._sessions.get(job.instance_uid)
        record = None if session is None else session.records.get(job.key)
        return self.output.is_complete(job, record)

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
        if not session.waiters:
            session.is_wait_reported = False
        session.waiters.append(waiter)
        session.is_wanted.set()
        told = asyncio.get_running_loop().call_later(
            REACH_TOLD_SECONDS, self._tell_waiting, session
        )
        try:
            async with asyncio.timeout(REACH_TIMEOUT_SECONDS):
                return await waiter
        except (TimeoutError, NameUnknown):
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
            await wait_for_first(tasks)
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
        self._notices.left_out(instance, problem, session.problem if session else "")

    def _tell_waiting(self, session: Session) -> None:
        if not session.is_wait_reported:
            session.is_wait_reported = True
            self._notices.waiting(session.instance, session.problem, REACH_TIMEOUT_SECONDS)

    async def release(self, instance: Instance) -> bool:
        """
        End a leaving instance for good; False when it is gone, or was taken back meanwhile.

        From the look at its row on nobody reaches it: who takes it back later makes it anew.
        """
        assert instance.uid not in self._departing, instance.name
        departing = self._departing[instance.uid] = asyncio.Event()
        try:
            if not await self._is_leaving(instance):
                return False
            session = self._sessions.get(instance.uid)
            if session is not None:
                await self._drop(session)
                self._fail_waiters(
                    session, TemporaryError(f"host {instance.name} is being released")
                )
            told = asyncio.get_running_loop().call_later(
                REACH_TOLD_SECONDS, self._notices.releasing, instance
            )
            try:
                await self._provider.release(request_of(instance))
            except ProviderError as problem:
                # No job was ever given to it, so nothing is lost with it: a wrong address must
                # not keep its fleet for ever. What was bought costs until it is released.
                if instance.install_id or instance.provider == LOCAL or instance.is_bought:
                    raise
                self._notices.given_up(instance, problem)
            finally:
                told.cancel()
            return True
        finally:
            del self._departing[instance.uid]
            departing.set()

    async def _is_leaving(self, instance: Instance) -> bool:
        row = await self._row_of(instance.uid)
        return row is not None and row.state is InstanceState.TERMINATING

    async def _row_of(self, uid: str) -> Instance | None:
        """Read an instance from the ledger; None: it is terminated."""
        return (await self._rows(uid)).get(uid)

    async def _drop(self, session: Session) -> None:
        self._sessions.pop(session.instance.uid, None)
        session.end_grace()
        if session.task is not None:
            session.task.cancel()
        if session.host is not None:
            host, session.host = session.host, None
            await host.close()

    # -- one host -------------------------------------------------------------------------------

    async def _keep(self, session: Session) -> None:
        delay = RECONNECT_FIRST_SECONDS
        while True:
            is_refused, is_break, is_reported = False, True, False
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
                        session.reported = ""
                problem = "the connection was lost"
            except OwnedElsewhere as refusal:
                problem, is_break = str(refusal), False
                is_reported = self._fail_waiters(session, refusal)
            except ProviderError as failure:
                problem = str(failure)
                is_refused = isinstance(failure, SignInRefused)
                is_break = isinstance(failure, TemporaryError)
                if not is_break or isinstance(failure, NameUnknown):
                    is_reported = self._fail_waiters(session, failure)
            except LedgerUnavailable as failure:
                # Nothing was acknowledged, so the host will say it again.
                problem = f"its report cannot be stored: {failure}"
            await self._silence.begin(session, problem, is_break=is_break, is_reported=is_reported)
            if is_refused:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REFUSED_SECONDS):
                        await session.is_wanted.wait()
            if await self._is_gone(session.instance):
                self._sessions.pop(session.instance.uid, None)
                session.end_grace()
                return
            if session.instance.is_bought and await self._has_ended(session):
                return
            if is_refused:
                continue
            await asyncio.sleep(delay)
            delay = min(delay * 2, RECONNECT_MAX_SECONDS)

    async def _is_gone(self, instance: Instance) -> bool:
        """Tell whether the ledger has written off the host: it was declared lost, say."""
        try:
            return await self._row_of(instance.uid) is None
        except LedgerUnavailable:
            return False

    async def _has_ended(self, session: Session) -> bool:
        """Tell whether an instance of a cloud no longer exists; its jobs are lost, and it is not asked again."""
        try:
            has_ended = await self._bought.note_if_ended(session.instance)
        except LedgerUnavailable:
            return False
        if has_ended:
            session.end_grace()
            self.rows_changed = True
            self.wake()
        return has_ended

    async def create(self, instance: Instance) -> bool:
        """See `apply.host_access.HostAccess.create`."""
        is_created = await self._bought.create_or_wait(instance)
        self.rows_changed = True
        self.wake()
        return is_created

    async def update_shared(self, fleet: str, shared: Mapping[str, Any]) -> None:
        """See `apply.host_access.HostAccess.update_shared`."""
        await self._bought.update_shared(fleet, await self.instances(fleet), shared)

    async def forget_fleet(self, cloud: str, fleet: str) -> None:
        """See `apply.host_access.HostAccess.forget_fleet`."""
        await self._bought.forget_fleet(cloud, fleet)

    async def _greet(self, session: Session) -> Host:
        if session.instance.is_bought:
            prepared = await self._bought.prepare(session.instance)
            self.rows_changed |= prepared != session.instance
            session.instance = prepared
        request = request_of(session.instance)
        # After a lost connection the agent is most likely there: one call tells, where `ensure` takes
        # six commands on a host over SSH. When a switch fails, all hosts of a fleet are lost at once.
        is_installed, session.is_installed = session.is_installed, False
        if not is_installed:
            try:
                notes = await self._provider.ensure(request)
            except AgentFound as found:
                await check_is_lost(session, found, self._row_of)
                raise
            for note in notes:
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
        self._notices.note(session.instance, note)

    async def _take_hello(self, session: Session, host: Host) -> None:
        seen = host.seen
        machine = (seen.machine_id, seen.boot_id)
        await refuse_same_machine(session, self._sessions.values(), machine, self._row_of)
        # Or it were marked unreachable after its hello. A hello that fails is news again.
        session.end_grace()
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
        if missing := missing_devices_text(session.instance.declared, seen.report.gpus):
            self._tell_note(session, missing)
        session.cursor = seen.cursor
        session.host = host
        session.is_installed = True
        self._hellos += 1
        session.generation = self._hellos
        session.grace_until_ms = 0
        session.is_overdue = False
        session.problem = ""
        self.greeted[session.instance.uid] = None
        self._note(moved)
        for waiter in session.waiters:
            if not waiter.done():
                waiter.set_result(host)
        session.waiters.clear()
        for record in list(session.records.values()):
            await self.output.follow(host, record)
        self.wake()

    async def _listen(self, session: Session, host: Host) -> None:
        calls = self._nursery.start(
            serve_rank_calls(
                host, lambda call: find_rank(session, self._sessions.values(), call), self._nursery
            ),
            name=f"rank calls of host {session.instance.name}",
        )
        gpus = self._nursery.start(
            watch_gpus(
                host,
                note=lambda use: self._note_gpu_use(session, use),
                lost=lambda why: self._note_broken(session, why),
            ),
            name=f"GPUs of host {session.instance.name}",
        )
        try:
            async for batch in host.news():
                await self._take(session, host, batch)
        finally:
            calls.cancel()
            gpus.cancel()
            await host.close()

    def _note_broken(self, session: Session, why: str) -> None:
        self.broken[session.instance.uid] = why
        self.wake()

    def _note_taken_away(self, session: Session, why: str) -> None:
        """Note it once: each job says so, first when it is asked to end and then by how it ended."""
        if why not in session.noted:
            session.noted.add(why)
            self._note_broken(session, why)

    async def _note_gpu_use(self, session: Session, use: GpuUse) -> None:
        await self._gate(
            lambda: self._ledger.note_gpu_processes(
                session.instance.uid, use, fence=self._identity.fence
            )
        )
        self.changed[session.instance.uid] = None
        self.wake()

    async def _take(self, session: Session, host: Host, batch: Sequence[Event | LogData]) -> None:
        events = [item for item in batch if isinstance(item, Event)]
        for item in batch:
            if isinstance(item, LogData):
                run_uid = self.output.take(item)
                if run_uid is not None:
                    self.touched[run_uid] = None
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
            if record.cause is Cause.INTERRUPTED:
                self._note_taken_away(session, record.message.partition(",")[0])
        # Also those whose rows had ended before: only now the host may forget them.
        self._note([one.key for one in records if one.state in _ENDED])
        await host.acknowledge(cursor, commits)
        self.wake()

    def _note_changed(self, session: Session) -> None:
        self.changed[session.instance.uid] = None
        self.wake()

    def _note(self, keys: Iterable[JobKey]) -> None:
        for key in keys:
            self.touched[key.run_uid] = None

    def _fail_waiters(self, session: Session, problem: ProviderError) -> bool:
        """End the waiting of all steps; False if none waited."""
        waiting = [waiter for waiter in session.waiters if not waiter.done()]
        for waiter in waiting:
            waiter.set_exception(problem)
        session.waiters.clear()
        return bool(waiting)


def _needs_hello(session: Session, instance: Instance) -> bool:
    """Tell whether only a new hello reports its capacity, or makes it ready again."""
    if request_of(session.instance) != request_of(instance):
        return True
    # It was leaving and has been taken back.
    return session.host is not None and instance.state is InstanceState.PROVISIONING
