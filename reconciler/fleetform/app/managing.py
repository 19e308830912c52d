"""
Who manages an environment: asked, taken, and broken, whichever ledger it has.

Everything that causes effects in the world does so under the manager lease that `try_manage` gives.
On SQLite it is a file lock beside the ledger, on PostgreSQL a lease in it.
"""

from __future__ import annotations

import atexit
import contextlib
from typing import TYPE_CHECKING

from fleetform.app.clock import RandomIds, SystemClock
from fleetform.app.ledger_address import has_address, ledger_address, postgresql
from fleetform.app.problems import LedgerProblem, Problem
from fleetform.model.refusals import LedgerUnavailable, LedgerUnusable
from fleetform.store.filesystem import keep
from fleetform.store.lock import asking, is_asked, try_lock, who_holds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import Holder, ManagerLease
    from fleetform.store.postgres.lease import LeaseLook
__all__ = [
    "REQUEST_SECONDS",
    "break_tenure",
    "holder",
    "is_requested",
    "keep_reserve",
    "problems",
    "requesting",
    "try_manage",
]


REQUEST_SECONDS = 12.0
"""How long a request for the lease is waited for: a lease of a dead holder is over by then."""

_looks: dict[tuple[str, str], LeaseLook] = {}
"""One connection an environment: whoever follows a manager asks many times a second."""


def holder(workspace: Workspace) -> Holder | None:
    """
    Say who manages the environment now, or None when nobody does.

    Raises:
        LedgerUnavailable: Its ledger does not answer now.
        LedgerProblem: Its ledger cannot be used.
    """
    if not has_address():
        return who_holds(workspace.paths.manager_lock)
    with problems():
        return _look(workspace).holder()


def try_manage(workspace: Workspace, *, who: str, command: str) -> ManagerLease | None:
    """
    Become the manager, or return None when somebody else is.

    Args:
        workspace: Whose environment; it need not have a ledger yet.
        who: For `lock list` and events.
        command: What the holder does: `apply`, `serve`, `state rebuild`.

    Raises:
        LedgerUnavailable: The ledger, whose lease it would be, does not answer now.
        LedgerProblem: It cannot be used.
    """
    clock = SystemClock()
    address = ledger_address()
    if address is None:
        manager_lease = try_lock(
            workspace.paths.manager_lock, who=who, command=command, now_ms=clock.now_ms()
        )
        if manager_lease is not None:
            keep_reserve(workspace)
        return manager_lease
    with problems(), postgresql():
        from fleetform.store.postgres.lease import try_lease

        return try_lease(
            address, workspace.environment.uid, RandomIds(), clock, who=who, command=command
        )


@contextlib.contextmanager
def requesting(workspace: Workspace, *, who: str) -> Iterator[None]:
    """
    Ask the manager to give its lease up, for as long as this lasts; a background controller does.

    Raises:
        LedgerUnavailable: The ledger, in which the request stands, does not answer now.
        LedgerProblem: It cannot be used.
    """
    address = ledger_address()
    if address is None:
        with asking(workspace.paths.manager_request):
            yield
        return
    with problems(), postgresql():
        from fleetform.store.postgres.lease import asking_for_lease

        with asking_for_lease(
            address,
            workspace.environment.uid,
            SystemClock(),
            who=who,
            term_ms=int(REQUEST_SECONDS * 1000),
        ):
            yield


def is_requested(workspace: Workspace) -> bool:
    """
    Tell whether any process asks the manager to give its lease up.

    Raises:
        LedgerUnavailable: The ledger does not answer now.
        LedgerProblem: It cannot be used.
    """
    if not has_address():
        return is_asked(workspace.paths.manager_request)
    with problems():
        return _look(workspace).is_asked()


def keep_reserve(workspace: Workspace) -> None:
    """Keep some room beside the ledger for an emergency; a database server has its disk for itself."""
    if not has_address():
        keep(workspace.paths.ledger)


def break_tenure(workspace: Workspace, *, who: str) -> Holder | None:
    """
    Take the environment from whoever holds it; returns who that was, None when nobody did.

    A lease ends at once, and its holder's next write is refused by its fence.

    Raises:
        Problem: It is a file lock: the kernel frees it when its process ends, and never before.
    """
    address = ledger_address()
    if address is not None:
        with problems(), postgresql():
            from fleetform.store.postgres.lease import break_lease

            return break_lease(address, workspace.environment.uid, SystemClock(), who=who)
    found = holder(workspace)
    if found is None:
        return None
    raise Problem(
        f"{found.command} of {found.who} (pid {found.pid} on {found.host}) is running and manages"
        f" this environment, which {who} cannot take from it",
        f"end it with `kill {found.pid}`: the lock is released when the process has ended",
    )


def _look(workspace: Workspace) -> LeaseLook:
    address = ledger_address()
    assert address is not None, "the caller has asked"
    key = (address.url, workspace.environment.uid)
    if (known := _looks.get(key)) is not None:
        return known
    with postgresql():
        from fleetform.store.postgres.lease import LeaseLook

        look = LeaseLook(address, workspace.environment.uid)
    if not look.exists:
        # It may be made at any moment.
        look.close()
        return look
    _looks[key] = look
    atexit.register(look.close)
    return look


@contextlib.contextmanager
def problems() -> Iterator[None]:
    """Turn what is wrong with a ledger into a person's problem, but for what passes by itself."""
    try:
        yield
    except LedgerUnavailable:
        raise
    except LedgerUnusable as problem:
        raise LedgerProblem(str(problem), problem.advice) from problem
