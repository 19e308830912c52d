"""Plan and apply of a few resources, for commands that have just changed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.cli.apply_flow import (
    Watching,
    carry_out,
    confirm,
    plan_after_earlier,
    say_if_blocked,
)
from fleetform.cli.arguments import who_asks
from fleetform.cli.background import leave, leave_quietly, say_left
from fleetform.cli.failure import Refused
from fleetform.cli.interrupts import Interrupts
from fleetform.cli.plan import show_plan
from fleetform.cli.progress.plain import PlainProgress
from fleetform.cli.screen import error_screen, screen
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
    ends_work: bool = False,
) -> int:
    """
    Show the plan of `scope`, ask, carry it out; returns the exit code.

    Permissions are those of the environment's rules: who needs more passes it to `apply`. With
    `ends_work` a user has named the runs that are to end, which is what `--allow-destroy` would say.

    A `serve` that sees the edit may be faster, and enter it as its own: what is meant is followed
    to its end all the same, also if another process entered it.
    """
    from fleetform.plan.exit import apply_code
    from fleetform.plan.wait_targets import waited_for

    def made() -> Plan:
        return plan_scoped(workspace, scope, ends_work=ends_work)

    plan = plan_after_earlier(workspace, made)
    show_plan(screen(), plan)
    follows = 0 if watching.detach else following(plan)
    # The edit is what was asked for: where it is blocked, the run that it is about goes on as it is.
    waits = not watching.detach and not plan.held and bool(waited_for(plan))
    if plan.recovering or (plan.is_empty and not follows and not waits):
        say_if_blocked(plan)
        if plan.progressing and not plan.recovering:
            say_left(workspace, leave(workspace))
        return apply_code(plan)
    confirm(plan, yes=yes, follows=follows)
    return carry_out(workspace, plan, watching, again=made, unasked=yes)


def plan_scoped(
    workspace: Workspace,
    scope: Scope,
    *,
    keep_going: bool = False,
    ends_work: bool = False,
    quiet: bool = False,
) -> Plan:
    """Plan a part of the configuration; `quiet`: print no findings, because the caller has."""
    from fleetform.app.clock import SystemClock
    from fleetform.app.plan import make_plan
    from fleetform.model.plan import Permissions

    loaded = load(workspace, keep_going=keep_going, quiet=quiet)
    permissions = Permissions(allow_destroy=ends_work)
    plan = make_plan(workspace, loaded, permissions, scope, now_ms=SystemClock().now_ms())
    if not quiet:
        print_plan_warnings(loaded, plan)
    return plan


# The fleet of the default environment: `submit` applies it without a review, for nothing else is there.

_FASTER_MAX = 5
"""How often another first `submit` may be faster before that is an error."""


def apply_default_fleet(workspace: Workspace) -> None:
    """
    Create this machine's fleet in the default environment; nothing where another process has.

    Raises:
        StalePlan: Others were faster again and again.
        Refused: The fleet could not be created.
    """
    from fleetform.app.apply import apply_plan
    from fleetform.app.workspace import FLEET
    from fleetform.model.plan import Scope
    from fleetform.model.refusals import StalePlan

    scope = Scope(targets=(f"fleet/{FLEET}",))
    for turn in range(_FASTER_MAX):
        plan = plan_after_earlier(workspace, lambda: plan_scoped(workspace, scope, keep_going=True))
        if plan.is_empty:
            return
        progress = PlainProgress(error_screen())
        with Interrupts() as interrupts:
            try:
                result = interrupts.run(
                    apply_plan(workspace, plan, who=who_asks(), detach=True, progress=progress)
                )
            except StalePlan:
                if turn == _FASTER_MAX - 1:
                    raise
                continue
            finally:
                interrupts.shield(lambda: leave_quietly(workspace))
        if result.failed_steps:
            raise Refused(
                f"the fleet {FLEET} of the default environment could not be created",
                advice=f"`fleetform apply -C {workspace.root}` shows the plan, and tries again",
            )
        return
