"""
Somebody at a terminal who applies: what `fleetform apply` does, on the simulated machine.

Whatever was entered before is seen through first; then a plan is made, looked at for a moment, and
entered; then whoever has the lock carries out all that was entered, and the others wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from fleetform.apply.execute import Outcome, execute
from fleetform.checker import check
from fleetform.checker.saved import check_saved
from fleetform.model.apply import Accepted
from fleetform.model.instance import InstanceState
from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import Live
from fleetform.model.plan import Kept, Permissions, Plan, Scope
from fleetform.model.ports import (
    Clock,
    FenceLost,
    Ids,
    LedgerOutgrown,
    LedgerUnavailable,
    PolicyRefused,
    StalePlan,
)
from fleetform.plan.planner import plan as make_plan
from fleetform.plan.preconditions import failing
from fleetform.plan.serialize import dump, load, sealed
from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.contract.hosts import Identity
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.spec.desired import Desired, digests_of
from simulation.apply.drift_injection import DriftInjection
from simulation.apply.ports import Torn
from simulation.apply.process import Crashed, Process, Room
from simulation.apply.provider_stub import ProviderStub
from simulation.apply.reach import Reach
from simulation.apply.runs import RunDriver
from simulation.apply.witnessed import Witnessed
from simulation.controller import Silent

__all__ = ["PlanFile", "UserActor"]

WHOLE = Scope()
THINK_SECONDS = 0.5
FULL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as `plan --out` has written it."""

    plan: Plan
    body: bytes


@functools.lru_cache(maxsize=16)
def _read(body: bytes) -> Plan:
    """Read an entered plan; one that is resumed again and again is read once."""
    return load(body)


