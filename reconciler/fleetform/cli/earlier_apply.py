"""
An apply that was entered before: shown, confirmed where the configuration has changed since, and finished.

It was approved when it was entered, so it is finished first. A user who has edited the configuration
since may want the opposite: the question is asked before anything else is created or deleted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from fleetform.cli.arguments import who_asks
from fleetform.cli.background import leave_quietly
from fleetform.cli.exit import Exit
from fleetform.cli.interrupts import Interrupts
from fleetform.cli.progress.plain import PlainProgress
from fleetform.cli.screen import error_screen

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Plan

_TRIES_MAX = 5
"""How often another process may enter an apply while the plan is made."""


def settle_earlier(workspace: Workspace, *, yes: bool) -> bool:
    """
    Finish an apply that was entered before, so that anything new is planned after it.

    Returns False at once where there is none. With `yes` no question is asked.

    Raises:
        Refused: The configuration has changed since, and the rest of that apply was not confirmed.
    """
    from fleetform.app.apply import settle
    from fleetform.app.unfinished import has_unfinished
    from fleetform.cli.summary import show_interrupted

    if not workspace.read(has_unfinished, False):
        return False
    _confirm(workspace, yes=yes)
    progress = PlainProgress(error_screen())
    with Interrupts() as interrupts:
        try:
            interrupts.run(settle(workspace, who=who_asks(), progress=progress))
        except KeyboardInterrupt:
            left = interrupts.shield(lambda: leave_quietly(workspace))
            # The terminal may be closed: the lines are lost then.
            with contextlib.suppress(OSError):
                show_interrupted(workspace, left)
            raise click.exceptions.Exit(Exit.INTERRUPTED) from None
        except BaseException:
            interrupts.shield(lambda: leave_quietly(workspace))
            raise
        # Its runs are not waited for here, and what comes next may be looked at for long.
        interrupts.shield(lambda: leave_quietly(workspace))
    return True


def _confirm(workspace: Workspace, *, yes: bool) -> None:
    """Show what is resumed; a manager that is alive goes on with it, whatever is answered here."""
    from fleetform.app.unfinished import differing, read_unfinished
    from fleetform.cli.apply_flow import ask
    from fleetform.cli.tree import load
    from fleetform.views.plan.text import rendered_rest
    from fleetform.views.plan.unfinished import differing_text, entered_text

    if workspace.manager() is not None:
        return
    found = workspace.read(read_unfinished, ())
    desired = load(workspace, keep_going=True, quiet=True).desired
    changed = [key for one in found for key in differing(one, desired)]
    out = error_screen()
    for one in found:
        if one.rest.changes:
            out.line(
                f"{entered_text(one.who, one.started_at_ms, one.rest.digest)}. What is left of it:"
            )
            out.line()
            out.lines(rendered_rest(one.rest))
    if not changed:
        return
    out.line(differing_text(changed), "warn")
    out.flush()
    ask(
        "Finish the interrupted apply first? [y/N]",
        expected="yes",
        yes=yes,
        how="-y to finish it and then apply what is declared now",
        look="look at the rest of the interrupted apply above, then",
    )


def plan_after_earlier(workspace: Workspace, make: Callable[[], Plan], *, yes: bool) -> Plan:
    """
    Make a plan once every apply that was entered before is through; `yes` as in `settle_earlier`.

    Another process may enter an apply while the plan is made, and may be through with it before
    this one asks: then the plan is blocked by an apply that no longer exists.
    """
    from fleetform.plan.blockers.freeze import is_unfinished

    settle_earlier(workspace, yes=yes)
    plan = make()
    for _ in range(_TRIES_MAX):
        is_settled = settle_earlier(workspace, yes=yes) if plan.held else False
        if not is_settled and not any(map(is_unfinished, plan.held)):
            break
        plan = make()
    return plan
