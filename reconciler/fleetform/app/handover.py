"""
Takes the manager lease, also from a background controller, which gives it up when it is asked.

A background controller goes on with what others have left. So it makes way for every command that
manages the environment itself; `serve` and `apply` do not, and are left to what they do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.ledger import open_for_writing
from fleetform.app.managing import REQUEST_SECONDS, requesting, try_manage
from fleetform.app.problems import Locked
from fleetform.model.figures import first_of
from fleetform.model.leadership import BACKGROUND
from fleetform.model.run import AttemptState, RunUid
from fleetform.spec.names import natural_order
from fleetform.views.controllers import held_by

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import Holder, ManagerLease
    from fleetform.model.ports import Clock, Ledger
    from fleetform.model.scheduler_state import SchedulerState

LOOK_SECONDS = 0.02

NOTICE_MS = 1000
"""After how long it is said who is waited for: a background controller answers sooner."""


async def become_manager(
    workspace: Workspace, *, who: str, command: str, notice: Callable[[str], None]
) -> ManagerLease | None:
    """
    Take the manager lease; a background controller that has it is asked to give it up.

    Args:
        workspace: Whose environment; it need not have a ledger yet.
        who: For `lock list` and events.
        command: What the holder does: `apply`, `serve`, `state rebuild`.
        notice: Told which process is waited for, where that takes more than a moment.

    Returns:
        The lease, or None where a command that does not make way has it.

    Raises:
        Locked: A background controller does not answer.
        LedgerUnavailable: The ledger, whose lease it would be, does not answer now.
        LedgerProblem: It cannot be used.
    """
    manager_lease = try_manage(workspace, who=who, command=command)
    if manager_lease is not None:
        return manager_lease
    return await take_from_background(workspace, who=who, command=command, notice=notice)


async def take_from_background(
    workspace: Workspace, *, who: str, command: str, notice: Callable[[str], None]
) -> ManagerLease | None:
    """The same, where another process has just had the lease."""
    holder = workspace.manager()
    if holder is not None and holder.command not in {BACKGROUND, ""}:
        return None
    began_ms = SystemClock().boot_ms()
    told = False
    with requesting(workspace, who=who):
        while holder is None or holder.command in {BACKGROUND, ""}:
            if holder is None and (
                manager_lease := try_manage(workspace, who=who, command=command)
            ):
                return manager_lease
            waited_ms = SystemClock().boot_ms() - began_ms
            if waited_ms > REQUEST_SECONDS * 1000:
                raise _silent(holder)
            if waited_ms > NOTICE_MS and not told and holder is not None:
                notice(f"waiting for the {held_by(holder)} to release the environment")
                told = True
            await asyncio.sleep(LOOK_SECONDS)
            holder = workspace.manager()
    return None


def _silent(holder: Holder | None) -> Locked:
    who = "a background controller" if holder is None else f"the {held_by(holder)}"
    return Locked(
        f"{who} was asked to release the environment, and has not answered for"
        f" {REQUEST_SECONDS:.0f} s: it hangs, or is stopped",
        "end it with `fleetform lock break --force --reason TEXT`, then run this command again",
    )


# Tells whether the manager of an environment still acts on the ledger.
#
# A process that hangs, or was stopped, holds its lock all the same, and the kernel says nothing of
# it. So a process that leaves something to it waits for a sign, and reports after a while which
# process gives none, and what helps.

ACTS_MS = 10_000
"""How long a manager may take to begin what is asked of it; it takes a second at most."""

_LOOK_SECONDS = 0.05

_MANAGES = frozenset({"apply", "serve", BACKGROUND})
"""Commands that carry out plans; others hold the environment for a while and leave them alone."""

_ENDS = frozenset({AttemptState.STOPPING, AttemptState.ABORTING, AttemptState.FINISHED})


async def wait_until_ends(workspace: Workspace, names: Collection[str], *, clock: Clock) -> bool:
    """
    Wait until the manager has begun to end these runs; False once there is no manager.

    Raises:
        Locked: They have not in `ACTS_MS`, so the runs are at work still.
    """
    until_ms = clock.boot_ms() + ACTS_MS
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        book = ledger.read_book()
        uids = _at_work(book, [uid for uid, run in book.runs.items() if run.name in names])
        while uids:
            if (found := workspace.manager()) is None:
                return False
            if clock.boot_ms() > until_ms:
                raise Locked(
                    f"{held_by(found)} manages this environment and has not begun to end"
                    f" {_named(book, uids)} for {ACTS_MS // 1000} s: it hangs, or is stopped",
                    "end it with `fleetform lock break --force --reason TEXT`, then run this"
                    " command again: it then stops the runs",
                )
            await asyncio.sleep(max(_LOOK_SECONDS, ledger.poll_seconds))
            uids = _at_work(ledger.read_book(tuple(uids)), uids)
    return True


def _named(book: SchedulerState, uids: Collection[RunUid]) -> str:
    """Name one of these runs, and count the others."""
    names = sorted({book.runs[uid].name for uid in uids}, key=natural_order)
    return first_of(names, 1)


def _at_work(book: SchedulerState, uids: Collection[RunUid]) -> tuple[RunUid, ...]:
    """Return the runs whose requested end has not begun."""
    return tuple(
        uid
        for uid in uids
        if uid in book.runs
        and (attempt := book.attempts.get(uid)) is not None
        and attempt.state is not AttemptState.WAITING
        and attempt.state not in _ENDS
    )


@dataclass
class PickUpWatch:
    """Whether the manager has started an apply that another process entered."""

    apply_uid: str
    _: KW_ONLY
    clock: Clock

    def __post_init__(self) -> None:
        self._since_ms = self.clock.boot_ms()
        self._serial = -1
        self._is_reported = False

    def is_due(self, serial: int) -> bool:
        """Tell whether it is time to ask: the ledger has not changed for long."""
        if serial != self._serial:
            self._serial, self._since_ms = serial, self.clock.boot_ms()
        return not self._is_reported and self.clock.boot_ms() - self._since_ms > ACTS_MS

    def complaint(self, ledger: Ledger, holder: Holder | None) -> str:
        """Say once that it has not, and what helps; empty where it has, or is busy with another's."""
        self._is_reported = True
        if holder is None or holder.command not in _MANAGES:
            return ""
        oldest = ledger.unfinished_apply()
        if oldest is None or oldest[0].apply_uid != self.apply_uid:
            return ""
        if any(one.state != "planned" for one in ledger.read_operations(self.apply_uid)):
            return ""
        return (
            f"{held_by(holder)} has not started to apply this plan for {ACTS_MS // 1000} s: if it"
            " hangs, `fleetform lock break --force --reason TEXT` ends it, and this command applies"
            " the plan"
        )
