"""
Reads the actual state of created resources, and keeps the values that were accepted.

Nothing is started and no process is disturbed by it: the manager of the environment goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fleetform.app.clock import SystemClock
from fleetform.app.cloud_instances import list_instances, newest_images
from fleetform.app.controllers import find_controller
from fleetform.app.cut_off import cut_off_hosts, uncreated
from fleetform.app.ledger import host_provider, open_for_writing
from fleetform.app.problems import LedgerProblem
from fleetform.model.drift import Drift, Observed, expected_and_seen
from fleetform.model.history import LoggedEvent, LogLevel
from fleetform.model.instance import LOCAL, Instance, InstanceState, request_of
from fleetform.model.refusals import LedgerUnavailable
from fleetform.model.volume import disk_of, disk_request, is_disk
from fleetform.plan.drift import Comparison, accept, compare
from fleetform.providers.contract.errors import ProviderError, with_advice
from fleetform.providers.contract.volumes import DiskSeen, VolumeRequest, VolumeSource

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.live import Live
    from fleetform.model.ports import Clock, Gate, Ledger, Progress, Reader
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.providers.contract.observed import HostSeen, PlaceSeen


PARALLEL_MAX = 64
"""Hosts asked at a time."""

HOST_SECONDS = 10.0
"""How long one host may take to answer: one that is slower does not answer."""

T = TypeVar("T")
K = TypeVar("K")


class Look(NamedTuple):
    """
    The ledger as it was when the actual state was looked at, and what came of it.

    `unrecorded` says why the ledger does not remember what was seen; empty where it does. `unlisted` says which clouds did not
    answer, and why: drift there is not known.
    """

    live: Live
    comparison: Comparison
    unrecorded: str = ""
    unlisted: tuple[str, ...] = ()


async def look(ledger: Ledger, hosts: HostProvider, gate: Gate, clock: Clock | None = None) -> Look:
    """
    Read the actual state, compare it with the ledger, and note what is right.

    Times are the system's, or `clock`'s.

    Raises:
        LedgerUnavailable: What was right cannot be noted now.
    """
    found = await _looked(ledger, hosts, gate, (clock or SystemClock()).now_ms())
    await gate(lambda: _record(ledger, found))
    return found


async def _looked(
    ledger: Reader, hosts: HostProvider, gate: Gate, at_ms: int, *, is_controlled: bool = True
) -> Look:
    before = await gate(ledger.read_live)
    observed = await _observe(before, hosts, at_ms)
    cut_off = cut_off_hosts(hosts, uncreated(before.instances), is_controlled=is_controlled)
    observed = dataclasses.replace(observed, cut_off=cut_off)
    # After the look, so that what was made meanwhile is not taken for drift.
    return await gate(lambda: _compared(ledger, before, observed))


def _record(ledger: Ledger, found: Look) -> None:
    assert found.live.observed_at_ms is not None
    ledger.note_observations(
        found.comparison.right, found.comparison.recorded, at_ms=found.live.observed_at_ms
    )


def _compared(ledger: Reader, before: Live, observed: Observed) -> Look:
    live = ledger.read_live()
    uids = [one.key.run_uid for seen in observed.hosts.values() for one in seen.records or ()]
    observed = dataclasses.replace(
        observed,
        noted=ledger.read_noted(),
        recorded=live.recorded_drift,
        known_runs=ledger.read_known_runs(uids),
        changed=ledger.read_last_changes(),
        moving=_moving(before, live),
    )
    comparison = compare(live, observed)
    seen = dataclasses.replace(
        live,
        drift=comparison.drifts,
        recorded_drift=comparison.recorded,
        observed_at_ms=observed.at_ms,
    )
    return Look(seen, comparison, unlisted=observed.unlisted)


def refreshed(workspace: Workspace) -> Look:
    """
    Look at the actual state from a command, and record what was seen.

    That takes no lock of a manager, but a transaction of its own. Where the ledger cannot be
    written, because it is read-only or busy, the answer is the same, and says so.

    Raises:
        LedgerProblem: The ledger cannot be read.
    """

    async def at_once(call: Callable[[], T]) -> T:
        return call()

    reader = workspace.reader()
    assert reader is not None, "the caller has seen that there is a ledger"
    with contextlib.closing(reader):
        now_ms = SystemClock().now_ms()
        is_controlled = find_controller(workspace) is not None
        hosts = host_provider(workspace)
        looking = _looked(reader, hosts, at_once, now_ms, is_controlled=is_controlled)
        found = asyncio.run(looking)
    try:
        with contextlib.closing(open_for_writing(workspace)) as ledger:
            _record(ledger, found)
    except (LedgerProblem, LedgerUnavailable) as problem:
        return found._replace(unrecorded=str(problem))
    return found


async def with_accounts(hosts: HostProvider, live: Live) -> Live:
    """Return what is live, with the accounts that its hosts have now; of one that is silent, as before."""
    asked = [one for one in live.instances if one.accounts is not None]
    room = asyncio.Semaphore(PARALLEL_MAX)

    async def look_at(instance: Instance) -> tuple[str, frozenset[str] | None]:
        async with room:
            seen = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HOST_SECONDS):
                    seen = await hosts.observe(request_of(instance))
        if seen is None:
            return instance.uid, instance.accounts
        report = seen.report
        return instance.uid, frozenset(report.accounts) if report.accounts_are_all else None

    found = dict(await asyncio.gather(*map(look_at, asked)))
    instances = tuple(
        dataclasses.replace(one, accounts=found[one.uid]) if one.uid in found else one
        for one in live.instances
    )
    return dataclasses.replace(live, instances=instances)


def accept_drift(workspace: Workspace, found: Look, *, who: str) -> tuple[Drift, ...]:
    """Accept drift that was only observed; returns what is no longer reported."""
    noted = accept(found.comparison.drifts)
    if not noted:
        return ()
    now_ms = SystemClock().now_ms()
    accepted = tuple(
        one for one in found.comparison.drifts if one.path in noted.get(one.resource, {})
    )
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        ledger.note_observations(noted, at_ms=now_ms)
        log_drift(ledger, "drift.accepted", accepted, now_ms, f" ({who} accepted it)")
    return accepted


def log_drift(
    ledger: Ledger, kind: str, drifts: Iterable[Drift], now_ms: int, after: str = ""
) -> None:
    """Write an event for each of these."""
    ledger.append_events(
        [
            LoggedEvent(
                kind,
                now_ms,
                f"{_sentence(one, kind)}{after}",
                one.resource,
                data={"path": one.path, "expected": one.expected, "seen": one.seen, "by": one.by},
            )
            for one in drifts
        ]
    )


def _sentence(one: Drift, kind: str) -> str:
    if kind == "drift.corrected":
        return f"{one.path} of {one.resource} is {one.expected} again"
    by = f", {one.by}" if one.by else ""
    return f"{one.path} of {one.resource} was {one.expected} and is {one.seen}{by}"


# -- looking ------------------------------------------------------------------------------------


async def _observe(live: Live, hosts: HostProvider, at_ms: int) -> Observed:
    instances = await hosts.inventory(live.environment_uid)
    listed = await list_instances(live, hosts)
    alive = {one.uid for one in instances if one.alive}
    answers = await _side_by_side(
        {
            one.uid: _asking(hosts, one)
            for one in live.instances
            if (one.uid in alive or one.provider != LOCAL)
            and one.state is not InstanceState.TERMINATING
        }
    )
    remote = {one.fleet for one in live.instances if one.provider != LOCAL}
    paths = {
        key.name: str(row.parsed.get("path", ""))
        for key, row in live.resources.items()
        if key.kind == "volume"
        and not row.archived
        and row.state == "present"
        # Directories of other machines are not looked at: their agents check them at each start.
        and row.parsed.get("fleet") not in remote
        and not is_disk(row.parsed)
    }
    places = await _side_by_side(
        {name: _seeing(hosts, live.environment_uid, path) for name, path in paths.items()}
    )
    volumes = await hosts.volumes(live.environment_uid) if paths else ()
    disks, unseen = await _disks(live, hosts)
    return Observed(
        at_ms=at_ms,
        clouds=listed.clouds,
        images=await newest_images(live, hosts),
        unlisted=(*listed.problems, *unseen),
        instances=tuple(instances),
        hosts={uid: seen for uid, seen in answers.items() if seen is not None},
        places=places,
        volumes=tuple(volumes),
        disks=disks,
    )


async def _disks(
    live: Live, hosts: HostProvider
) -> tuple[dict[str, DiskSeen | None], tuple[str, ...]]:
    """Look at the disks of network volumes, and say why clouds did not answer for some of them."""
    rows = {
        key.name: (row, disk)
        for key, row in live.resources.items()
        if key.kind == "volume" and not row.archived and row.state == "present"
        for disk in (disk_of(row.outputs),)
        if disk is not None
    }
    if not rows or not isinstance(hosts, VolumeSource):
        return {}, ()
    requests = {
        name: VolumeRequest(uid=row.uid, name=name, **disk_request(row.parsed, disk))
        for name, (row, disk) in rows.items()
    }
    found = await _side_by_side(
        {name: _looking_at(hosts, request) for name, request in requests.items()}
    )
    seen = {name: one for name, (one, problem) in found.items() if not problem}
    return seen, tuple(problem for _, problem in found.values() if problem)


def _looking_at(
    hosts: VolumeSource, request: VolumeRequest
) -> Callable[[], Awaitable[tuple[DiskSeen | None, str]]]:
    async def look_at() -> tuple[DiskSeen | None, str]:
        try:
            async with asyncio.timeout(HOST_SECONDS):
                return await hosts.volume_provider(request.provider).observe(request), ""
        except TimeoutError:
            why = f"the cloud does not answer within {HOST_SECONDS:.0f} s"
        except ProviderError as problem:
            why = with_advice(problem).removeprefix(f"volume {request.name}: ")
        return None, f"the disk of volume {request.name} is not looked at: {why}"

    return look_at


def _asking(hosts: HostProvider, instance: Instance) -> Callable[[], Awaitable[HostSeen | None]]:
    request = request_of(instance)

    async def ask() -> HostSeen | None:
        try:
            async with asyncio.timeout(HOST_SECONDS):
                return await hosts.observe(request)
        except TimeoutError:
            return None

    return ask


def _seeing(hosts: HostProvider, uid: str, path: str) -> Callable[[], Awaitable[PlaceSeen]]:
    return lambda: hosts.place_at(uid, path)


async def _side_by_side(calls: Mapping[K, Callable[[], Awaitable[T]]]) -> dict[K, T]:
    slots = asyncio.Semaphore(PARALLEL_MAX)

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        async with slots:
            return await call()

    answers = await asyncio.gather(*(one(call) for call in calls.values()))
    return dict(zip(calls, answers, strict=True))


def _moving(before: Live, after: Live) -> frozenset[str]:
    """Return uids of what an apply created, changed, greeted or released during the refresh."""
    was = {row.uid: row.generation for row in before.resources.values()}
    was.update({one.uid: one.generation for one in before.instances})
    now = {row.uid: row.generation for row in after.resources.values()}
    now.update({one.uid: one.generation for one in after.instances})
    return frozenset(uid for uid in {*was, *now} if was.get(uid) != now.get(uid))


# How `serve` watches for drift: a look at the actual state now and then, reported once, and corrected.
# A look costs a connection a host, so it is rarer than a plan. What it finds goes into the plan
# that follows it; in between the ledger alone is compared.

DRIFT_MS = 300_000
"""Five minutes: what matters to runs is seen by their sessions at once, and this is for the rest."""


@dataclass
class DriftWatch:
    """
    Reads the actual state when that is due, and remembers what it has reported.

    `every_ms` is the least time between two looks. The first is due after one such time: a new
    manager greets every host anyway.
    """

    ledger: Ledger
    gate: Gate
    hosts: HostProvider
    progress: Progress
    every_ms: int

    def __post_init__(self) -> None:
        self._reported: dict[tuple[str, str], Drift] = {}
        self._unlisted: tuple[str, ...] = ()
        self._next_ms = SystemClock().boot_ms() + self.every_ms

    async def live(self) -> Live:
        """
        Read the ledger, with the actual state where a refresh is due.

        Raises:
            LedgerUnavailable: What was seen cannot be written down.
        """
        if SystemClock().boot_ms() < self._next_ms:
            return await self.gate(self.ledger.read_live)
        found = await look(self.ledger, self.hosts, self.gate)
        # Counted from its end: many slow hosts must not make one look follow the other.
        self._next_ms = SystemClock().boot_ms() + self.every_ms
        self._tell_unlisted(found.unlisted)
        await self._tell(found.live.drift)
        return found.live

    def _tell_unlisted(self, problems: tuple[str, ...]) -> None:
        for one in problems:
            if one not in self._unlisted:
                self.progress.notice(
                    f"drift is not known: {one}", event="drift.unlisted", level=LogLevel.WARNING
                )
        self._unlisted = problems

    async def _tell(self, drifts: tuple[Drift, ...]) -> None:
        now = {(str(one.resource), one.path): one for one in drifts}
        new = [
            one
            for place, one in now.items()
            if place not in self._reported or self._reported[place].seen != one.seen
        ]
        over = [one for place, one in self._reported.items() if place not in now]
        at_ms = SystemClock().now_ms()
        if new:
            await self.gate(lambda: log_drift(self.ledger, "drift.found", new, at_ms))
        if over:
            await self.gate(lambda: log_drift(self.ledger, "drift.corrected", over, at_ms))
        self._reported = now
        for one in new:
            self.progress.notice(
                f"drift: {one.resource} {expected_and_seen(one.path, one.expected, one.seen)}",
                event="drift.found",
                level=LogLevel.WARNING,
                details={"resource": str(one.resource), "path": one.path},
            )
        for one in over:
            self.progress.notice(
                f"drift: {one.resource} {one.path} no longer differs",
                event="drift.over",
                details={"resource": str(one.resource), "path": one.path},
            )
