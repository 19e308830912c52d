"""
Applies a plan: enters it, then executes it or follows the controller that does.

One process manages an environment at a time. An `apply` that finds none, or a background
controller, becomes the manager until its own runs are over; one that finds `serve` or another
`apply` leaves its plan in the ledger and watches. When the manager goes away meanwhile, a watcher
takes its place, so that nothing is left lying.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING

from fleetform.api.waiting import stuck_runs
from fleetform.app.clock import SystemClock
from fleetform.app.doctor import require_tools
from fleetform.app.driving import build_manager, under
from fleetform.app.frozen_contents import freeze_contents
from fleetform.app.handover import PickUpWatch, become_manager, take_from_background
from fleetform.app.interactive_run import remove_documents
from fleetform.app.ledger import (
    host_provider,
    open_for_writing,
    refuse_if_hosts_know,
    refuse_if_outgrown,
)
from fleetform.app.managing import try_manage
from fleetform.app.problems import LedgerProblem, Problem
from fleetform.app.wait_policy import WaitPolicy
from fleetform.model.apply import Accepted
from fleetform.model.figures import first_of
from fleetform.model.leadership import BACKGROUND
from fleetform.model.ports import FenceLost, RunHistory
from fleetform.plan.exit import apply_code
from fleetform.plan.serialize import dump
from fleetform.plan.serialize import load as load_plan
from fleetform.plan.wait_targets import ended_besides, ending, waited_for
from fleetform.spec.names import natural_order
from fleetform.store.blobs import FileBlobStore
from fleetform.store.errors import LedgerError, UnreachableLedgerError
from fleetform.store.gate import WriterGate
from fleetform.views.controllers import held_by

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.controllers.manager import Manager
    from fleetform.model.leadership import Holder, ManagerLease
    from fleetform.model.plan import Plan
    from fleetform.model.ports import Clock, Gate, Ledger, Progress
    from fleetform.model.run import RunState
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.store.ledger import StoredLedger


FOLLOW_SECONDS = 0.05
"""How late a follower sees the manager's commits."""

OUTPUT_GRACE_MS = 3000
"""How long to wait for the rest of the output once every run is over."""

LEDGER_AWAY_MS = 60_000
"""How long a ledger's server may be away: a restart or a failover takes seconds."""

HANDED_OVER_MS = 60_000
"""
How long an apply that does not wait for runs waits for steps that another controller executes.

Rows and hosts of this machine take seconds. An apply that does not wait for runs does not wait
for what takes longer.
"""


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """
    What an apply came to.

    `state` is `done`, `failed` (a step failed, or a rebuild of the ledger has put an end to it), or
    `handed-over` (another controller applies it, and has not finished after `HANDED_OVER_MS`).
    `failed_steps` are sentences, also about new hosts of a rollout. `runs` are those that were waited for. `messages` name what
    was not waited for any longer. `blocked` says of runs that were not waited for why they cannot start
    until a person does something.
    """

    state: str
    exit_code: int
    failed_steps: tuple[str, ...] = ()
    runs: tuple[RunHistory, ...] = ()
    messages: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


async def apply_plan(
    workspace: Workspace,
    plan: Plan,
    *,
    who: str,
    detach: bool,
    progress: Progress,
    entered: Collection[str] = (),
) -> ApplyResult:
    """
    Carry out `plan`, and wait for its runs unless `detach`; `entered` as in `plan.wait_targets`.

    Raises:
        StalePlan: Something that the plan touches is not as it was; nothing was changed.
        Problem: The ledger cannot be used, or hosts remember another one.
    """
    workspace.require_same_uid()
    with contextlib.ExitStack() as stack:
        ledger = stack.enter_context(contextlib.closing(open_for_writing(workspace)))
        hosts = host_provider(workspace)
        holder = workspace.manager()
        makes_way = False
        if holder is None:
            require_tools(workspace, plan)
            await refuse_if_outgrown(ledger, hosts)
            await refuse_if_hosts_know(ledger, hosts, plan)
        elif holder.command == BACKGROUND:
            makes_way = _makes_way(workspace, plan, holder, progress)
        # Files may be large, and a session that waits for its agent must not.
        await asyncio.to_thread(
            freeze_contents, workspace, plan, FileBlobStore(workspace.paths.blobs)
        )
        manager_lease = None
        if holder is not None and holder.command == BACKGROUND and not makes_way:
            # Before it is entered: a background controller would begin what is then taken from it.
            manager_lease = await take_from_background(
                workspace, who=who, command="apply", notice=progress.notice
            )
        if manager_lease is not None:
            stack.enter_context(manager_lease)
        try:
            accepted = ledger.accept(plan, dump(plan), who=who, now_ms=SystemClock().now_ms())
        except LedgerError as problem:
            raise LedgerProblem(str(problem), problem.advice) from problem
        if plan.destroys:
            remove_documents(workspace.root)
        apply = _Apply(
            workspace, plan, accepted, ledger, hosts, who, progress,
            detach=detach, leave=detach, asked=holder is None, manager_lease=manager_lease, makes_way=makes_way,
            entered=entered,
        )  # fmt: skip
        return await apply.finish()


