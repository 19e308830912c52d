"""
Lets hosts go that are leaving their fleet, and exchanges those of an earlier template.

A leaving host takes no new jobs; what runs there runs to its end, however long that takes, and
its output is fetched. Only where the whole fleet is removed does somebody wait: then ends that
were asked for are waited for, and what nobody has asked to end is lost with its host. Decided in
every round from rows alone, so that the next manager goes on where a dead one stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from fleetform.agents.protocol.states import JobState
from fleetform.controllers.hosts import HostSessions
from fleetform.controllers.mirror import Mirror
from fleetform.controllers.task_group import TaskGroup
from fleetform.lifecycle.progress import FIRST_BOOT_MS
from fleetform.lifecycle.rollout import next_moves, place_of
from fleetform.model.figures import span
from fleetform.model.history import LogLevel
from fleetform.model.instance import LOCAL, Instance, InstanceState
from fleetform.model.ports import Clock, Gate, Ledger, LedgerUnavailable, Progress
from fleetform.model.rollout import ENDED_TEXTS, EXCHANGED_TEXTS, Exchange, Template
from fleetform.model.run import Job, RunUid
from fleetform.providers.contract.errors import (
    AnswerUnknown,
    PermanentError,
    ProviderError,
    TemporaryError,
    with_advice,
)

RETRY_MS = 10_000
"""Pause after a release that failed: a host that does not answer is asked as rarely as others."""

SILENCE_MS = 30_000
"""How long the removal of a fleet waits for a host that does not answer; its provider knows more."""


@dataclass(slots=True)
class _Removal:
    """A step that waits for one instance of a fleet that is removed."""

    since_ms: int
    gone: asyncio.Future[None]


class Departures:
    """All hosts that leave, as long as this process is the manager."""

    def __init__(
        self,
        *,
        hosts: HostSessions,
        ledger: Ledger,
        gate: Gate,
        clock: Clock,
        progress: Progress,
        task_group: TaskGroup,
        fence: int,
    ) -> None:
        self._hosts = hosts
        self._ledger = ledger
        self._gate = gate
        self._clock = clock
        self._progress = progress
        self._nursery = task_group
        self._fence = fence
        self._under_way: set[str] = set()
        self._retry_at_ms: dict[str, int] = {}
        self._unknown: dict[str, str] = {}
        """What was said of instances of which it is not known whether they exist, by uid."""
        self._removals: dict[str, _Removal] = {}
        self._exchanging: set[str] = set()
        self._boots_since_ms: dict[str, int] = {}
        """Since when a rollout waits for the first boot of an instance, by uid."""
        self.failed: dict[str, list[str]] = {}
        """Why new hosts of a rollout are not waited for, by fleet."""
        self.is_busy = False
        """Some host is about to go: whoever ends now would leave it behind."""

    def round(self, mirror: Mirror) -> None:
        """Start to release what nothing is on any more."""
        leaving = [one for one in mirror.instances if one.state is InstanceState.TERMINATING]
        self._settle_gone(mirror)
        self.failed.clear()
        self.is_busy = bool(self._under_way)
        if not leaving and not mirror.templates:
            return
        jobs = _jobs_by_instance(mirror)
        held = {one.instance_uid for one in mirror.allocations}
        for fleet, template in mirror.templates.items():
            self._exchange(fleet, template, mirror, jobs.keys() | held)
        now = self._clock.now_ms()
        for instance in leaving:
            if instance.uid in self._unknown:
                # The controller stays until it is known whether the instance exists.
                self.is_busy = True
            if instance.uid in self._under_way or now < self._retry_at_ms.get(instance.uid, 0):
                continue
            there = jobs.get(instance.uid, ())
            if self._may_go(mirror, instance, there, held=instance.uid in held, now_ms=now):
                self._under_way.add(instance.uid)
                self._nursery.start(self._let_go(instance), name=f"release {instance.name}")
                self.is_busy = True
            elif self._is_soon_free(instance, there):
                self.is_busy = True

    async def depart(self, instance: Instance) -> None:
        """See `apply.host_access.HostAccess.depart`."""
        gone = asyncio.get_running_loop().create_future()
        self._removals[instance.uid] = _Removal(self._clock.now_ms(), gone)
        self._retry_at_ms.pop(instance.uid, None)
        self._hosts.rows_changed = True
        self._hosts.wake()
        try:
            await gone
        finally:
            del self._removals[instance.uid]

    # -- who is exchanged -------------------------------------------------------------------

    def _exchange(
        self, fleet: str, template: Template, mirror: Mirror, occupied: AbstractSet[str]
    ) -> None:
        """Write down what is next for the hosts of a fleet whose template changed."""
        instances = [one for one in mirror.instances if one.fleet == fleet]
        hosts = [place_of(one, template, occupied) for one in instances]
        is_last = not any(one.is_outdated for one in hosts)
        new = [one for one, host in zip(instances, hosts, strict=True) if not host.is_outdated]
        self._await_new(fleet, new, is_last=is_last)
        if fleet in self._exchanging:
            return
        moves = next_moves(template, hosts)
        if moves:
            self.is_busy = True
            self._exchanging.add(fleet)
            self._nursery.start(self._write_moves(fleet, template, moves), name=f"exchange {fleet}")

    def _await_new(self, fleet: str, hosts: Sequence[Instance], *, is_last: bool) -> None:
        """
        Wait for the new hosts of a fleet that are being made, but for none longer than a first boot takes.

        Neither work that goes on is waited for, nor capacity, nor what the cloud refuses, nor the first boot of an instance
        after which no other host is replaced.
        """
        failed = self.failed[fleet] = []
        for one in hosts:
            if one.state is not InstanceState.PROVISIONING:
                continue
            if one.has_failed:
                failed.append(
                    f"fleet/{fleet}: host {one.name} is not created: {one.message}; `fleetform why fleet/{fleet}` says what to do"
                )
            elif one.is_bought and one.is_created:
                self.is_busy |= not is_last and self._may_boot(one, failed)
            elif not one.waits_for_capacity:
                self.is_busy = True

    def _may_boot(self, instance: Instance, failed: list[str]) -> bool:
        """Tell whether an instance may still answer, and say so when the wait for it begins."""
        now_ms, name, fleet = self._clock.now_ms(), instance.name, instance.fleet
        if instance.uid not in self._boots_since_ms:
            self._boots_since_ms[instance.uid] = now_ms
            self._progress.notice(
                f"waiting for host {name} to answer, for up to {span(FIRST_BOOT_MS)}: other hosts of fleet {fleet} are replaced after"
                " that",
                event="host.waiting",
                details={"host": name},
            )
        if now_ms - self._boots_since_ms[instance.uid] < FIRST_BOOT_MS:
            return True
        failed.append(
            f"fleet/{fleet}: host {name} has not answered within {span(FIRST_BOOT_MS)}, and no other host is replaced before it does:"
            f" {instance.message}; `fleetform fleet show {fleet}` shows the host, and the console output of"
            f" {instance.endpoint['id']} in the cloud what its first boot printed"
        )
        return False

    async def _write_moves(self, fleet: str, template: Template, moves: Sequence[Exchange]) -> None:
        try:
            await self._gate(
                lambda: self._ledger.commit_exchanges(
                    fleet, template, moves, fence=self._fence, now_ms=self._clock.now_ms()
                )
            )
        except LedgerUnavailable as problem:
            self._progress.notice(
                f"hosts of fleet {fleet} cannot be replaced: {problem}",
                event="fleet.exchange-failed",
                level=LogLevel.ERROR,
                details={"fleet": fleet},
            )
        finally:
            self._exchanging.discard(fleet)
            self._hosts.rows_changed = True
            self._hosts.wake()

    # -- who may go -------------------------------------------------------------------------

    def _may_go(
        self, mirror: Mirror, instance: Instance, jobs: Sequence[Job], *, held: bool, now_ms: int
    ) -> bool:
        removal = self._removals.get(instance.uid)
        if removal is None:
            return instance.message in ENDED_TEXTS or (not jobs and not held)
        if not any(_is_ending(mirror, job) for job in jobs):
            return True
        return not self._answers(instance) and now_ms - removal.since_ms >= SILENCE_MS

    def _is_soon_free(self, instance: Instance, jobs: Sequence[Job]) -> bool:
        """Tell whether all of its jobs are over and it only has to be told to forget them."""
        return self._answers(instance) and all(job.state is JobState.FINISHED for job in jobs)

    def _answers(self, instance: Instance) -> bool:
        session = self._hosts.session(instance.uid)
        return session is not None and session.host is not None

    # -- going ------------------------------------------------------------------------------

    async def _let_go(self, instance: Instance) -> None:
        try:
            ended = await self._hosts.release(instance)
            self._unknown.pop(instance.uid, None)
            if instance.is_bought and not ended:
                return
            await self._gate(
                lambda: self._ledger.retire(
                    instance.uid, fence=self._fence, now_ms=self._clock.now_ms()
                )
            )
        except AnswerUnknown as problem:
            self._retry_at_ms[instance.uid] = self._clock.now_ms() + RETRY_MS
            if self._unknown.get(instance.uid) != str(problem):
                self._unknown[instance.uid] = str(problem)
                self._progress.notice(
                    f"host {instance.name} is not deleted yet: {problem}",
                    event="host.waiting",
                    level=LogLevel.WARNING,
                    details={"host": instance.name},
                )
                await self._note_stuck(instance, problem)
        except (ProviderError, LedgerUnavailable) as problem:
            self._retry_at_ms[instance.uid] = self._clock.now_ms() + RETRY_MS
            self._progress.notice(
                f"host {instance.name} cannot be released: {with_advice(problem)}",
                event="host.release-failed",
                level=LogLevel.ERROR,
                details={"host": instance.name},
            )
            removal = self._removals.get(instance.uid)
            if removal is not None and not removal.gone.done():
                removal.gone.set_exception(_with_way_out(instance, problem))
            await self._note_stuck(instance, problem)
        finally:
            self._under_way.discard(instance.uid)
            self._hosts.rows_changed = True
            self._hosts.wake()

    async def _note_stuck(self, instance: Instance, problem: Exception) -> None:
        """Write down why a host of another machine cannot be released, so that `status` shows it."""
        # For whom a host makes room decides what happens next, and is kept.
        if instance.provider == LOCAL or instance.message in EXCHANGED_TEXTS:
            return
        with contextlib.suppress(LedgerUnavailable):
            await self._gate(
                lambda: self._ledger.mark_instance(
                    instance.uid,
                    state=InstanceState.UNREACHABLE,
                    message=with_advice(problem).removeprefix(f"instance {instance.name}: "),
                    fence=self._fence,
                    now_ms=self._clock.now_ms(),
                )
            )

    def _settle_gone(self, mirror: Mirror) -> None:
        """Tell the steps that wait which of their instances are gone."""
        if not self._removals:
            return
        there = {one.uid for one in mirror.instances}
        for uid, removal in self._removals.items():
            if uid not in there and not removal.gone.done():
                removal.gone.set_result(None)


def _jobs_by_instance(mirror: Mirror) -> dict[str, list[Job]]:
    """Group the jobs that hosts may still know."""
    found: dict[str, list[Job]] = {}
    for job in mirror.all_jobs():
        if job.instance_uid and not job.forgotten:
            found.setdefault(job.instance_uid, []).append(job)
    return found


def _is_ending(mirror: Mirror, job: Job) -> bool:
    """Tell whether the job is over or was asked to be, so that its end is worth waiting for."""
    if job.state is JobState.FINISHED or job.stop_wanted:
        return True
    run = mirror.runs.get(RunUid(job.key.run_uid))
    return run is None or bool(run.stop_requested)


def _with_way_out(instance: Instance, problem: Exception) -> Exception:
    """Say what to do about a machine that may never answer again; shares of this one do."""
    if instance.provider == LOCAL or instance.is_bought:
        return problem
    way_out = (
        f"if host {instance.name} never returns, `fleetform destroy --lost {instance.name}`"
        f" removes everything without it; to remove fleet {instance.fleet} alone, set `lost: REASON` at the"
        " host, apply, and remove the fleet again"
    )
    if isinstance(problem, TemporaryError):
        return TemporaryError(f"{problem}; {way_out}", delay_seconds=problem.delay_seconds)
    if isinstance(problem, PermanentError):
        advice = f"{problem.advice}; {way_out}" if problem.advice else way_out
        return PermanentError(str(problem), advice=advice)
    return problem
