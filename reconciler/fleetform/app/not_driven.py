"""
Writes down that a person has ended the controller while runs are open.

Without that event a run would seem to have stood still for no reason.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.opening import open_for_writing
from fleetform.model.figures import counted
from fleetform.model.history import LoggedEvent
from fleetform.model.refusals import LedgerUnavailable

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace

__all__ = ["note_not_driven"]


def note_not_driven(workspace: Workspace, *, who: str) -> int:
    """
    Write an event where runs are open; returns how many.

    Raises:
        LedgerUnavailable: The ledger does not answer now.
        LedgerProblem: It cannot be used.
    """
    reader = workspace.reader()
    if reader is None:
        return 0
    with contextlib.closing(reader):
        runs = reader.read_overview().work_count
    if runs:
        sentence = (
            f"no controller drives the runs any more: {who} ended it, with"
            f" {counted(runs, 'run')} open"
        )
        # A full disk has no room for it; the runs are counted all the same.
        with (
            contextlib.suppress(LedgerUnavailable),
            contextlib.closing(open_for_writing(workspace)) as ledger,
        ):
            ledger.append_events([LoggedEvent("manager.ended", SystemClock().now_ms(), sentence)])
    return runs
