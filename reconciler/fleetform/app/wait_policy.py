"""
How long an apply waits for runs that get nowhere, and what it says of them.

Four ways lead nowhere: the state of a run is unknown, it waits for a host that is silent, or for one that is not
created or does not boot, or there is no host at all, although each step of the plan is over. None of them proves an end, and each
may be over in a moment. So the wait is reported at once, and ends after a while; the runs go on by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from fleetform.lifecycle.progress import FIRST_BOOT_MS, kept_by_silence
from fleetform.model.figures import counted, first_of, span
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import FINAL, RunState, RunUid
from fleetform.spec.names import natural_order

if TYPE_CHECKING:
    from fleetform.lifecycle.progress import Rows
    from fleetform.model.ports import Clock


SILENCE_MS = 10_000
"""How long a run must be unknown to count as settled: an agent that restarts is back before."""

UNCREATED_MS = 120_000
"""How long a host whose creation failed is waited for, unless a step failed: a controller tries again after a minute."""

_SETTLED = FINAL | {RunState.UNKNOWN}
"""What is not waited for: over, or waiting for evidence that may never come."""


@dataclass
class WaitPolicy:
    """
    The policy of one apply.

    `ending` are runs without a place in the configuration whose end is waited for as well.
    """

    _: KW_ONLY
    ending: Collection[RunUid]
    clock: Clock
    notice: Callable[[str], None]

    def __post_init__(self) -> None:
        self._unknown_since_ms: int | None = None
        self._kept: dict[str, tuple[str, ...]] = {}
        """The silent hosts, by the name of each run that waits for them; none: for any host."""
        self._reported: tuple[Instance, ...] = ()
        self._is_hostless = False
        self._limit_ms = SILENCE_MS

    def is_over(
        self, states: Mapping[str, RunState | None], rows: Rows, *, has_failed: bool = False
    ) -> bool:
        """
        Tell whether these runs are over, or have got nowhere for long.

        No state is over, unless a row has the name: a run that was removed from the configuration has no other.
        With `has_failed` steps of the plan have failed, so that hosts that are not created are not waited for.
        """
        removed = {name for name, state in states.items() if state is None}
        states = {**states, **_removed(removed, rows), **_still_ending(self.ending, rows)}
        moving = [
            name for name, state in states.items() if state is not None and state not in _SETTLED
        ]
        unknown = [name for name, state in states.items() if state is RunState.UNKNOWN]
        self._kept = {}
        if moving and not any(True for _ in rows.instances):
            self._kept = dict.fromkeys((*moving, *unknown), ())
            self._report_hostless()
        elif moving or unknown:
            kept = kept_by_silence(rows)
            self._kept = {name: kept[name] for name in (*moving, *unknown) if name in kept}
            self._tell_silence(rows.instances, has_failed=has_failed)
        if any(name not in self._kept for name in moving):
            self._unknown_since_ms = None
            return False
        if not moving and not unknown:
            return True
        if self._unknown_since_ms is None:
            self._unknown_since_ms = self.clock.boot_ms()
        return self.has_run_out()

    def has_run_out(self) -> bool:
        """Tell whether they have got nowhere for long: no row says so, only the clock."""
        since = self._unknown_since_ms
        return since is not None and self.clock.boot_ms() - since >= self._limit_ms

    def left_waiting(self) -> tuple[str, ...]:
        """Name the runs that were not waited for; empty where all have ended."""
        if not self._kept:
            return ()
        if self._reported:
            return (f"{self._silence()}; {_cure(self._reported)}",)
        if self._is_hostless:
            cure = "declare a fleet, or run `fleetform plan` to see what blocks one"
            return (f"{self._no_host()}: {cure}; then run `fleetform apply` again",)
        return ()

    def _report_hostless(self) -> None:
        """Say once that there is nothing to run on."""
        if not self._is_hostless:
            self.notice(self._no_host())
        self._is_hostless = True

    def _no_host(self) -> str:
        names = sorted(self._kept, key=natural_order)
        verb = "waits" if len(names) == 1 else "wait"
        return f"no fleet has a host, and {first_of(names, 1)} {verb} for one"

    def _tell_silence(self, instances: Iterable[Instance], *, has_failed: bool) -> None:
        """Say once for which hosts runs wait, and for how long those are waited for that boot."""
        names = {host for hosts in self._kept.values() for host in hosts}
        hosts = sorted(
            (one for one in instances if one.name in names and _state(one)),
            key=lambda one: natural_order(one.name),
        )
        limit_ms = max((_limit_ms(one, has_failed=has_failed) for one in hosts), default=SILENCE_MS)
        if limit_ms != self._limit_ms:
            self._limit_ms, self._unknown_since_ms = limit_ms, None
        before = [(one.name, _state(one)) for one in self._reported]
        self._reported = tuple(hosts)
        if hosts and [(one.name, _state(one)) for one in hosts] != before:
            limit = f", for up to {span(limit_ms)}" if limit_ms != SILENCE_MS else ""
            self.notice(f"{self._silence()}{limit}")

    def _silence(self) -> str:
        by_state: dict[tuple[str, ...], list[str]] = {}
        for one in self._reported:
            by_state.setdefault(_state(one), []).append(one.name)
        hosts = ", and ".join(
            f"host {names[0]} {one}" if len(names) == 1 else f"hosts {', '.join(names)} {many}"
            for (one, many), names in by_state.items()
        )
        verb = "waits" if len(self._kept) == 1 else "wait"
        return f"{hosts}, and {counted(len(self._kept), 'run')} {verb} for an answer"


def _state(host: Instance) -> tuple[str, ...]:
    """Say what is wrong with a host, and with several; empty for one that is not waited for."""
    if host.state is InstanceState.UNREACHABLE:
        return "is unreachable", "are unreachable"
    if not host.is_joining:
        return ()
    if host.is_created:
        return "has not answered since its creation", "have not answered since their creation"
    return "is not created", "are not created"


def _limit_ms(host: Instance, *, has_failed: bool) -> int:
    if host.state is InstanceState.UNREACHABLE:
        return SILENCE_MS
    if host.is_created:
        return FIRST_BOOT_MS
    return SILENCE_MS if has_failed or host.is_refused else UNCREATED_MS


def _cure(hosts: Sequence[Instance]) -> str:
    """Say what the runs that wait for these hosts do next, and where to look for the cause."""
    booting = [one for one in hosts if one.is_joining and one.is_created]
    if booting:
        fleet, ids = booting[0].fleet, first_of([str(one.endpoint["id"]) for one in booting], 3)
        return (
            f"apply has waited for {span(FIRST_BOOT_MS)}: `fleetform fleet show {fleet}` has the last error, and the console output of"
            f" {ids} in the cloud what the first boot printed; they continue when it answers, without another apply"
        )
    if any(one.state is not InstanceState.UNREACHABLE for one in hosts):
        fleet = next(one.fleet for one in hosts if one.state is not InstanceState.UNREACHABLE)
        return f"`fleetform why fleet/{fleet}` says why and what to do; then run `fleetform apply` again"
    return "they continue when it answers again, without another apply"


def _removed(names: Collection[str], rows: Rows) -> dict[str, RunState]:
    """Return the states of runs that were removed from the configuration, and not over yet, by name."""
    return {run.name: run.state for run in rows.runs.values() if run.name in names} if names else {}


def _still_ending(runs: Iterable[RunUid], rows: Rows) -> dict[str, RunState]:
    """Return the states of runs that were removed from the configuration: they have no outcome by name."""
    found = (rows.runs.get(uid) for uid in runs)
    return {run.name: run.state for run in found if run is not None}