def _makes_way(workspace: Workspace, plan: Plan, holder: Holder, progress: Progress) -> bool:
    """Tell whether a background controller keeps the environment, because this machine lacks what its clouds need."""
    try:
        require_tools(workspace, plan)
    except Problem as problem:
        progress.notice(f"the {held_by(holder)} stays the controller: {problem.message}")
        return True
    return False


async def settle(workspace: Workspace, *, who: str, progress: Progress) -> None:
    """
    Finish the applies that were entered before, so that a new plan is made of the actual state.

    It was approved when it was entered. A manager that is alive is waited for, also a background
    controller: the new plan may be looked at for long, and runs are driven meanwhile. Where a crash
    left no controller, it is applied here.
    """
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        hosts = host_provider(workspace)
        while (found := ledger.unfinished_apply()) is not None:
            accepted, body = found
            plan = load_plan(body)
            alone = workspace.manager() is None
            if alone:
                await refuse_if_outgrown(ledger, hosts)
                progress.notice("resuming the interrupted apply")
            apply = _Apply(
                workspace, plan, accepted, ledger, hosts, who, progress,
                detach=True, asked=alone, makes_way=True,
            )  # fmt: skip
            await apply.finish()


@dataclass
class _Apply:
    """One accepted plan on its way to its end."""

    workspace: Workspace
    plan: Plan
    accepted: Accepted
    ledger: StoredLedger
    hosts: HostProvider
    who: str
    progress: Progress
    _: KW_ONLY
    # Do not wait for runs; and for changes that another controller makes only so long.
    detach: bool
    leave: bool = False
    # The hosts were asked, and no other process has managed since.
    asked: bool = False
    # Taken already; used once.
    manager_lease: ManagerLease | None = None
    # A background controller carries it out; else its place is taken.
    makes_way: bool = False
    entered: Collection[str] = ()

    def __post_init__(self) -> None:
        self._leaves_at_ms = SystemClock().boot_ms() + HANDED_OVER_MS if self.leave else None
        self._names = waited_for(self.plan, self.entered)
        self._ending = {} if self.detach else ending(self.plan)
        besides = {} if self.detach else ended_besides(self.plan)
        self._wait_policy = WaitPolicy(
            ending={*self._ending, *besides}, clock=SystemClock(), notice=self.progress.notice
        )
        self._stops = self._new_stops()
        self._over_since_ms: int | None = None
        self._steps_reported: set[str] = set()
        self._followed: Holder | None = None
        self._failed_rollouts: tuple[str, ...] = ()

    async def finish(self) -> ApplyResult:
        if self._ending:
            names = ", ".join(
                sorted({one.name for one in self._ending.values()}, key=natural_order)
            )
            self.progress.notice(f"waiting for {names} to stop")
        with contextlib.closing(WriterGate()) as gate:
            while True:
                asked, self.asked = self.asked, False
                try:
                    if await self._is_over(gate):
                        break
                    async with self._lock() as manager_lease:
                        if manager_lease is not None:
                            self._tell_succession()
                            if not asked:
                                # Who managed may have gone before they asked, or have found out.
                                await refuse_if_outgrown(self.ledger, self.hosts, manager_lease)
                            await self._drive(gate, manager_lease)
                            break
                        if await self._follow(gate):
                            break
                except FenceLost as lost:
                    # Nothing was caused since. The manager of now applies the plan, and this process
                    # watches; where there is none, this process is the next.
                    self.progress.notice(f"this command lost the manager lease: {lost}")
                except UnreachableLedgerError as problem:
                    self.progress.notice(f"waiting for the ledger: {problem}")
                    await self._wait_for_ledger(gate)
            return await gate(self._result)

    async def _wait_for_ledger(self, gate: Gate) -> None:
        """
        Return once it answers.

        Raises:
            LedgerUnavailable: It does not in `LEDGER_AWAY_MS`; the plan is entered and stays so.
        """
        until_ms = SystemClock().boot_ms() + LEDGER_AWAY_MS
        while True:
            try:
                await gate(self.ledger.serial)
            except UnreachableLedgerError:
                if SystemClock().boot_ms() > until_ms:
                    raise
                await asyncio.sleep(1)
            else:
                return

    @contextlib.asynccontextmanager
    async def _lock(self) -> AsyncIterator[ManagerLease | None]:
        manager_lease, self.manager_lease = self.manager_lease, None
        if manager_lease is None:
            manager_lease = await self._take()
        try:
            yield manager_lease
        finally:
            if manager_lease is not None:
                manager_lease.release()

    async def _take(self) -> ManagerLease | None:
        if self.makes_way:
            return try_manage(self.workspace, who=self.who, command="apply")
        return await become_manager(
            self.workspace, who=self.who, command="apply", notice=self.progress.notice
        )

    def _tell_succession(self) -> None:
        """Say that the controller that had the plan is gone, and that this process executes it."""
        if self._followed is not None:
            gone = f"{self._followed.command} (pid {self._followed.pid})"
            self.progress.notice(
                f"{gone} no longer manages this environment; this command continues"
            )
            self._followed = None

    # -- driving ----------------------------------------------------------------------------------

    def _new_stops(self) -> Stops:
        return Stops(clock=SystemClock(), notice=self.progress.notice)

    async def _drive(self, gate: Gate, manager_lease: ManagerLease) -> None:
        self._stops = self._new_stops()
        manager = build_manager(
            self.workspace,
            self.ledger,
            gate,
            self.hosts,
            manager_lease,
            who=self.who,
            progress=self.progress,
        )
        await under(manager_lease, manager.run(self._driven))
        if manager.departures is not None:
            changed = dict.fromkeys(step.resource.name for step in self.plan.steps)
            failed = manager.departures.failed
            self._failed_rollouts = tuple(one for fleet in changed for one in failed.get(fleet, ()))

    def _driven(self, manager: Manager) -> bool:
        """Every accepted plan is carried out; are our runs over, and is their output here?"""
        assert manager.runs is not None
        # No other process would send it after this one has ended, and the work would go on for ever.
        if not self._stops.are_sent(manager.runs.owed_stops()):
            return False
        if self.detach:
            return True
        mirror = manager.runs.mirror
        states = {name: mirror.state_of(name) for name in self._names}
        if not self._wait_policy.is_over(states, mirror, has_failed=manager.has_failed):
            self._over_since_ms = None
            return False
        now = SystemClock().now_ms()
        if self._over_since_ms is None:
            self._over_since_ms = now
        # Output follows the end of its job, and on a slow line for long; as long as some comes, more does.
        still_since_ms = max(self._over_since_ms, manager.runs.last_output_ms)
        return not manager.runs.owes_output() or now - still_since_ms > OUTPUT_GRACE_MS

    # -- following --------------------------------------------------------------------------------

    async def _follow(self, gate: Gate) -> bool:
        """Watch until all is over (True), or until the manager has gone (False)."""
        holder = self.workspace.manager()
        if holder is not None:
            self.progress.notice(
                f"{holder.command} (pid {holder.pid}) manages this environment and applies the plan"
            )
        seen: dict[str, RunState] = {}
        serial = -1
        taken_up = PickUpWatch(self.accepted.apply_uid, clock=SystemClock())
        while self.workspace.manager() is not None:
            if self._leaves_at_ms is not None and SystemClock().boot_ms() > self._leaves_at_ms:
                # It is entered, and the manager finishes it.
                return True
            # Silence writes nothing: that it has become long is seen by the clock alone.
            if (now := await gate(self.ledger.serial)) != serial or self._wait_policy.has_run_out():
                serial = now
                await self._show(gate, seen)
                if await self._is_over(gate):
                    # What ended between the two looks.
                    await self._show(gate, seen)
                    return True
            if taken_up.is_due(serial) and (
                complaint := await gate(
                    partial(taken_up.complaint, self.ledger, self.workspace.manager())
                )
            ):
                self.progress.notice(complaint)
            await asyncio.sleep(max(FOLLOW_SECONDS, self.ledger.poll_seconds))
        self._followed = holder
        return False

    async def _show(self, gate: Gate, seen: dict[str, RunState]) -> None:
        """Show what has moved since: steps that were done, runs with another state."""
        steps = {step.key: step for step in self.plan.steps}
        for one in await gate(lambda: self.ledger.read_operations(self.accepted.apply_uid)):
            is_over = one.state in {"done", "failed"}
            if is_over and one.key in steps and one.key not in self._steps_reported:
                self._steps_reported.add(one.key)
                self.progress.step_finished(steps[one.key], one.error)
        histories = await gate(lambda: self.ledger.read_runs(list(self._names)))
        for history in histories:
            run = history.run
            if seen.get(run.name) is not run.state:
                seen[run.name] = run.state
                self.progress.run_changed(run, run.message)

    async def _is_over(self, gate: Gate) -> bool:
        if self.accepted.state == "already-applied" and not self._names and not self._ending:
            return True
        state = await gate(lambda: find_apply(self.ledger, self.accepted.apply_uid))
        if state == "running":
            return False
        if self.detach:
            return True
        book = await gate(self.ledger.read_book)
        outcomes = {name: book.outcomes.get(name) for name in self._names}
        states = {name: outcome.state if outcome else None for name, outcome in outcomes.items()}
        return self._wait_policy.is_over(states, book, has_failed=state == "failed")

    # -- the end ----------------------------------------------------------------------------------

    def _result(self) -> ApplyResult:
        failures = failed_steps(self.ledger, self.accepted.apply_uid) + self._failed_rollouts
        runs = self.ledger.read_runs(list(self._names)) if self._names else ()
        blocked = self._blocked() if self.detach else ()
        return ApplyResult(
            state=self._state(failures),
            exit_code=apply_code(
                self.plan, failures, runs, detached=self.detach, blocks_runs=bool(blocked)
            ),
            failed_steps=failures,
            runs=runs,
            messages=self._stops.left() or self._wait_policy.left_waiting(),
            blocked=blocked,
        )

    def _blocked(self) -> tuple[str, ...]:
        """Say which runs wait for an account, of which no plan knew: the hosts had never answered."""
        found = stuck_runs(self.ledger, now_ms=SystemClock().now_ms()).without_account
        names = sorted(found.keys() & set(self._names), key=natural_order)
        return tuple(f"{name} waits: {found[name]}" for name in names)

    def _state(self, failures: Sequence[str]) -> str:
        if failures:
            return "failed"
        if find_apply(self.ledger, self.accepted.apply_uid) == "running":
            return "handed-over"
        return "done"


