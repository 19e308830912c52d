"""
Which host is to blame when run after run cannot be prepared on it, or is lost.

A full disk or a broken mount makes a host that is always free: whatever comes next is sent there
and fails too. So it gets nothing more for a while. A mistake in a document looks the same from
here, and would close every host of its fleet: the elements of one sweep count as one, unless
another host of the fleet is free of failures and may take them. Kept in memory: a new manager
greets every host, and a greeting clears.

A host is quarantined if it becomes suspect several times while no run exits by itself there, or if it
loses a GPU: no new job is placed on it until a person lifts the quarantine. A quarantine is an
override, so it is in the ledger, in every plan and in backups.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from fleetform.agents.protocol.states import Cause
from fleetform.controllers.mirror import Mirror
from fleetform.model.history import LogLevel
from fleetform.model.instance import InstanceState
from fleetform.model.override import OverrideKind
from fleetform.model.ports import Clock, Gate, Ledger, Progress
from fleetform.model.run import Attempt, Run

WINDOW_MS = 60_000
RUNS_TO_SUSPECT = 3
"""Different runs within a minute: one run that is tried again and again says more of itself than of the host."""

SUSPECT_MS = 300_000
"""After this it is retried: a disk that was cleaned does not say so."""

SUSPICIONS_TO_QUARANTINE = 3
"""
How many times a host becomes suspect, while no run exits by itself there, until it is quarantined.

With five minutes after each, nine runs have failed in ten minutes or more: what cleans up by itself,
such as a disk that was full for a moment, has had its time.
"""

_WHO = "the controller"

_BLAMED = frozenset({Cause.PREPARE_FAILED, Cause.LOST})
"""Ends that are rather a host's fault than a run's."""


@dataclass(frozen=True, slots=True)
class _Failure:
    run_uid: str
    document: str
    """Name of the run, or of the sweep that it is an element of."""
    at_ms: int


class HostHealth:
    """What each host has failed with since its last greeting; times are the manager's own."""

    def __init__(self) -> None:
        self._failures: dict[str, list[_Failure]] = {}
        self._greeted_at_ms: dict[str, int] = {}
        self._until_ms: dict[str, int] = {}
        self._suspicions: dict[str, int] = {}

    def greeted(self, instance_uid: str, *, now_ms: int) -> None:
        """Begin again: the host has said hello, and runs placed before prove nothing any more."""
        self._forget(instance_uid)
        self._greeted_at_ms[instance_uid] = now_ms

    def note(self, run: Run, attempt: Attempt, *, now_ms: int) -> tuple[str, ...]:
        """Count an attempt that is over; returns the instances that failed it."""
        since_ms = attempt.reserved_at_ms
        blamed = []
        for job in attempt.jobs:
            if job.cause is Cause.EXITED:
                self._suspicions.pop(job.instance_uid, None)
            if job.cause not in _BLAMED or since_ms is None:
                continue
            if since_ms < self._greeted_at_ms.get(job.instance_uid, 0):
                continue
            failure = _Failure(run.uid, run.template.parent or run.name, now_ms)
            self._failures.setdefault(job.instance_uid, []).append(failure)
            blamed.append(job.instance_uid)
        return tuple(blamed)

    def judge(self, instance_uid: str, others: Iterable[str], *, now_ms: int) -> str:
        """
        Say why an instance is suspect from now on; empty where it is not, or is already.

        `others` are the uids of the ready instances of its fleet.
        """
        if instance_uid in self._until_ms:
            return ""
        recent = self._recent(instance_uid, now_ms)
        runs = {one.run_uid for one in recent}
        if len(runs) < RUNS_TO_SUSPECT:
            return ""
        has_choice = any(
            not self._recent(other, now_ms) for other in others if other != instance_uid
        )
        if not has_choice and len({one.document for one in recent}) < RUNS_TO_SUSPECT:
            return ""
        self._until_ms[instance_uid] = now_ms + SUSPECT_MS
        self._suspicions[instance_uid] = self._suspicions.get(instance_uid, 0) + 1
        return f"{len(runs)} runs failed here within a minute, so nothing is placed here for 5 min"

    def take_broken(self, instance_uid: str) -> str:
        """Say why an instance is to be quarantined, and count from 0 again; empty where it is not."""
        if self._suspicions.get(instance_uid, 0) < SUSPICIONS_TO_QUARANTINE:
            return ""
        self._forget(instance_uid)
        del self._suspicions[instance_uid]
        return (
            f"{SUSPICIONS_TO_QUARANTINE} times in a row, {RUNS_TO_SUSPECT} runs failed here within"
            " a minute"
        )

    def take_pardoned(self, *, now_ms: int) -> tuple[str, ...]:
        """Return the instances whose time is over, once."""
        pardoned = tuple(uid for uid, until in self._until_ms.items() if until <= now_ms)
        for uid in pardoned:
            self._forget(uid)
        return pardoned

    def _forget(self, instance_uid: str) -> None:
        self._failures.pop(instance_uid, None)
        self._until_ms.pop(instance_uid, None)

    def _recent(self, instance_uid: str, now_ms: int) -> list[_Failure]:
        kept = [
            one for one in self._failures.get(instance_uid, ()) if one.at_ms > now_ms - WINDOW_MS
        ]
        if kept:
            self._failures[instance_uid] = kept
        return kept


