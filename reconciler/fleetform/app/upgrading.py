"""Upgrades the ledger of an environment that an earlier release wrote, as the first step of commands that write."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.ledger_address import ledger_address, postgresql
from fleetform.app.managing import problems
from fleetform.app.problems import LedgerProblem, Locked
from fleetform.store.errors import OlderLedgerError
from fleetform.views.controllers import held_by

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import Tenure
    from fleetform.store.statements import Statements
    from fleetform.store.upgrading import Upgraded

__all__ = ["upgrade_if_older"]

_COMMAND = "upgrade"
"""What the holder of the lock is called in `lock list` meanwhile."""

_LOOK_SECONDS = 0.05

_PATIENCE_SECONDS = 60.0
"""How long another process's upgrade is waited for: one of a million rows takes some seconds."""


def upgrade_if_older(workspace: Workspace, *, who: str) -> Upgraded | None:
    """
    Upgrade the ledger where an earlier release wrote it; None where there is nothing to upgrade.

    What else may be wrong with a ledger is left to the command, which meets it next.

    Raises:
        Locked: A process of the earlier release manages the environment.
        Problem: The backup cannot be written; nothing was changed.
        LedgerProblem: It cannot be upgraded; nothing was changed.
    """
    if not _is_older(workspace):
        return None
    keep = partial(_keep, workspace, who)
    uid, address = workspace.environment.uid, ledger_address()
    with problems():
        if address is None:
            from fleetform.store.upgrading import upgrade_file

            with _alone(workspace, who) as tenure:
                return upgrade_file(workspace.paths.ledger, uid, keep) if tenure else None
        if (holder := workspace.manager()) is not None:
            raise _managed(held_by(holder))
        with postgresql():
            from fleetform.store.postgres.opening import upgrade_postgres

        return upgrade_postgres(address, uid, keep)


def _is_older(workspace: Workspace) -> bool:
    try:
        reader = workspace.reader()
    except LedgerProblem as problem:
        return isinstance(problem.__cause__, OlderLedgerError)
    if reader is not None:
        reader.close()
    return False


@contextlib.contextmanager
def _alone(workspace: Workspace, who: str) -> Iterator[Tenure | None]:
    """Hold the environment; None once another process has upgraded the ledger meanwhile."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while (tenure := _take(workspace, who)) is None:
        if not _is_older(workspace):
            yield None
            return
        holder = workspace.manager()
        is_upgrading = holder is None or holder.command in {"", _COMMAND}
        if holder is not None and (not is_upgrading or time.monotonic() > until):
            raise _managed(held_by(holder))
        time.sleep(_LOOK_SECONDS)
    with tenure:
        yield tenure


def _take(workspace: Workspace, who: str) -> Tenure | None:
    """Take the lease, also from a background controller of the earlier release."""
    # Each command that writes loads this module, and hardly any has something to upgrade.
    import asyncio

    from fleetform.app.yielding import become_manager

    return asyncio.run(become_manager(workspace, who=who, command=_COMMAND, notice=lambda _: None))


def _managed(holder: str) -> Locked:
    return Locked(
        f"an earlier release of fleetform wrote the ledger, and {holder} manages the environment with it",
        "end that process, then run this command again: it upgrades the ledger after a backup",
    )


def _keep(workspace: Workspace, who: str, source: Statements, version: str) -> Path:
    from fleetform.app.kept_ledger import backup_before
    from fleetform.store.backup import write_backup

    return backup_before(
        workspace, f"upgrade-{version}", partial(write_backup, source, who=who, version=version)
    )
