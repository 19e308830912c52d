"""
How long an apply waits for runs that get nowhere, and what it says of them.

Three ways lead nowhere: the state of a run is unknown, it waits for a host that is silent, or there is
no host at all, although each step of the plan is over. None of them proves an end, and each may be over in a
moment. So the wait is reported at once, and ends after a while; the runs go on by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from fleetform.lifecycle.progress import kept_by_silence
from fleetform.model.figures import counted, first_of
from fleetform.model.run import FINAL, RunState, RunUid
from fleetform.spec.names import natural_order

if TYPE_CHECKING:
    from fleetform.lifecycle.progress import Rows
    from fleetform.model.ports import Clock


SILENCE_MS = 10_000
"""How long a run must be unknown to count as settled: an agent that restarts is back before."""

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
        self._reported: tuple[str, ...] = ()
        self._is_hostless = False

    def is_over(self, states: Mapping[str, RunState | None], rows: Rows) -> bool:
        """
        Tell whether these runs are over, or have got nowhere for long.

        No state is over, unless a row has the name: a run that was removed from the configuration has no other.
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
            self._tell_silence()
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
        return since is not None and self.clock.boot_ms() - since >= SILENCE_MS

    def left_waiting(self) -> tuple[str, ...]:
        """Name the runs that were not waited for; empty where all have ended."""
        if not self._kept:
            return ()
        if self._reported:
            then = "they continue when it answers again, without another apply"
            return (f"{self._silence(self._reported)}; {then}",)
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

    def _tell_silence(self) -> None:
        """Say once for which hosts runs wait."""
        hosts = tuple(
            sorted({host for hosts in self._kept.values() for host in hosts}, key=natural_order)
        )
        if hosts and hosts != self._reported:
            self.notice(self._silence(hosts))
        self._reported = hosts

    def _silence(self, hosts: Sequence[str]) -> str:
        who = f"host {hosts[0]} is" if len(hosts) == 1 else f"hosts {', '.join(hosts)} are"
        verb = "waits" if len(self._kept) == 1 else "wait"
        return f"{who} unreachable, and {counted(len(self._kept), 'run')} {verb} for an answer"


def _removed(names: Collection[str], rows: Rows) -> dict[str, RunState]:
    """Return the states of runs that were removed from the configuration, and not over yet, by name."""
    return {run.name: run.state for run in rows.runs.values() if run.name in names} if names else {}


def _still_ending(runs: Iterable[RunUid], rows: Rows) -> dict[str, RunState]:
    """Return the states of runs that were removed from the configuration: they have no outcome by name."""
    found = (rows.runs.get(uid) for uid in runs)
    return {run.name: run.state for run in found if run is not None}