class UserActor:
    """
    One name, one process after another.

    `on_plan` is called for every plan that is made.
    """

    def __init__(
        self, name: str, room: Room, clock: Clock, ids: Ids, on_plan: Callable[[], None]
    ) -> None:
        self._ids = ids
        self.name = name
        self._room = room
        self._clock = clock
        self._on_plan = on_plan
        self._lives = 0
        self._decay = DriftInjection(room)
        self._provider_stub = ProviderStub(room.machine)
        self.last_plan: Plan | None = None

    async def apply(
        self,
        tree: Desired,
        permissions: Permissions,
        scope: Scope = WHOLE,
        *,
        refresh: bool = False,
    ) -> str:
        """
        Returns how it ended: `done`, `empty`, `stale`, `refused`, `recovering`, `full`, `crashed`.

        With `refresh` the world is asked first.
        """
        return await self.live(
            lambda process: self._apply(process, tree, permissions, scope, refresh=refresh)
        )

    async def apply_file(self, file: PlanFile) -> str:
        """Carry out a plan from its file, if it is still right for what there is now."""
        return await self.live(lambda process: self._apply_file(process, file))

    async def rebuild(self, tree: Desired) -> str:
        """Put the ledger together again from what the hosts remember."""
        return await self.live(lambda process: self._rebuild(process, tree))

    async def attend(self) -> str:
        """Take the lock for a while and see to what is under way."""
        return await self.live(self._attend)

    def plan(
        self,
        tree: Desired,
        permissions: Permissions,
        scope: Scope = WHOLE,
        *,
        live: Live | None = None,
    ) -> Plan:
        """Plan what there is at this moment, or what there was in `live`."""
        if live is None:
            live = self._room.disk.ledger.read_live(digests_of(tree.resources))
        live = self._room.claimed(self._provider_stub, tree, live)  # type: ignore[arg-type]  # a part of it
        now_ms = self._clock.now_ms()
        made = make_plan(tree, live, permissions=permissions, scope=scope, now_ms=now_ms)
        violations = check(made, tree, live, permissions, scope)
        self._room.judge.entries.planned(made, [one.sentence for one in violations])
        self._on_plan()
        self.last_plan = made
        return made

    def keep(self, tree: Desired, permissions: Permissions, scope: Scope) -> PlanFile:
        """Write a plan into a file, as one of its kind."""
        made = self.plan(tree, permissions, scope)
        kept = Kept(self._ids.uid(), self._clock.now_ms(), self.name, permissions)
        made = sealed(replace(made, kept=kept))
        self._room.judge.entries.planned(made, ())
        return PlanFile(made, dump(made))

    async def live(self, what: Callable[[Process], Awaitable[object]]) -> str:
        """Do something in a process of its own; returns how that ended."""
        self._lives += 1
        process = Process(f"{self.name} {self._lives}", self._room)
        judge = self._room.judge
        try:
            ending = await what(process)
        except (Crashed, Torn):
            ending = "crashed"
        except FenceLost:
            ending = "taken over"
        except LedgerUnavailable:
            ending = "full"
        except LedgerOutgrown:
            ending = "recovering"
        except PolicyRefused:
            ending = "refused"
        finally:
            process.end()
        judge.note(judge.now, f"{process.name}: {ending}")
        return str(ending)

    # -- apply ----------------------------------------------------------------------------

    async def _refreshed(
        self, process: Process, tree: Desired, permissions: Permissions, scope: Scope
    ) -> Plan:
        """Ask the world, and plan with what it has become."""
        before, last = self._decay.missing(), self._decay.last_of_plans()
        reach = Reach(process, process.ledger, self._clock, Identity("", "", 0, 0))
        live = await self._room.look(process.ledger, reach, process)  # type: ignore[arg-type]  # has what is asked of it
        # What nobody has touched while the world was asked.
        untouched = self._decay.last_of_plans() == last
        missing = before & self._decay.missing() if untouched else ()
        made = self.plan(tree, permissions, scope, live=live)
        if not permissions.destroy:
            self._decay.judge(made, tree, scope, missing)
        return made

    async def _apply(
        self,
        process: Process,
        tree: Desired,
        permissions: Permissions,
        scope: Scope,
        *,
        refresh: bool,
    ) -> str:
        if not await self._settle(process):
            return "recovering"
        if refresh:
            made = await self._refreshed(process, tree, permissions, scope)
        else:
            made = self.plan(tree, permissions, scope)
        if made.is_empty:
            return "recovering" if self._is_recovering() else "empty"
        await asyncio.sleep(self._room.faults.source.random() * THINK_SECONDS)
        return await self._enter(process, made, dump(made), permissions)

    async def _apply_file(self, process: Process, file: PlanFile) -> str:
        if not await self._settle(process):
            return "recovering"
        if file.plan.is_empty:
            return "empty"
        assert file.plan.kept is not None
        live = self._room.disk.ledger.read_live()
        if failing(file.plan, live) or check_saved(file.plan, live):
            return "stale"
        await asyncio.sleep(self._room.faults.source.random() * THINK_SECONDS)
        return await self._enter(process, file.plan, file.body, file.plan.kept.permissions)

    async def _enter(
        self, process: Process, made: Plan, body: bytes, permissions: Permissions
    ) -> str:
        asks = not self._is_managed()
        if asks and await self._refuse(process):
            return "recovering"
        ledger = self.witnessed(process, asked=asks)
        try:
            accepted = await process(
                lambda: ledger.accept(
                    made,
                    body,
                    permissions=permissions,
                    who=self.name,
                    now_ms=self._clock.now_ms(),
                )
            )
        except StalePlan as stale:
            self._room.judge.note(self._room.judge.now, f"stale: {stale}")
            return "stale"
        if accepted.state == "already-applied":
            return "stale"
        return "done" if await self._settle(process) else "recovering"

    async def _settle(self, process: Process) -> bool:
        """See everything through that was entered; False when the ledger is not the newest."""
        while await process(process.ledger.unfinished_apply) is not None:
            if not self._room.lock.take(process):
                await self._room.lock.wait()
                process.check_alive()
                continue
            if await self._refuse(process):
                return False
            await self._drive(process)
            self._room.lock.release(process)
        return True

    async def _refuse(self, process: Process) -> bool:
        """Compare the ledger with what the world remembers; True when it knows less."""
        ledger = process.ledger
        live = await process(self._room.disk.outline)
        inventory = self._room.machine.inventory(live.environment_uid)
        proof = self._proof(process, inventory, live)
        if proof:
            # Somebody may have written down more, and told hosts, since it was read.
            proof = self._proof(process, inventory, await process(self._room.disk.outline))
        if proof:
            await process(lambda: ledger.begin_recovery(proof))  # type: ignore[attr-defined]  # of the stored one
            return True
        return live.status is LedgerStatus.RECOVERING

    def _proof(self, process: Process, inventory: tuple[InstanceSeen, ...], live: Live) -> str:
        if process.fence:
            # Of the lease that was just taken: no host can have heard it, unless from another.
            live = replace(live, fence=process.fence - 1)
        return self._room.outgrown_by(inventory, live)

    def _is_managed(self) -> bool:
        if not self._room.lock.lease:
            return self._room.lock.holder is not None
        return self._room.disk.lease_left_ms(self._clock.now_ms()) > 0

    def _is_recovering(self) -> bool:
        rows = self._room.disk.ask("SELECT status FROM meta")
        return rows == [(LedgerStatus.RECOVERING.value,)]

    async def manage(self, process: Process, goes_on: Callable[[Process], Awaitable[bool]]) -> str:
        """With the lock taken, see to all that is entered and runs, as long as `goes_on`."""
        if await self._refuse(process):
            return "recovering"
        while True:
            await self._drive(process)
            if not await goes_on(process):
                return "done"

    # -- driving --------------------------------------------------------------------------

    async def _drive(self, process: Process) -> None:
        """Carry out all that was entered, under a fence of one's own."""
        reach, runs = await self._take_over(process)
        rounds = asyncio.get_running_loop().create_task(self._rounds(process, runs))
        try:
            ledger = self.witnessed(process)
            while found := await process(process.ledger.unfinished_apply):
                accepted, body = found
                try:
                    outcome = await execute(
                        _read(body),
                        accepted,
                        ledger=ledger,  # type: ignore[arg-type]  # has the calls of an apply
                        gate=process,
                        access=reach,  # type: ignore[arg-type]  # its sessions have those of steps
                        clock=self._clock,
                        progress=Silent(),
                        fence=reach.fence,
                    )
                    await process(self._ending(ledger, accepted, outcome, reach.fence))
                except LedgerUnavailable:
                    await asyncio.sleep(FULL_SECONDS)
                self._room.lock.wake()
            await process.stand_still()
            process.require()
            await self._leave_in_order(reach, runs)
        finally:
            rounds.cancel()

    def witnessed(self, process: Process, *, asked: bool = True) -> Witnessed:
        room = self._room
        return Witnessed(process.ledger, room.disk, room.judge, process.name, asked=asked)

    def _ending(
        self, ledger: Witnessed, accepted: Accepted, outcome: Outcome, fence: int
    ) -> Callable[[], None]:
        return lambda: ledger.finish_apply(
            accepted.apply_uid,
            state=outcome.state,
            summary=outcome.summary,
            fence=fence,
            now_ms=self._clock.now_ms(),
        )

    async def _take_over(self, process: Process) -> tuple[Reach, RunDriver]:
        ledger = process.ledger
        # A lease is taken with its fence.
        fence = process.fence or await process(
            lambda: ledger.take_fence(who=process.name, now_ms=self._clock.now_ms())
        )
        ((uid, ledger_id, epoch),) = self._room.disk.ask(
            "SELECT environment_uid, ledger_id, epoch FROM meta"
        )
        identity = Identity(uid, ledger_id, epoch, fence)
        reach = Reach(process, ledger, self._clock, identity)
        runs = RunDriver(process, self._clock, identity)
        reach.before_departure = lambda: runs.round(start=False)
        return reach, runs

    async def _rounds(self, process: Process, runs: RunDriver) -> None:
        """Let runs move while a plan is carried out."""
        source = self._room.faults.source
        for _ in range(source.randint(0, 2)):
            await asyncio.sleep(source.random() * 0.3)
            if process.dead:
                return
            if process.is_still or not self._room.lock.is_sure(process):
                continue
            try:
                runs.round()
            except (LedgerUnavailable, FenceLost):
                continue
            except (LedgerOutgrown, Crashed):
                # Whoever carries out the plan meets the same.
                return

    async def _leave_in_order(self, reach: Reach, runs: RunDriver) -> None:
        with contextlib.suppress(LedgerUnavailable, ProviderError):
            runs.round()
            await reach.let_leave()

    async def _attend(self, process: Process) -> str:
        if not await self._settle(process):
            return "recovering"
        await self._lock(process)
        if await self._refuse(process):
            return "recovering"
        reach, runs = await self._take_over(process)
        process.require()
        disk = self._room.disk
        fleets = disk.ask(
            "SELECT DISTINCT fleet FROM instances WHERE state = 'provisioning' ORDER BY fleet"
        )
        for (fleet,) in fleets:
            for instance in disk.instances(fleet):
                if instance.state is InstanceState.PROVISIONING:
                    with contextlib.suppress(ProviderError):
                        await reach.reach(instance)
        runs.round()
        await reach.let_leave()
        return "done"

    async def _lock(self, process: Process) -> None:
        while not self._room.lock.take(process):
            await self._room.lock.wait()
            # The kernel gives a lock to nobody who has died while they waited for it.
            process.check_alive()

    # -- recovery -------------------------------------------------------------------------

    async def _rebuild(self, process: Process, tree: Desired) -> str:
        await self._lock(process)
        ledger = process.ledger
        reach = Reach(process, ledger, self._clock, Identity("", "", 0, 0))
        if not await self._room.rebuild(ledger, reach, tree, process):  # type: ignore[arg-type]  # as above
            return "recovering"
        self._room.judge.rebuilt(self._room.disk)
        process.check_alive()
        return "done"
