"""`fleetform apply`: plan, ask, carry out, follow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import tree_argument
from fleetform.cli.failure import Refused
from fleetform.cli.permissions import permission_options, permissions_of
from fleetform.cli.plan_output import show_plan
from fleetform.cli.refresh import look_first, look_only, refresh_options, show_drift
from fleetform.cli.screen import screen
from fleetform.cli.tree import load, open_workspace
from fleetform.model.figures import counted

if TYPE_CHECKING:
    from fleetform.model.plan import Plan
    from fleetform.wiring.workspace import Workspace

_EXAMPLES = (
    ("fleetform apply", "Show the plan, ask, carry it out, and follow the runs to their end"),
    ("fleetform apply -y --detach", "Submit without asking and do not wait for the runs"),
    ("fleetform apply -y --show-output", "Print what the jobs print, as they print it"),
    ("fleetform apply --allow-restart", "Let changed runs that are running be run anew"),
    ("fleetform apply --plan today.plan", "Carry out exactly that plan, or refuse if it is stale"),
)


@make_command("apply", examples=_EXAMPLES)
@tree_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@permission_options
@refresh_options
@click.option("--detach", is_flag=True, help="Do not wait for the runs.")
@click.option("--show-output", is_flag=True, help="Print what the jobs print.")
@click.option(
    "--json-into",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Append progress to FILE as JSON lines.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Carry out the plan that `plan --out` wrote.",
)
def command(
    path: str | None,
    yes: bool,
    detach: bool,
    show_output: bool,
    json_into: str | None,
    plan_file: str | None,
    refresh: bool,
    refresh_only: bool,
    **permissions: Any,
) -> int:
    """
    Make the environment at PATH as its tree says.

    Shows the plan and asks. Changes that delete, or that end running work, are held back
    unless --allow-destroy or the environment's rules allow them. Ctrl-C leaves the runs as they
    are; a second apply follows them again. Exits with 4 when a run fails.
    """
    from fleetform.cli.carry_out import Watching, ask, carry_out, settle_earlier
    from fleetform.plan.exit import exit_code

    workspace = open_workspace(path)
    if refresh_only:
        return _take_note(workspace, yes=yes)
    settle_earlier(workspace)
    permissions["refresh"] = refresh
    plan = (
        _read_plan(workspace, plan_file)
        if plan_file is not None
        else _make_plan(workspace, permissions)
    )
    # Somebody may have begun to apply while this plan was made; theirs is seen through first.
    while plan_file is None and plan.held and settle_earlier(workspace):
        plan = _make_plan(workspace, permissions)
    out = screen()
    show_plan(out, plan)
    if plan.is_empty and (detach or not plan.progressing):
        return exit_code(plan, detailed=False)
    if not plan.is_empty:
        out.line()
        question, expected = _question(plan)
        ask(question, expected=expected, yes=yes, how="-y to apply it")
    return carry_out(workspace, plan, Watching(detach, show_output, json_into))


def _make_plan(workspace: Workspace, options: dict[str, Any]) -> Plan:
    from fleetform.wiring.clock import SystemClock
    from fleetform.wiring.planning import make_plan

    loaded = load(workspace, keep_going=options["keep_going"])
    found = look_first(workspace) if options["refresh"] else None
    if found is not None:
        show_drift(screen(), found, quiet=True)
    return make_plan(
        workspace,
        loaded,
        permissions_of(options),
        now_ms=SystemClock().now_ms(),
        live=None if found is None else found.live,
    )


def _take_note(workspace: Workspace, *, yes: bool) -> int:
    """Accept what was only observed; the rest stays as it is and is told again."""
    from fleetform.cli.carry_out import ask
    from fleetform.cli.who import who_asks
    from fleetform.model.drift import Remedy
    from fleetform.wiring.observing import accept_drift

    found = look_only(workspace)
    out = screen()
    show_drift(out, found)
    count = sum(one.remedy is Remedy.ACCEPT for one in found.live.drift)
    if not count:
        return 0
    out.line()
    ask(f"Take note of {counted(count, 'field')}? [y/N]", expected="yes", yes=yes, how="-y")
    accepted = accept_drift(workspace, found, who=who_asks())
    out.line(f"Taken note of {counted(len(accepted), 'field')}.", "good")
    return 0


def _read_plan(workspace: Workspace, file: str) -> Plan:
    """Read a kept plan; whether it still fits is the ledger's to say."""
    from fleetform.plan.file import load as load_plan

    try:
        plan = load_plan(Path(file).read_bytes())
    except ValueError as error:
        raise Refused(
            f"{file} is not a plan: {error}", advice="write one with `fleetform plan --out`"
        ) from error
    if plan.environment_uid != workspace.environment.uid:
        raise Refused(
            f"{file} is a plan of the environment `{plan.environment_name}`, and this is "
            f"`{workspace.environment.name}`",
            advice="name the other environment's folder as PATH",
        )
    return plan


def _question(plan: Plan) -> tuple[str, str]:
    """
    Choose the question and the answer that it expects.

    What destroys asks for the environment's name: a `y` is typed faster than a plan is read.
    """
    destructive = sum(change.destructive for change in plan.changes)
    if destructive:
        question = (
            f"{counted(destructive, 'change')} will delete something or end running work. "
            f"Type the environment's name, {plan.environment_name}, to go on:"
        )
        return question, plan.environment_name
    return f"Apply {counted(len(plan.changes), 'change')}? [y/N]", "yes"
