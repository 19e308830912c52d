"""
How long a manager that is about to leave waits for hosts to take the stops that they are owed.

Who leaves earlier leaves work at work that somebody has asked to end: agents act on what they
were told, and nobody is there to tell them. A host that is silent is not waited for long, and
named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from fleetform.spec.names import natural_order

if TYPE_CHECKING:
    from fleetform.model.ports import Clock

__all__ = ["STOPS_MS", "STOPS_TOLD_MS", "Stops"]

STOPS_MS = 10_000
"""How long nothing may come of it: an agent that restarts is back before."""

STOPS_TOLD_MS = 3000
"""After how long it is said who is waited for; an answer takes some milliseconds."""


class Stops:
    """Those of one manager."""

    def __init__(self, *, clock: Clock, notice: Callable[[str], None]) -> None:
        self._clock = clock
        self._notice = notice
        self._owed: frozenset[tuple[str, str]] = frozenset()
        self._since_ms = 0
        self._is_told = False

    def are_sent(self, owed: Iterable[tuple[str, str]]) -> bool:
        """Tell whether no host owes an answer, or those that do have not answered for long."""
        now, before, self._owed = self._clock.boot_ms(), self._owed, frozenset(owed)
        if not self._owed:
            return True
        # An answer of one is a sign of life; what is owed anew has its own time.
        if not before or self._owed != before:
            self._since_ms, self._is_told = now, False
        waited = now - self._since_ms
        if waited >= STOPS_TOLD_MS and not self._is_told:
            self._is_told = True
            self._notice(
                f"waiting for {_hosts(self._owed)} to accept the stop of {_runs(self._owed)}"
            )
        return waited >= STOPS_MS

    def left(self) -> tuple[str, ...]:
        """Say for whose answer nobody waited any longer; empty where there is none."""
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
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