# Takes hosts out of use on which run after run fails, and back after a while; see `host_health`.


class Suspects:
    """What `HostHealth` says, written down."""

    def __init__(
        self, *, ledger: Ledger, gate: Gate, clock: Clock, progress: Progress, fence: int
    ) -> None:
        self._ledger = ledger
        self._fence = fence
        self._gate = gate
        self._clock = clock
        self._progress = progress
        self._health = HostHealth()
        self._blamed: dict[str, None] = {}
        self._broken: dict[str, str] = {}

    def greeted(self, instance_uid: str) -> None:
        self._health.greeted(instance_uid, now_ms=self._clock.now_ms())

    def note(self, run: Run, attempt: Attempt, *, now_ms: int) -> None:
        """Count an attempt that is over."""
        self._blamed.update(dict.fromkeys(self._health.note(run, attempt, now_ms=now_ms)))

    def note_broken(self, instance_uid: str, why: str) -> None:
        """Have a host quarantined in the next round."""
        self._broken[instance_uid] = why

    async def mark(self, mirror: Mirror) -> None:
        """Bring the instances' rows up to what has been noted and to the time."""
        now_ms = self._clock.now_ms()
        marks = [
            (uid, InstanceState.READY, "") for uid in self._health.take_pardoned(now_ms=now_ms)
        ]
        blamed, self._blamed = self._blamed, {}
        ready = [one for one in mirror.instances if one.state is InstanceState.READY]
        for instance in ready if blamed else ():
            if instance.uid not in blamed:
                continue
            others = [one.uid for one in ready if one.fleet == instance.fleet]
            why = self._health.judge(instance.uid, others, now_ms=now_ms)
            if why and (broken := self._health.take_broken(instance.uid)):
                self._broken.setdefault(instance.uid, broken)
            elif why:
                self._progress.notice(
                    f"host {instance.name} is suspect: {why}",
                    event="host.suspect",
                    level=LogLevel.WARNING,
                    details={"host": instance.name},
                )
                marks.append((instance.uid, InstanceState.SUSPECT, why))
        for uid, state, message in marks:
            await self._mark(uid, state, message, now_ms)
        has_quarantined = await self._quarantine(mirror, now_ms)
        if marks or has_quarantined:
            uids = tuple({uid: None for uid, _, _ in marks})
            book = await self._gate(lambda: self._ledger.read_book((), uids))
            mirror.merge((), uids, book)

    async def _quarantine(self, mirror: Mirror, now_ms: int) -> bool:
        broken, self._broken = self._broken, {}
        names = {one.uid: one.name for one in mirror.instances}
        found = {names[uid]: why for uid, why in broken.items() if uid in names}
        for name, why in found.items():
            await self._gate(
                functools.partial(
                    self._ledger.put_overrides,
                    OverrideKind.QUARANTINE,
                    [f"host/{name}"],
                    reason=why,
                    who=_WHO,
                    now_ms=now_ms,
                    until_ms=None,
                    fence=self._fence,
                )
            )
        return bool(found)

    async def _mark(self, uid: str, state: InstanceState, message: str, now_ms: int) -> None:
        await self._gate(
            lambda: self._ledger.mark_instance(
                uid, state=state, message=message, fence=self._fence, now_ms=now_ms
            )
        )