def find_apply(ledger: Ledger, apply_uid: str) -> str:
    """Return the state of an apply: `running`, `done`, `failed`, `interrupted` by a rebuild."""
    record = ledger.read_apply(apply_uid)
    return "done" if record is None else record.state


def failed_steps(ledger: Ledger, apply_uid: str) -> tuple[str, ...]:
    """Return a sentence for each step of an apply that failed, or for what put an end to it."""
    record = ledger.read_apply(apply_uid)
    if record is None or record.state not in {"failed", "interrupted"}:
        return ()
    return tuple(record.summary.splitlines()[1:]) or (record.summary,)


# How long a manager that is about to leave waits for hosts to take the stops that they are owed.
# A manager that leaves earlier leaves work running that was asked to end: agents act on what they
# hear, and no process is there to tell them. A host that is silent is not waited for long, and
# named.

STOPS_MS = 10_000
"""How long nothing may come of it: an agent that restarts is back before."""

STOPS_NOTICE_MS = 3000
"""After how long it is said who is waited for; an answer takes some milliseconds."""


@dataclass
class Stops:
    """Those of one manager."""

    _: KW_ONLY
    clock: Clock
    notice: Callable[[str], None]

    def __post_init__(self) -> None:
        self._owed: frozenset[tuple[str, str]] = frozenset()
        self._since_ms = 0
        self._is_reported = False

    def are_sent(self, owed: Iterable[tuple[str, str]]) -> bool:
        """Tell whether no host owes an answer, or those that do have not answered for long."""
        now, before, self._owed = self.clock.boot_ms(), self._owed, frozenset(owed)
        if not self._owed:
            return True
        # An answer of one is a sign of life; a new debt has its own time.
        if not before or self._owed != before:
            self._since_ms, self._is_reported = now, False
        waited = now - self._since_ms
        if waited >= STOPS_NOTICE_MS and not self._is_reported:
            self._is_reported = True
            self.notice(
                f"waiting for {_hosts(self._owed)} to accept the stop of {_runs(self._owed)}"
            )
        return waited >= STOPS_MS

    def left(self) -> tuple[str, ...]:
        """Name the hosts whose answer was not waited for; empty where there is none."""
        if not self._owed:
            return ()
        runs, hosts = _runs(self._owed), _hosts(self._owed)
        verb = "is" if len({run for run, _ in self._owed}) == 1 else "are"
        sentence = (
            f"{runs} {verb} asked to stop, and {hosts} did not answer: their jobs continue until"
            " `fleetform apply` or `fleetform serve` reaches the host"
        )
        return (sentence,)


def _hosts(owed: Collection[tuple[str, str]]) -> str:
    names = sorted({host for _, host in owed}, key=natural_order)
    return f"host {names[0]}" if len(names) == 1 else f"hosts {', '.join(names)}"


def _runs(owed: Collection[tuple[str, str]]) -> str:
    names = sorted({run for run, _ in owed}, key=natural_order)
    return first_of(names, 1)
