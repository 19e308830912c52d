"""Plan and apply of a few resources, for commands that have just changed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.cli.apply_flow import (
    Watching,
    ask,
    carry_out,
    plan_after_earlier,
    question_of,
)
from fleetform.cli.background import leave, say_left
from fleetform.cli.plan_output import show_plan
from fleetform.cli.screen import screen
from fleetform.cli.tree import load, print_plan_warnings
from fleetform.plan.approval import following

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Plan, Scope


def apply_scoped(
    workspace: Workspace,
    scope: Scope,
    *,
    yes: bool,
    watching: Watching,
    keep_going: bool = False,
    ends_work: bool = False,
) -> int:
    """
    Show the plan of `scope`, ask, carry it out; returns the exit code.

    Permissions are those of the environment's rules: who needs more passes it to `apply`. With
    `ends_work` somebody has asked for an end by name, which is what `--allow-destroy` would say.

    A `serve` that sees the edit may be faster, and enter it as its own: what is meant is followed
    to its end all the same, whoever entered it.
    """
    from fleetform.plan.exit import apply_code
    from fleetform.plan.wait_targets import waited_for

    def made() -> Plan:
        return plan_scoped(workspace, scope, keep_going=keep_going, ends_work=ends_work)

    plan = plan_after_earlier(workspace, made)
    show_plan(screen(), plan)
    follows = 0 if watching.detach else following(plan)
    # The edit is what was asked for: where it is blocked, the run that it is about goes on as it is.
    waits = not watching.detach and not plan.held and bool(waited_for(plan))
    if plan.recovering or (plan.is_empty and not follows and not waits):
        if plan.progressing and not plan.recovering:
            say_left(workspace, leave(workspace))
        return apply_code(plan)
    if not plan.is_empty or follows:
        screen().line()
        question, expected = question_of(plan)
        ask(question, expected=expected, yes=yes, how="-y to apply it")
    return carry_out(workspace, plan, watching, again=made, unasked=yes)


def plan_scoped(
    workspace: Workspace,
    scope: Scope,
    *,
    keep_going: bool = False,
    ends_work: bool = False,
    quiet: bool = False,
) -> Plan:
    """Plan a part of the tree as it is now; `quiet`: print no findings, for the caller has."""
    from fleetform.app.clock import SystemClock
    from fleetform.app.planning import make_plan
    from fleetform.model.plan import Permissions

    loaded = load(workspace, keep_going=keep_going, quiet=quiet)
    permissions = Permissions(allow_destroy=ends_work)
    plan = make_plan(workspace, loaded, permissions, scope, now_ms=SystemClock().now_ms())
    if not quiet:
        print_plan_warnings(loaded, plan)
    return plan
