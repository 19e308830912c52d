"""
Reads which controller an environment has, and how a background controller was started.

The manager lease names the process. What else there is to know of a background controller lies
next to the ledger, in a file of the machine that it runs on.
"""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.app.managing import is_requested
from fleetform.model.leadership import BACKGROUND

if TYPE_CHECKING:
    from fleetform.app.paths import StatePaths
    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import Holder
    from fleetform.views.controllers import ControllerRow


CHANGE_SECONDS = 2.0
"""How long a change of controllers takes at most: a connection to the ledger's server is made in it."""

_LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class BackgroundStart:
    """
    How a background controller was started.

    `variables` are names of environment variables besides the usual ones; `warning` says why the
    machine may end it early, or is empty.
    """

    pid: int
    variables: tuple[str, ...] = ()
    warning: str = ""


def find_controller(workspace: Workspace) -> Holder | None:
    """
    Return who drives the runs, or None where no controller is running.

    While one makes way for another there is neither for a moment, which is waited for.

    Raises:
        LedgerUnavailable: The ledger does not answer now.
        LedgerProblem: It cannot be used.
    """
    until = time.monotonic() + CHANGE_SECONDS
    while (holder := workspace.manager()) is None and is_requested(workspace):
        if time.monotonic() > until:
            break
        time.sleep(_LOOK_SECONDS)
    return holder


def read_controller(workspace: Workspace) -> ControllerRow | None:
    """
    Return the controller of an environment; None where none is running.

    Raises:
        LedgerUnavailable: The ledger does not answer now.
        LedgerProblem: It cannot be used.
    """
    from fleetform.views.controllers import controller_row

    holder = find_controller(workspace)
    if holder is None:
        return None
    if holder.command != BACKGROUND or holder.host != socket.gethostname():
        return controller_row(holder)
    paths = workspace.paths
    start = _read_start(paths)
    log = str(paths.background_log)
    if start is None or start.pid != holder.pid:
        return controller_row(holder, log=log)
    return controller_row(holder, log=log, variables=start.variables, warning=start.warning)


def note_start(paths: StatePaths, start: BackgroundStart) -> None:
    """Write down how this process was started; the one before it has ended by now."""
    text = json.dumps({"pid": start.pid, "variables": start.variables, "warning": start.warning})
    fresh = paths.background_start.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(paths.background_start)


def _read_start(paths: StatePaths) -> BackgroundStart | None:
    try:
        found = json.loads(paths.background_start.read_text(encoding="utf-8"))
        return BackgroundStart(
            int(found["pid"]), tuple(map(str, found["variables"])), str(found["warning"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        # Of another release, or cut off by a full disk: the lease still says who it is.
        return None
