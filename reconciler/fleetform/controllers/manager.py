"""
The manager of one environment: hosts, runs and accepted plans, driven together.

Exactly one process is it at a time, by the environment's lock: an `apply` that waits for its
runs, or `serve`. Plans come in through the ledger, from this process or another, and are
carried out oldest first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fleetform.apply.execute import Outcome, execute
from fleetform.controllers.disks import Disks
from fleetform.controllers.fleets import Departures
from fleetform.controllers.host_access import ManagedHostAccess
from fleetform.controllers.hosts import HostSessions
from fleetform.controllers.runs import RunController
from fleetform.controllers.task_group import TaskGroup
from fleetform.controllers.volumes import Volumes
from fleetform.model.apply import Accepted
from fleetform.model.history import LogLevel
from fleetform.model.plan import Plan
from fleetform.model.ports import (
    BlobStore,
    Clock,
    Gate,
    Ledger,
    LedgerUnavailable,
    LogStore,
    Progress,
)
from fleetform.providers.contract.hosts import HostProvider, Identity

POLL_SECONDS = 0.02
"""How late another process's commit is seen; a look costs about 10 microseconds."""

REST_MAX_MS = 1000
"""A round is due by then whatever happens: deadlines pass, and waiting takeovers are looked for."""

STEPS_SECONDS = 15.0
"""
How long the runs of a plan wait for its steps before they start on the hosts that are there.

A fleet gives its hosts ten seconds after the first one has answered, which takes three.
"""

UNAVAILABLE_SECONDS = 1.0
"""Pause when the ledger cannot be written: a full disk is not emptied faster."""

LoadPlan = Callable[[bytes], Plan]


