"""Says why a run waits, for a person who waits for it: `attach` and `shell`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetform.model.run_state import RunState

if TYPE_CHECKING:
    from fleetform.cli.screen import Screen
    from fleetform.model.ports import Reader, RunHistory
__all__ = ["WaitNotices"]

_FIRST_LOOK_SECONDS = 2.0
"""How long a run may wait before the reason is shown: most start sooner."""

_LOOK_SECONDS = 2.0
"""How often the reasons are asked for: each time a round of the scheduler."""


class WaitNotices:
    """Shows each reason once, as long as the same ones hold."""

    def __init__(self, reader: Reader, screen: Screen) -> None:
        self._reader = reader
        self._screen = screen
        self._look_at = time.monotonic() + _FIRST_LOOK_SECONDS
        self._said: tuple[str, ...] = ()
        self._state = ""

    def look(self, history: RunHistory) -> None:
        """Call it again and again with what the ledger has of the run."""
        run = history.run
        if run.state in {RunState.PROVISIONING, RunState.PREPARING, RunState.RUNNING}:
            if self._said and run.state != self._state:
                self._screen.line(f"{run.name}: {run.state}", "note")
                self._screen.flush()
            self._state = run.state
        elif (
            run.state in {RunState.PENDING, RunState.SUBMITTED}
            and time.monotonic() >= self._look_at
        ):
            self._look_at = time.monotonic() + _LOOK_SECONDS
            self._say_reasons(history)

    def _say_reasons(self, history: RunHistory) -> None:
        from fleetform.api.waiting import waiting_reasons
        from fleetform.app.clock import SystemClock

        found = waiting_reasons(self._reader.read_book(), now_ms=SystemClock().now_ms())
        reasons = tuple(one.detail for one in found.get(history.run.uid, ()))
        if reasons and reasons != self._said:
            self._said = reasons
            for reason in reasons:
                self._screen.line(f"{history.run.name} waits: {reason}", "warn")
            self._screen.flush()
