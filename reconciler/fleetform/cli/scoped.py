"""Plan and apply of a few resources, for commands that have just changed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.cli.carry_out import Watching, ask, carry_out, settle_earlier
from fleetform.cli.plan_output import show_plan
from fleetform.cli.screen import screen
from fleetform.cli.tree import load
from fleetform.model.figures import counted

if TYPE_CHECKING:
    from fleetform.model.plan import Plan, Scope
    from fleetform.wiring.workspace import Workspace


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
    """
    from fleetform.plan.exit import exit_code

    settle_earlier(workspace)
    plan = plan_scoped(workspace, scope, keep_going=keep_going, ends_work=ends_work)
    show_plan(screen(), plan)
    if plan.is_empty:
        return exit_code(plan, detailed=False)
    screen().line()
    question, expected = _question(plan)
    ask(question, expected=expected, yes=yes, how="-y to apply it")
    return carry_out(workspace, plan, watching)


def plan_scoped(
    workspace: Workspace, scope: Scope, *, keep_going: bool = False, ends_work: bool = False
) -> Plan:
    """Plan a part of the tree as it is now."""
    from fleetform.model.plan import Permissions
    from fleetform.wiring.clock import SystemClock
    from fleetform.wiring.planning import make_plan

    loaded = load(workspace, keep_going=keep_going)
    permissions = Permissions(allow_destroy=ends_work)
    return make_plan(workspace, loaded, permissions, scope, now_ms=SystemClock().now_ms())


def _question(plan: Plan) -> tuple[str, str]:
    destructive = sum(change.destructive for change in plan.changes)
    if destructive:
        question = (
            f"{counted(destructive, 'change')} will delete something or end running work. "
            f"Type the environment's name, {plan.environment_name}, to go on:"
        )
        return question, plan.environment_name
    return f"Apply {counted(len(plan.changes), 'change')}? [y/N]", "yes"