class Manager:
    """
    Runs until its owner says that it is done.

    `fence` was taken under the environment's lock. `load_plan` reads what `accept` stored.
    """

    def __init__(
        self,
        *,
        provider: HostProvider,
        identity: Identity,
        ledger: Ledger,
        gate: Gate,
        logs: LogStore,
        blobs: BlobStore,
        clock: Clock,
        progress: Progress,
        load_plan: LoadPlan,
        poll_seconds: float = POLL_SECONDS,
        ends_only: bool = False,
        note_told: Callable[[int], None] = lambda _commits: None,
    ) -> None:
        """
        With `ends_only` nothing begins: no plan is carried out, and no run starts.

        `note_told` is called with the ledger's commits before a host is told that what it said is
        written down, on the thread of the writer.
        """
        self._note_told = note_told
        self._ends_only = ends_only
        self._poll_seconds = poll_seconds
        self._provider = provider
        self._identity = identity
        self._ledger = ledger
        self._gate = gate
        self._logs = logs
        self._blobs = blobs
        self._clock = clock
        self._progress = progress
        self._load_plan = load_plan
        self._awake = asyncio.Event()
        self._applying: str = ""
        self._look_for_plans = True
        self._serial: int | None = None
        self.runs: RunController | None = None
        self.departures: Departures | None = None
        self.has_failed = False
        """Steps of the plan that was carried out last have failed."""

    def wake(self) -> None:
        """Look at once: something was written or heard."""
        self._awake.set()

    def plan_accepted(self) -> None:
        """Say that this process has entered a plan."""
        self._look_for_plans = True
        self.wake()

    def written_elsewhere(self) -> None:
        """Note that another process has written to the ledger: a plan, a request of people."""
        if self.runs is not None:
            self.runs.reload()
        self.plan_accepted()

    async def run(self, finished: Callable[[Manager], bool]) -> None:
        """
        Manage until `finished` says so, which is asked after every round.

        Raises:
            FenceLost: Another process has become the manager.
        """
        async with TaskGroup() as task_group:
            hosts = HostSessions(
                provider=self._provider,
                identity=self._identity,
                ledger=self._ledger,
                gate=self._gate,
                logs=self._logs,
                clock=self._clock,
                progress=self._progress,
                task_group=task_group,
                wake=self.wake,
                note_told=self._note_told,
            )
            task_group.start(hosts.watch_silence(), name="silence of hosts")
            disks = Disks(
                hosts=hosts,
                provider=self._provider,
                ledger=self._ledger,
                gate=self._gate,
                clock=self._clock,
                progress=self._progress,
                task_group=task_group,
                fence=self._identity.fence,
            )
            self.runs = RunController(
                ledger=self._ledger,
                gate=self._gate,
                hosts=hosts,
                disks=disks,
                blobs=self._blobs,
                clock=self._clock,
                progress=self._progress,
                task_group=task_group,
                fence=self._identity.fence,
                starts=not self._ends_only,
            )
            departures = self.departures = Departures(
                hosts=hosts,
                ledger=self._ledger,
                gate=self._gate,
                clock=self._clock,
                progress=self._progress,
                task_group=task_group,
                fence=self._identity.fence,
            )
            volumes = Volumes(hosts=hosts, clock=self._clock, progress=self._progress)
            access = ManagedHostAccess(hosts, departures, volumes, disks)
            await task_group.run(self._loop(self.runs, access, task_group, finished))

    async def _loop(
        self,
        runs: RunController,
        access: ManagedHostAccess,
        task_group: TaskGroup,
        finished: Callable[[Manager], bool],
    ) -> None:
        told = ""
        while True:
            self._awake.clear()
            try:
                await self._start_plan(runs, access, task_group)
                await runs.round(has_plan=bool(self._applying))
                access.departures.round(runs.mirror)
                access.volumes.round(runs.mirror)
                access.disks.round(runs.mirror)
            except LedgerUnavailable as problem:
                # A disk or a server may be away for hours.
                if str(problem) != told:
                    told = str(problem)
                    self._progress.notice(
                        f"waiting for the ledger: {told}",
                        event="ledger.unavailable",
                        level=LogLevel.ERROR,
                    )
                runs.reload()
                await asyncio.sleep(UNAVAILABLE_SECONDS)
                continue
            if told:
                told = ""
                self._progress.notice("the ledger is available again", event="ledger.available")
            is_moving = access.departures.is_busy or access.disks.is_busy or runs.is_growing
            under_way = self._applying or self._look_for_plans or is_moving
            if not under_way and finished(self):
                return
            try:
                await self._rest(runs)
            except LedgerUnavailable:
                # The round meets the same, says so, and waits.
                self._look_for_plans = True

    async def _rest(self, runs: RunController) -> None:
        """Wait for news, for another process's commit, or for the next time that is due."""
        until_ms = self._clock.boot_ms() + REST_MAX_MS
        while not self._awake.is_set() and self._clock.boot_ms() < until_ms:
            seconds = (until_ms - self._clock.boot_ms()) / 1000
            if runs.next_at_ms is not None:
                seconds = min(seconds, (runs.next_at_ms - self._clock.now_ms()) / 1000)
            if seconds <= 0:
                return
            if not await self._saw_something(seconds):
                continue
            serial = await self._gate(self._ledger.serial)
            if serial != self._serial:
                self._serial = serial
                self._look_for_plans = True
                return

    async def _saw_something(self, seconds: float) -> bool:
        """
        Wait for news so long at most; True where the ledger's serial has to be asked for.

        Most looks at it see what was seen before. They are taken beside the waiting, by a timer:
        to wake up for each, and to ask another thread, costs ten times what the look does.
        """
        loop = asyncio.get_running_loop()
        asks = False
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer, asks
            glance = self._ledger.glance()
            if glance is not None and glance == self._serial:
                timer = loop.call_later(self._poll_seconds, look)
                return
            asks = True
            if not limit.expired():
                limit.reschedule(loop.time())

        timer = loop.call_later(self._poll_seconds, look)
        try:
            async with asyncio.timeout(seconds) as limit:
                await self._awake.wait()
        except TimeoutError:
            pass
        finally:
            timer.cancel()
        return asks

    async def _start_plan(
        self, runs: RunController, access: ManagedHostAccess, task_group: TaskGroup
    ) -> None:
        if self._applying or not self._look_for_plans:
            return
        # Before the look, so that what comes in meanwhile is looked at as well.
        self._look_for_plans = False
        if self._ends_only:
            return
        try:
            found = await self._gate(self._ledger.unfinished_apply)
        except LedgerUnavailable:
            self._look_for_plans = True
            raise
        if found is None:
            return
        accepted, body = found
        try:
            plan = self._load_plan(body)
        except ValueError as problem:
            await self._refuse_plan(accepted, f"this release cannot read its plan: {problem}")
            return
        self._applying = accepted.apply_uid
        task_group.start(self._carry_out(accepted, plan, runs, access), name="apply")

    async def _refuse_plan(self, accepted: Accepted, why: str) -> None:
        """End an apply that cannot be executed here, or it would keep every manager from work."""
        self._progress.notice(why, event="plan.refused", level=LogLevel.ERROR)
        await self._gate(
            lambda: self._ledger.finish_apply(
                accepted.apply_uid,
                state="failed",
                summary=why,
                fence=self._identity.fence,
                now_ms=self._clock.now_ms(),
            )
        )
        self._look_for_plans = True

    async def _carry_out(
        self, accepted: Accepted, plan: Plan, runs: RunController, access: ManagedHostAccess
    ) -> None:
        reading = asyncio.create_task(self._read_again(runs))
        try:
            outcome = await execute(
                plan,
                accepted,
                ledger=self._ledger,
                gate=self._gate,
                access=access,
                clock=self._clock,
                progress=self._progress,
                fence=self._identity.fence,
            )
            self.has_failed = bool(outcome.failed)
            await self._gate(
                lambda: self._ledger.finish_apply(
                    accepted.apply_uid,
                    state=outcome.state,
                    summary=_summary(outcome),
                    fence=self._identity.fence,
                    now_ms=self._clock.now_ms(),
                )
            )
            self._progress.plan_finished(plan, outcome.state)
        except LedgerUnavailable as problem:
            # What was done stays an open operation; the next look asks for it again.
            self._progress.notice(
                f"waiting for the ledger to apply the plan: {problem}",
                event="ledger.unavailable",
                level=LogLevel.ERROR,
            )
            await asyncio.sleep(UNAVAILABLE_SECONDS)
        finally:
            reading.cancel()
            self._applying = ""
            self._look_for_plans = True
            runs.reload()
            self.wake()

    async def _read_again(self, runs: RunController) -> None:
        """
        Let runs of the plan start on the hosts that are there while a step waits for others.

        At once they would all start on the host that answers first.
        """
        while True:
            await asyncio.sleep(STEPS_SECONDS)
            runs.reload()
            self.wake()


def _summary(outcome: Outcome) -> str:
    # A step's key is `verb:kind/name`.
    failed = (f"{key.partition(':')[2]}: {error}" for key, error in outcome.failed.items())
    return "\n".join([outcome.summary, *failed])
