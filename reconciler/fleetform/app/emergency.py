"""
Overrides from a person's terminal: written at once, and carried out where nobody else would.

Whoever may write the ledger may write overrides: its folder belongs to one account. Without a
manager the agents go on with what they run, so the end of runs is then brought about from here.
Nothing else is: no plan is carried out meanwhile, and nothing starts.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.driving import build_manager, under
from fleetform.app.ledger_address import has_address
from fleetform.app.managing import keep_reserve, try_manage
from fleetform.app.opening import (
    host_provider,
    open_for_writing,
    recovering,
    refuse_if_outgrown,
)
from fleetform.app.problems import LedgerProblem
from fleetform.app.silent_manager import wait_until_ends
from fleetform.model.ports import LedgerOutgrown, LedgerUnavailable
from fleetform.model.run import RunState, RunUid
from fleetform.store.gate import WriterGate
from fleetform.store.reserve import give_up, is_needed

if TYPE_CHECKING:
    from fleetform.app.pausing import PausedJobs
    from fleetform.app.workspace import Workspace
    from fleetform.controllers.manager import Manager
    from fleetform.model.override import Override, OverrideKind, PutInForce
    from fleetform.model.ports import Progress

__all__ = ["SILENCE_MS", "drive_ends", "lift", "make_room", "put_in_force"]

_REPEAT = "if its disk is full, free some space there; then run the command again"

SILENCE_MS = 10_000
"""How long a run of a silent host is waited for: its agent ends it when it is back, if told."""


def make_room(workspace: Workspace, paused: PausedJobs) -> bool:
    """
    Give up what is kept for an emergency where the ledger's disk is full; tells whether it was.

    Jobs of this machine are paused first, or one that writes without end would have the room. Before
    anything is read: also who only reads a ledger needs some room beside it.
    """
    ledger = workspace.paths.ledger
    if has_address() or not is_needed(ledger):
        return False
    manager = workspace.manager()
    spared = [os.getpid(), *([] if manager is None else [manager.pid])]
    paused.pause(workspace.paths.hosts, spared=spared)
    give_up(ledger)
    return True


def put_in_force(
    workspace: Workspace,
    kind: OverrideKind,
    targets: Sequence[str],
    *,
    reason: str,
    who: str,
    until_ms: int | None,
) -> PutInForce:
    """
    Write overrides; they hold as soon as this returns.

    Raises:
        LedgerProblem: The ledger cannot be written; nothing is in force.
    """
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        try:
            return ledger.put_overrides(
                kind,
                targets,
                reason=reason,
                who=who,
                now_ms=SystemClock().now_ms(),
                until_ms=until_ms,
            )
        except LedgerUnavailable as problem:
            raise LedgerProblem(str(problem), f"nothing is in force; {_REPEAT}") from problem


def lift(workspace: Workspace, numbers: Sequence[int] | None, *, who: str) -> tuple[Override, ...]:
    """
    Lift overrides that are in force, or with None all of them; returns those it lifted.

    Raises:
        LedgerProblem: The ledger cannot be written; all still hold.
    """
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        try:
            lifted = ledger.lift_overrides(numbers, who=who, now_ms=SystemClock().now_ms())
        except LedgerUnavailable as problem:
            raise LedgerProblem(str(problem), f"nothing was lifted; {_REPEAT}") from problem
    # For the next one: it may be that nobody begins to manage for months.
    keep_reserve(workspace)
    return lifted


async def drive_ends(
    workspace: Workspace, names: Sequence[str], *, who: str, progress: Progress
) -> bool:
    """
    Bring about the ends that were asked for; False where somebody else manages and does so.

    Returns once what is at work is over, or has been unknown for `SILENCE_MS`.

    Raises:
        Locked: Somebody manages, and does not begin to end it.
        Problem: The ledger cannot be used, or the world remembers another one.
    """
    while workspace.manager() is not None:
        if await wait_until_ends(workspace, names, clock=SystemClock()):
            return False
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        tenure = try_manage(workspace, who=who, command="emergency stop")
        if tenure is None:
            return False
        with tenure, contextlib.closing(WriterGate()) as gate:
            hosts = host_provider(workspace)
            await refuse_if_outgrown(ledger, hosts)
            manager = build_manager(
                workspace, ledger, gate, hosts, tenure, who=who, progress=progress, ends_only=True
            )
            try:
                await under(tenure, manager.run(_Ended(names)))
            except LedgerOutgrown as proof:
                raise recovering(str(proof)) from proof
    return True


class _Ended:
    """
    Tells whether what was at work is over, or nobody has heard of the rest for a while.

    Not whether the name is: it may stand for a successor that waits until this is lifted.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)
        self._uids: tuple[RunUid, ...] | None = None
        self._since_ms = SystemClock().boot_ms()

    def __call__(self, manager: Manager) -> bool:
        assert manager.runs is not None
        mirror = manager.runs.mirror
        if self._uids is None:
            self._uids = tuple(
                uid
                for uid, run in mirror.runs.items()
                if run.name in self._names and run.stop_requested
            )
        going = [mirror.runs[uid].state for uid in self._uids if uid in mirror.runs]
        if any(state is not RunState.UNKNOWN for state in going):
            self._since_ms = SystemClock().boot_ms()
            return False
        return not going or SystemClock().boot_ms() - self._since_ms >= SILENCE_MS
