"""
Who manages an environment: asked, taken, and broken, whichever ledger it has.

Everything that causes effects in the world does so under the tenure that `try_manage` gives.
On SQLite it is a file lock beside the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.store.lock import try_lock, who_holds
from fleetform.wiring.clock import SystemClock
from fleetform.wiring.problems import Problem

if TYPE_CHECKING:
    from fleetform.model.tenure import Holder, Tenure
    from fleetform.wiring.workspace import Workspace

__all__ = ["break_tenure", "holder", "try_manage"]


def holder(workspace: Workspace) -> Holder | None:
    """Say who manages the environment now, or None when nobody does."""
    return who_holds(workspace.paths.manager_lock)


def try_manage(workspace: Workspace, *, who: str, command: str) -> Tenure | None:
    """
    Become the manager, or return None when somebody else is.

    Args:
        workspace: Whose environment; it need not have a ledger yet.
        who: For `lock list` and events.
        command: What the holder does: `apply`, `serve`, `state rebuild`.

    Raises:
        LedgerProblem: The ledger, whose lease it would be, cannot be used.
    """
    return try_lock(
        workspace.paths.manager_lock, who=who, command=command, now_ms=SystemClock().now_ms()
    )


def break_tenure(workspace: Workspace, *, who: str) -> Holder | None:
    """
    Take the environment from whoever holds it; returns who that was, None when nobody did.

    A lease ends at once, and its holder's next write is refused by its fence.

    Raises:
        Problem: It is a file lock: the kernel frees it when its process ends, and never before.
    """
    found = holder(workspace)
    if found is None:
        return None
    raise Problem(
        f"{found.command} of {found.who} (pid {found.pid} on {found.host}) is alive and holds"
        f" this environment, which {who} cannot take from it",
        f"end it with `kill {found.pid}`: the lock is free as soon as it is gone",
    )
