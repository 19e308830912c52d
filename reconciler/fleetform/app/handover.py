"""
Takes the manager lease, also from a background controller, which gives it up when it is asked.

A background controller goes on with what others have left. So it makes way for every command that
manages the environment itself; `serve` and `apply` do not, and are left to what they do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.managing import REQUEST_SECONDS, requesting, try_manage
from fleetform.app.problems import Locked
from fleetform.model.leadership import BACKGROUND
from fleetform.views.controllers import held_by

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import Holder, ManagerLease

__all__ = ["become_manager", "take_from_background"]

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
