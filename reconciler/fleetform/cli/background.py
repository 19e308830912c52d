"""Leaving a background controller behind, and stopping it, with what is said of either."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fleetform.cli.arguments import who_asks
from fleetform.cli.failure import explain
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.tree import directory_words
from fleetform.model.figures import counted
from fleetform.views.controllers import ControllerKind, ControllerRow, controller_lines

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace


def leave(workspace: Workspace) -> ControllerRow | None:
    """
    Start a background controller where work is left and no controller is running.

    Returns the controller that drives what is left, or None where no work is left.

    Raises:
        Problem: It could not be started.
    """
    from fleetform.app.background_start import leave_background

    return leave_background(workspace, who=who_asks())


def leave_quietly(workspace: Workspace) -> ControllerRow | None:
    """The same where something else is on its way to be said: a failure is an error line."""
    try:
        return leave(workspace)
    except Exception as problem:
        failure = explain(problem)
        if failure is None:
            raise
        # The terminal may be closed.
        with contextlib.suppress(OSError):
            notices = error_screen()
            notices.labelled("error", failure.message)
            if failure.advice:
                notices.labelled("help", failure.advice)
        return None


def say_left(workspace: Workspace, row: ControllerRow | None) -> None:
    """Say which background controller drives what is left; nothing where none does."""
    if row is None or row.kind is not ControllerKind.BACKGROUND:
        return
    notices = error_screen()
    notices.line(
        f"the background controller (pid {row.pid}) drives the runs; its log: {row.log}", "note"
    )
    where = directory_words(workspace, finds_default=True)
    notices.labelled(
        "help",
        f"`fleetform ps{where}` shows the runs, `fleetform logs{where} RUN -f` follows one;"
        f" `fleetform controller stop{where}` ends the controller",
    )
    if row.warning:
        notices.labelled("warning", row.warning)


@contextlib.contextmanager
def given_back(
    workspace: Workspace, *, failed_only: bool = False
) -> Iterator[Callable[[str], None]]:
    """
    Leave a background controller again where this command has taken the place of one.

    With `failed_only` a command that ends as it should leaves none. Yields what reports which
    process is waited for.
    """
    from fleetform.app.controllers import read_controller
    from fleetform.cli.progress.plain import PlainProgress

    before = read_controller(workspace)
    had_one = before is not None and before.kind is ControllerKind.BACKGROUND
    try:
        yield PlainProgress(error_screen()).notice
    except Exception:
        if had_one:
            leave_quietly(workspace)
        raise
    if had_one and not failed_only:
        leave_quietly(workspace)


def stop_background(workspace: Workspace) -> None:
    """Stop the background controller, and say what is not driven any more."""
    from fleetform.app.clock import SystemClock
    from fleetform.app.controllers import read_controller
    from fleetform.app.handover import take_from_background
    from fleetform.cli.progress.plain import PlainProgress

    out = screen()
    row = read_controller(workspace)
    if row is None or row.kind is not ControllerKind.BACKGROUND:
        out.line("no background controller is running")
        if row is not None:
            out.line(controller_lines(row, now_ms=SystemClock().now_ms())[0], "dim")
        return
    manager_lease = asyncio.run(
        take_from_background(
            workspace,
            who=who_asks(),
            command="controller stop",
            notice=PlainProgress(error_screen()).notice,
        )
    )
    # Released after its event is written, which so precedes the events of the next controller.
    with manager_lease or contextlib.nullcontext():
        out.line(f"stopped the background controller (pid {row.pid} on {row.host})", "good")
        if manager_lease is not None:
            say_not_driven(workspace)
        elif (other := read_controller(workspace)) is not None:
            out.line(controller_lines(other, now_ms=SystemClock().now_ms())[0], "dim")


def say_not_driven(workspace: Workspace) -> None:
    """Count the runs that are open and that no controller drives from now on; nothing without any."""
    from fleetform.app.background import note_not_driven

    if runs := note_not_driven(workspace, who=who_asks()):
        verb = "is" if runs == 1 else "are"
        notices = error_screen()
        notices.line(
            f"{counted(runs, 'run')} {verb} not over, and {verb} not driven until `fleetform serve`"
            " or `fleetform apply` runs again",
            "warn",
        )
        notices.labelled("help", "running jobs continue on their hosts; nothing new starts")
