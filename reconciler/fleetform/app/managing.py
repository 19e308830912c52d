"""
Who manages an environment: asked, taken, and broken, whichever ledger it has.

Everything that causes effects does so under the manager lease that `try_manage` gives.
Whether it is a file lock or a row of the ledger is a matter of `store.backend`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from fleetform.app.clock import RandomIds, SystemClock
from fleetform.app.problems import LedgerProblem
from fleetform.model.refusals import LedgerUnavailable, LedgerUnusable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import ManagerLease


REQUEST_SECONDS = 12.0
"""How long a request for the lease is waited for: a lease of a dead holder is over by then."""


def try_manage(workspace: Workspace, *, who: str, command: str) -> ManagerLease | None:
    """
    Become the manager, or return None when another process is.

    Args:
        workspace: Whose environment; it need not have a ledger yet.
        who: For `lock list` and events.
        command: What the holder does: `apply`, `serve`, `state rebuild`.

    Raises:
        LedgerUnavailable: The ledger, whose lease it would be, does not answer now.
        LedgerProblem: It cannot be used.
    """
    with problems():
        manager_lease = workspace.backend().try_lease(
            workspace.environment.uid, RandomIds(), SystemClock(), who=who, command=command
        )
    if manager_lease is not None:
        keep_reserve(workspace)
    return manager_lease


@contextlib.contextmanager
def requesting(workspace: Workspace, *, who: str) -> Iterator[None]:
    """
    Ask the manager to give its lease up, for as long as this lasts; a background controller does.

    Raises:
        LedgerUnavailable: The ledger, in which the request stands, does not answer now.
        LedgerProblem: It cannot be used.
    """
    with (
        problems(),
        workspace.backend().request_lease(
            workspace.environment.uid,
            SystemClock(),
            who=who,
            term_ms=int(REQUEST_SECONDS * 1000),
        ),
    ):
        yield


def is_requested(workspace: Workspace) -> bool:
    """
    Tell whether any process asks the manager to give its lease up.

    Raises:
        LedgerUnavailable: The ledger does not answer now.
        LedgerProblem: It cannot be used.
    """
    with problems():
        return workspace.backend().is_lease_requested(workspace.environment.uid)


def keep_reserve(workspace: Workspace) -> None:
    """Keep some disk space next to the ledger for an emergency."""
    workspace.backend().keep_reserve(workspace.environment.uid)


@contextlib.contextmanager
def problems() -> Iterator[None]:
    """Turn what is wrong with a ledger into a person's problem, but for what passes by itself."""
    try:
        yield
    except LedgerUnavailable:
        raise
    except LedgerUnusable as problem:
        raise LedgerProblem(str(problem), problem.advice) from problem
