"""
Manager leases of environments, and the takeover of one.

A file lock cannot be broken while its holder lives: the kernel holds it. So to break it
is to end the process, by its own handle and not by a number that may be another's by then. A lease is
ended in the database, and its holder's next write is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.ledger import open_for_writing
from fleetform.app.managing import problems
from fleetform.app.paths import ledger_backend, state_home
from fleetform.app.problems import Locked, Problem
from fleetform.app.serve import takeover
from fleetform.model.history import LoggedEvent
from fleetform.model.override import Override, OverrideKind
from fleetform.views.controllers import LockRow, LockShown, held_by, lock_row, waiting_row
from fleetform.views.history import operation_rows
from fleetform.views.overrides import until_text

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import Holder
    from fleetform.model.ports import Progress, Reader


TERM_SECONDS = 10.0
"""What a manager needs to end in good order; `serve` takes 5 s at most."""

KILL_SECONDS = 5.0


# -- seeing -------------------------------------------------------------------------------------


def list_locks() -> tuple[LockRow, ...]:
    """
    List the environments of this user's state folder, or of the database of ledgers, by uid.

    Raises:
        LedgerProblem: The database cannot be reached or used.
    """
    backend = ledger_backend(state_home())
    with problems():
        return tuple(
            lock_row(_name_in(partial(backend.open_reader, uid)), uid, backend.holder(uid))
            for uid in backend.environments()
        )


def show_lock(workspace: Workspace) -> LockShown:
    """Return the manager of an environment, the steps that are open, and the applies that wait."""
    lock = lock_row(workspace.environment.name, workspace.environment.uid, workspace.manager())
    return workspace.read(lambda reader: _shown(reader, lock), LockShown(lock, (), (), ""))


def _shown(reader: Reader, lock: LockRow) -> LockShown:
    waiting, opened = [], []
    for record in reversed(reader.read_applies(limit=_APPLIES_MAX)):
        if record.state == "running":
            operations = reader.read_operations(record.uid)
            planned = sum(one.state in {"planned", "intended"} for one in operations)
            waiting.append(waiting_row(record, planned))
            opened += [one for one in operations if one.state == "intended"]
    taken = takeover(reader.read_overrides(), SystemClock().now_ms())
    return LockShown(
        lock, operation_rows(opened), tuple(waiting), taken.sentence if taken is not None else ""
    )


_APPLIES_MAX = 200
"""Those that are not over are among the newest: each resource takes part in one at a time."""


def _name_in(open_reader: Callable[[], Reader | None]) -> str:
    """Read the name of an environment from the plan that was applied last; empty without one."""
    from fleetform.store.errors import LedgerError

    try:
        reader = open_reader()
        if reader is None:
            return ""
        with contextlib.closing(reader):
            newest = reader.read_applies(limit=1)
            body = reader.read_plan(newest[0].plan_digest) if newest else None
    except (LedgerError, OSError):
        return ""
    if body is None:
        return ""
    try:
        return str(json.loads(body).get("environment_name", ""))
    except (ValueError, AttributeError):
        return ""


# -- breaking -----------------------------------------------------------------------------------


def break_lock(workspace: Workspace, *, who: str, reason: str, force: bool) -> Holder | None:
    """
    Take the environment from its manager; returns the manager, None when there was none.

    Args:
        workspace: Whose environment.
        who: For the event.
        reason: The same.
        force: A holder that is alive is ended too.

    Raises:
        Locked: The holder is alive and not `force`, or not of this machine.
        Problem: It does not end.
    """
    found = workspace.manager()
    if found is None:
        return None
    if not force:
        raise _held(found)
    backend = workspace.backend()
    if backend.has_lease_in_ledger:
        with problems():
            broken = backend.break_lease(workspace.environment.uid, SystemClock(), who=who)
        found = broken or found
    else:
        _end(workspace, found)
    _log(workspace, found, who, reason)
    return found


def _held(found: Holder) -> Locked:
    """Say who would be pushed aside, and what that would do to them."""
    wait = "wait for it, pause `serve` with `fleetform apply --takeover`, or"
    if found.left_ms is None:
        return Locked(
            f"{held_by(found)} is running and manages this environment",
            f"{wait} end it with `fleetform lock break --force --reason TEXT` (kill {found.pid})",
        )
    # Whether it lives is not known: its lease outlives it by up to a term.
    return Locked(
        f"{held_by(found)} has the manager lease of this environment, which expires in"
        f" {found.left_ms / 1000:.1f} s unless it is renewed",
        f"{wait} end the lease with `fleetform lock break --force --reason TEXT`; no process is"
        " ended, and later writes of the former holder are refused",
    )


def _end(workspace: Workspace, found: Holder) -> None:
    """End the process that holds the file lock, and return when the lock is free."""
    if found.host != socket.gethostname() or not found.pid:
        raise Locked(
            f"{held_by(found)} manages this environment, and is not a process of this machine",
            "end it there",
        )
    try:
        handle = os.pidfd_open(found.pid)
    except OSError as problem:
        raise Locked(
            f"{held_by(found)} manages this environment, and cannot be reached from here:"
            f" {problem.strerror}",
            "it may be in another container, or belong to another user: end it there",
        ) from problem
    try:
        # From here on the handle is one process, whatever becomes of its number.
        if workspace.manager() != found:
            raise Locked(
                "another process has just taken over this environment", "run the command again"
            )
        # Not `select`, which takes no descriptor above 1023.
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
            _signal(handle, number, found)
            if ended.poll(seconds * 1000):
                return
    finally:
        os.close(handle)
    raise Problem(
        f"{held_by(found)} does not end, even after SIGKILL",
        "it probably waits for a disk or a file system that does not answer",
    )


def _signal(handle: int, number: signal.Signals, found: Holder) -> None:
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return
    except PermissionError as problem:
        raise Locked(
            f"{held_by(found)} is a process of another user", "ask that user to end it"
        ) from problem


def _log(workspace: Workspace, found: Holder, who: str, reason: str) -> None:
    reader = workspace.reader()
    if reader is None:
        return
    reader.close()
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        sentence = f"{who} took the environment from {held_by(found)}: {reason}"
        ledger.append_events([LoggedEvent("lock.broken", SystemClock().now_ms(), sentence)])


# Takes an environment over from `serve`, visibly and for a while, so that a user can work by hand.
# What takes over is an override of the ledger: `serve` sees it, ends what it is making, lets the
# environment go, and takes it up again when the override has run out or was lifted.

_LOOK_SECONDS = 0.05

_WAIT_SECONDS = 120.0
"""How long `serve` may take to end what it is making: a step waits for a host for a minute."""


async def take_over(
    workspace: Workspace, *, who: str, reason: str, for_ms: int, progress: Progress
) -> Override:
    """
    Have `serve` rest from now on, and return once it does.

    Args:
        workspace: Whose environment.
        who: Shown wherever the override is.
        reason: The same.
        for_ms: After that, `serve` takes up again by itself.
        progress: Told whom we wait for.

    Raises:
        Locked: Another user has taken over, or the manager does not release the environment.
    """
    now_ms = SystemClock().now_ms()
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        taken = takeover(ledger.read_overrides(), now_ms)
        if taken is not None and taken.who != who:
            raise Locked(
                f"{taken.who} has already taken over{until_text(taken)}: {taken.reason}",
                f"ask that person, or end it with `fleetform emergency lift {taken.number}`",
            )
        if taken is not None:
            ledger.lift_overrides([taken.number], who=who, now_ms=now_ms)
        put = ledger.put_overrides(
            OverrideKind.TAKEOVER,
            (),
            reason=reason,
            who=who,
            now_ms=now_ms,
            until_ms=now_ms + for_ms,
        )
        (override,) = put.overrides
    progress.notice(
        f"taken over{until_text(override)}; `fleetform emergency lift {override.number}` ends the"
        " takeover"
    )
    await _wait(workspace, override, progress)
    return override


async def _wait(workspace: Workspace, override: Override, progress: Progress) -> None:
    """Wait until `serve` has released its lease; another `apply` does not block, and is followed."""
    told = False
    deadline = SystemClock().boot_ms() + int(_WAIT_SECONDS * 1000)
    while (holder := workspace.manager()) is not None and holder.command in {"serve", ""}:
        if not told and holder.command:
            progress.notice(f"waiting for serve (pid {holder.pid}) to release the environment")
            told = True
        if SystemClock().boot_ms() > deadline:
            raise Locked(
                f"serve (pid {holder.pid} on {holder.host}) has not released the environment",
                f"check what it does, or end it: `fleetform lock break --force`. The takeover lasts"
                f"{until_text(override)}",
            )
        await asyncio.sleep(_LOOK_SECONDS)
