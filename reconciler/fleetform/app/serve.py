"""
`serve`: manages the environment, applies its configuration and answers the API.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.agents.protocol.naming import short_uid
from fleetform.app.account import this_account
from fleetform.app.api_server import AddressUnusable, answer
from fleetform.app.clock import SystemClock
from fleetform.app.doctor import require_tools
from fleetform.app.driving import build_manager, stop_on_signals, under, until_stopped
from fleetform.app.frozen_contents import freeze_contents
from fleetform.app.handover import become_manager
from fleetform.app.ledger import (
    host_provider,
    open_for_writing,
    refuse_if_hosts_know,
    refuse_if_outgrown,
)
from fleetform.app.managing import keep_reserve
from fleetform.app.observe import DRIFT_MS, DriftWatch
from fleetform.app.plan import checked_plan, claimed
from fleetform.app.problems import Locked, Problem
from fleetform.app.recorded_plans import keep_converged
from fleetform.app.workspace import ENVIRONMENT_FILE
from fleetform.controllers.task_group import TaskGroup
from fleetform.controllers.tree import (
    RESYNC_SECONDS,
    Look,
    NotNow,
    Planned,
    TreeKeeper,
)
from fleetform.model.history import LogLevel
from fleetform.model.leadership import BACKGROUND
from fleetform.model.override import Override, OverrideKind, holding
from fleetform.model.plan import HeldBy, Permissions, Plan
from fleetform.model.ports import FenceLost, LedgerUnavailable
from fleetform.model.refusals import PolicyRefused
from fleetform.plan.blockers.freeze import is_unfinished
from fleetform.plan.exit import CONVERGED, ERROR, POLICY, apply_code
from fleetform.plan.serialize import dump
from fleetform.plan.wait_targets import waited_for
from fleetform.source.tree import Unreadable, fingerprint
from fleetform.store.blobs import FileBlobStore
from fleetform.store.gate import WriterGate
from fleetform.views.controllers import held_by
from fleetform.views.notices import NOTHING_CHANGES, held_notices, mistake_notices, not_planned
from fleetform.views.overrides import until_text

if TYPE_CHECKING:
    import signal

    from fleetform.app.workspace import Workspace
    from fleetform.controllers.manager import Manager
    from fleetform.model.leadership import ManagerLease
    from fleetform.model.ports import Gate, Progress
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.spec.desired import Loaded, ResourceKey
    from fleetform.store.ledger import StoredLedger

WHO = "serve"

STOP_SECONDS = 5.0
"""How long what is under way may take after a signal; the next manager takes up what is cut off."""

REST_SECONDS = 0.5
"""How late the end of a takeover is seen."""


async def serve(
    workspace: Workspace,
    *,
    listen: str | None,
    insecure_listen: bool = False,
    progress: Progress,
    once: bool = False,
    drift_every_ms: int = DRIFT_MS,
    signalled: Callable[[signal.Signals], object] = lambda _: None,
) -> int:
    """
    Manage the environment until a signal, or with `once` until nothing is left to do.

    Returns the exit code: with `once` that of an apply of the same plans, and 0 after a signal.

    While a user has taken it over (`apply --takeover`), it is released, and managed again
    when that ends; the API is answered all the time. `signalled` is called with each signal that
    ends it: what is left of the work is the caller's to leave.

    Raises:
        Locked: Another process manages it.
        Problem: The ledger cannot be used, or the address not be listened at.
    """
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        require_tools(workspace)
        hosts = host_provider(workspace)
        await refuse_if_outgrown(ledger, hosts)
        with contextlib.closing(WriterGate()) as gate:
            serving = _Serving(
                workspace, ledger, gate, hosts, progress, once, drift_every_ms, signalled
            )
            try:
                async with TaskGroup() as task_group:
                    if listen is not None:
                        task_group.start(
                            answer(workspace, listen, progress, insecure=insecure_listen),
                            name="api",
                        )
                    await task_group.run(serving.run())
            except AddressUnusable as problem:
                # Mostly it is the other `serve` of this environment that has the address.
                holder = workspace.manager()
                if holder is not None and holder.command != BACKGROUND:
                    raise locked(workspace) from problem
                raise
            return serving.code


@dataclass
class _Serving:
    """One `serve`: tenures, and the rests between them."""

    workspace: Workspace
    ledger: StoredLedger
    gate: Gate
    hosts: HostProvider
    progress: Progress
    once: bool
    drift_every_ms: int
    signalled: Callable[[signal.Signals], object] = lambda _: None

    def __post_init__(self) -> None:
        self._stopped = asyncio.Event()
        self._has_rested = False
        """Another process may have managed since: the hosts are inspected again."""
        self._drift = DriftWatch(
            self.ledger, self.gate, self.hosts, self.progress, self.drift_every_ms
        )
        self.code = CONVERGED

    async def run(self) -> None:
        """Serve manager lease after manager lease until the signal; a ledger that is away is waited for."""
        wake = stop_on_signals(self._stopped, self.signalled)
        told = ""
        while not self._stopped.is_set():
            try:
                if await self._serve_next(wake):
                    return
                told = ""
            except FenceLost as lost:
                # Nothing was caused since. This process waits, and manages again when no other one does.
                self.progress.notice(
                    f"this controller lost the manager lease: {lost}",
                    event="lease.lost",
                    level=LogLevel.WARNING,
                )
                self._has_rested = True
            except LedgerUnavailable as away:
                # It could be used when this began, so that its address is right.
                if str(away) != told:
                    told = str(away)
                    self.progress.notice(
                        f"waiting until the ledger is available: {away}",
                        event="ledger.unavailable",
                        level=LogLevel.ERROR,
                    )
                self._has_rested = True
                await self._pause()

    async def _serve_next(self, wake: list[Callable[[], None]]) -> bool:
        """Rest, wait or serve one manager lease, whatever is due; True: all is done."""
        taken = await self._taken_over()
        if taken is not None:
            await self._rest(taken)
            self._has_rested = True
            return False
        manager_lease = await self._take()
        if manager_lease is None:
            if not self._has_rested:
                raise locked(self.workspace)
            # The user who took over is not done yet, although the time is up.
            await self._pause()
            return False
        with manager_lease:
            # Who takes over writes it, and then looks whether we hold the environment: so we look
            # once more now that we do, or both would go on.
            if await self._taken_over() is not None:
                return False
            if self._has_rested:
                await refuse_if_outgrown(self.ledger, self.hosts, manager_lease)
            return await self._manage(manager_lease, wake)

    async def _take(self) -> ManagerLease | None:
        """Take the lease, also from a background controller; None where it is not given up."""
        try:
            return await become_manager(
                self.workspace, who=WHO, command="serve", notice=self.progress.notice
            )
        except Locked as silent:
            if not self._has_rested:
                raise
            self.progress.notice(silent.message, event="lease.unavailable", level=LogLevel.WARNING)
            return None

    # -- managing -----------------------------------------------------------------------------

    async def _manage(self, manager_lease: ManagerLease, wake: list[Callable[[], None]]) -> bool:
        """Manage until the end (True), or until a takeover of the environment (False)."""
        manager = build_manager(
            self.workspace,
            self.ledger,
            self.gate,
            self.hosts,
            manager_lease,
            who=WHO,
            progress=self.progress,
        )
        wake[:] = [manager.wake]
        keeping = _Keeping(
            self.workspace, self.ledger, self.gate, self.hosts, manager, self._drift, self.progress
        )  # fmt: skip
        keeper = TreeKeeper(
            keeping.look,
            keeping.make_plan,
            keeping.accept,
            self.progress,
            min(RESYNC_SECONDS, self._drift.every_ms / 1000),
        )
        over = False

        def finished(manager: Manager) -> bool:
            nonlocal over
            assert manager.runs is not None
            is_idle = self.once and keeping.looked.is_set() and not manager.runs.mirror.runs
            over = self._stopped.is_set() or is_idle
            return (
                over or takeover(manager.runs.mirror.overrides, SystemClock().now_ms()) is not None
            )

        async with TaskGroup() as task_group:
            task_group.start(keeper.keep(), name="tree")
            name, root = self.workspace.environment.name, self.workspace.root
            self.progress.notice(
                f"serving {name} from {root}",
                event="serve.started",
                details={"environment": name},
            )
            managing = under(manager_lease, manager.run(finished))
            await task_group.run(until_stopped(managing, self._stopped, seconds=STOP_SECONDS))
        if over and not self._stopped.is_set():
            self.code = await self.gate(keeping.exit_code)
        return over or self._stopped.is_set()

    # -- resting ------------------------------------------------------------------------------

    async def _taken_over(self) -> Override | None:
        return takeover(await self.gate(self.ledger.read_overrides), SystemClock().now_ms())

    async def _rest(self, taken: Override) -> None:
        """Apply nothing and drive nothing until the takeover ends."""
        self.progress.notice(
            f"paused: {taken.who} has taken over{until_text(taken)}: {taken.reason};"
            f" `fleetform emergency lift {taken.number}` ends the takeover",
            event="serve.resting",
            level=LogLevel.WARNING,
        )
        while not self._stopped.is_set() and await self._taken_over() is not None:
            await self._pause()
        if not self._stopped.is_set():
            self.progress.notice("resuming: the takeover has ended", event="serve.resumed")

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REST_SECONDS):
                await self._stopped.wait()


@dataclass
class _Keeping:
    """Reads, plans and enters the configuration for `controllers.tree` during one manager lease."""

    workspace: Workspace
    ledger: StoredLedger
    gate: Gate
    hosts: HostProvider
    manager: Manager
    drift: DriftWatch
    progress: Progress

    def __post_init__(self) -> None:
        self._name = self.workspace.environment.name
        self._files: list[str] = []
        self._bases: list[str] = []
        self._blocked: tuple[tuple[ResourceKey, HeldBy, str], ...] | None = None
        self.looked = asyncio.Event()
        """Set once a plan was entered, or there was none to enter."""
        self._plan: Plan | None = None
        self._is_invalid = False
        self._refusal: int | None = None
        self._apply_uid = ""
        self._followed: set[str] = set()

    def exit_code(self) -> int:
        """Return the code of an apply of the newest plan, with every run that a plan followed."""
        from fleetform.app.apply import failed_steps

        if self._refusal is not None:
            return self._refusal
        if self._plan is None or self._is_invalid:
            return ERROR
        failures = failed_steps(self.ledger, self._apply_uid) if self._apply_uid else ()
        names = sorted(self._followed)
        return apply_code(self._plan, failures, self.ledger.read_runs(names) if names else ())

    def look(self) -> Look:
        found = fingerprint(self.workspace.root, self._files, self._bases)
        return Look(
            (found, self._in_force()), found.reason if isinstance(found, Unreadable) else ""
        )

    def _in_force(self) -> tuple[int, ...]:
        """Numbers of the overrides: when one comes or goes, what it blocked is planned again."""
        runs = self.manager.runs
        above = () if runs is None else runs.mirror.overrides
        return tuple(one.number for one in holding(above, SystemClock().now_ms()))

    async def make_plan(self) -> Planned:
        # It may have been used since, and the disk have room again.
        keep_reserve(self.workspace)
        planned: Planned | None = None
        try:
            loaded = await asyncio.to_thread(self.workspace.load)
            self._is_invalid = bool(loaded.errors)
            if (other := _elsewhere(loaded, self.workspace)) is not None:
                return Planned(None, not_planned(other))
            if loaded.desired is not None:
                # What documents name is looked at too from now on.
                self._files[:] = sorted(loaded.desired.contents.values())
                self._tell_name(loaded.desired.environment.name)
            self._bases[:] = loaded.bases
            planned = await _plan(loaded, self.ledger, self.gate, self.drift)
            if planned.plan is not None and not _is_during_apply(planned.plan):
                await self._record_blocked(planned.plan)
            return planned
        finally:
            self._plan = None if planned is None else planned.plan
            if self._plan is not None:
                self._followed.update(waited_for(self._plan))
            if self._plan is None or self._plan.is_empty:
                self._refusal = None
                self._note_looked()

    def _note_looked(self) -> None:
        """What an apply in progress will have done is known from the next plan only."""
        if self._plan is not None and _is_during_apply(self._plan):
            self.looked.clear()
        else:
            self.looked.set()

    async def _record_blocked(self, plan: Plan) -> None:
        """Record what is blocked whenever that changes, for `status`, and that a failure is over."""
        blocked = tuple((one.change.key, one.by, one.detail) for one in plan.held)
        if not plan.is_empty:
            # It is recorded when it is entered, and may fail.
            self._blocked = None
        elif blocked != self._blocked and await asyncio.to_thread(
            keep_converged, self.workspace, plan, who=WHO
        ):
            self._blocked = blocked

    def _tell_name(self, name: str) -> None:
        if name != self._name:
            self.progress.notice(
                f"the environment `{self._name}` is called `{name}` from now on; the API shows"
                " the new name after a restart of `serve`",
                event="environment.renamed",
            )
            self._name = name

    async def accept(self, plan: Plan) -> None:
        try:
            await self._enter(plan)
        except PolicyRefused:
            self._refusal = POLICY
            self.looked.set()
            raise
        except NotNow:
            self._refusal = ERROR
            self.looked.set()
            raise
        self._refusal = None
        self._note_looked()

    async def _enter(self, plan: Plan) -> None:
        try:
            await asyncio.to_thread(
                freeze_contents, self.workspace, plan, FileBlobStore(self.workspace.paths.blobs)
            )
        except Problem as problem:
            # A file was edited since, or the disk is full: neither ends the manager.
            raise NotNow(problem.message) from problem
        try:
            await asyncio.to_thread(require_tools, self.workspace, plan)
            await refuse_if_hosts_know(self.ledger, self.hosts, plan)
        except Problem as problem:
            raise NotNow(f"{problem.message}; {problem.advice}") from problem
        body = dump(plan)
        now = SystemClock().now_ms()
        # No person gave it: what comes from a repository is the service's own.
        owner = this_account()
        accepted = await self.gate(
            lambda: self.ledger.accept(plan, body, who=WHO, owner=owner, now_ms=now)
        )
        self._apply_uid = accepted.apply_uid
        self.manager.plan_accepted()


def takeover(overrides: Iterable[Override], now_ms: int) -> Override | None:
    """Return the takeover that is in force, if there is one."""
    return next(
        (one for one in overrides if one.kind is OverrideKind.TAKEOVER and one.holds_at(now_ms)),
        None,
    )


def _elsewhere(loaded: Loaded, workspace: Workspace) -> str | None:
    """A sentence where the folder holds another environment by now: a branch was switched."""
    if loaded.desired is None or loaded.desired.environment.uid == workspace.environment.uid:
        return None
    other, name = loaded.desired.environment, workspace.environment.name
    return (
        f"{ENVIRONMENT_FILE} now has the uid of `{other.name}` ({short_uid(other.uid)}), and"
        f" `{name}` ({short_uid(workspace.environment.uid)}) is served: nothing is planned until"
        " its uid is there again"
    )


async def _plan(loaded: Loaded, ledger: StoredLedger, gate: Gate, drift: DriftWatch) -> Planned:
    """Plan what was loaded; what is broken holds back itself, and a broken environment all."""
    notices = mistake_notices(loaded.errors)
    if loaded.desired is None:
        return Planned(None, (*notices, NOTHING_CHANGES))
    try:
        live = await claimed(drift.hosts, loaded.desired, await drift.live())
        plan = checked_plan(loaded.desired, live, Permissions(), now_ms=SystemClock().now_ms())
    except Problem as problem:
        return Planned(None, (*notices, *not_planned(problem.message)))
    except LedgerUnavailable as problem:
        return Planned(None, (*notices, *not_planned(str(problem))))
    # This process itself finishes an earlier apply, so there is nothing that a person has to do.
    held = [one for one in plan.held if not is_unfinished(one)]
    return Planned(plan, notices, held_notices(held))


def _is_during_apply(plan: Plan) -> bool:
    """Tell whether an earlier apply has not finished with all that the plan would change."""
    return any(map(is_unfinished, plan.held))


def locked(workspace: Workspace) -> Locked:
    """Name the manager of the environment to a process that waits for it."""
    holder = workspace.manager()
    if holder is None:
        return Locked("another process has just begun to manage this environment", "try again")
    return Locked(
        f"{held_by(holder)} manages this environment",
        "wait for it, or stop it",
    )
