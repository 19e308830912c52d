"""What people ask of runs: stop, run again. Written to the ledger; the manager carries it out."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleetform.model.ports import LedgerUnavailable
from fleetform.wiring.clock import SystemClock
from fleetform.wiring.opening import open_for_writing
from fleetform.wiring.problems import LedgerProblem

if TYPE_CHECKING:
    from fleetform.wiring.workspace import Workspace


def stop_runs(workspace: Workspace, names: Sequence[str], who: str) -> tuple[str, ...]:
    """Ask for the end of these runs; returns those that are not over yet."""
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        try:
            return ledger.request_stop(names, who=who, now_ms=SystemClock().now_ms())
        except LedgerUnavailable as problem:
            raise LedgerProblem(str(problem), "try again in a moment") from problem


def rerun_runs(workspace: Workspace, names: Sequence[str], who: str) -> tuple[str, ...]:
    """Submit finished runs anew; returns those that will run."""
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        try:
            return ledger.request_rerun(names, who=who, now_ms=SystemClock().now_ms())
        except LedgerUnavailable as problem:
            raise LedgerProblem(str(problem), "try again in a moment") from problem
