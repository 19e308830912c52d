"""`fleetform destroy`: the way back out, with a question that cannot be answered by accident."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_argument
from fleetform.cli.failure import Refused
from fleetform.cli.plan import show_plan
from fleetform.cli.screen import say_line, screen
from fleetform.cli.tree import load, open_to_write, print_plan_warnings

if TYPE_CHECKING:
    from fleetform.model.plan import Plan

_REMOVED = "Everything is removed; a later apply creates it again."
_RESULTS_STAY = "Finished runs keep their results and do not run again."
_EXAMPLES = (
    ("fleetform plan --destroy", "Show what would be removed"),
    ("fleetform destroy", "Show the plan, ask for the environment's name, and remove everything"),
    ("fleetform destroy -y --allow-destroy", "Remove everything without asking, for scripts"),
    ("fleetform destroy --lost gpu-3", "Remove everything, without a host that is gone for good"),
)


@make_command("destroy", examples=_EXAMPLES)
@directory_argument
@click.option(
    "-y", "--yes", is_flag=True, help="Do not ask for confirmation; needs --allow-destroy as well."
)
@click.option(
    "--allow-destroy",
    is_flag=True,
    help="Allow the removal; with -y, the environment's name is not asked for.",
)
@click.option(
    "--lost",
    multiple=True,
    metavar="HOST",
    help="Host over SSH that is gone for good: its jobs are lost, and nothing is asked of it.",
)
@click.option(
    "--json-into",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Append progress to FILE as JSON lines.",
)
def command(
    path: str | None, yes: bool, allow_destroy: bool, lost: tuple[str, ...], json_into: str | None
) -> int:
    """
    Remove every resource that the environment created.

    Ends running runs, then releases hosts, then releases volumes. Deletes the data of a volume only
    if its `deletion_policy` says so. The configuration does not change: a later apply creates hosts
    and volumes again and runs the runs that had not finished. Finished runs keep their results and
    do not run again, and neither does a run of `fleetform shell`. A host over SSH that does not
    answer blocks the removal of its fleet: start it again, or name it with --lost if it never
    returns.
    """
    if yes and not allow_destroy:
        raise Refused(
            "destroy with -y needs --allow-destroy",
            advice="pass --allow-destroy as well, or leave -y out and type the environment's name",
        )
    workspace = open_to_write(path)
    # Errors in the configuration must not block its removal.
    loaded = load(workspace, keep_going=True)
    from fleetform.app.clock import SystemClock
    from fleetform.app.plan import make_plan
    from fleetform.cli.apply_flow import (
        Watching,
        ask,
        carry_out,
        record_nothing,
        say_if_blocked,
    )
    from fleetform.cli.earlier_apply import plan_after_earlier
    from fleetform.model.plan import Action, Permissions
    from fleetform.plan.approval import following
    from fleetform.plan.exit import apply_code

    def make() -> Plan:
        everything = Permissions(allow_destroy=True, destroy=True)
        now_ms = SystemClock().now_ms()
        return make_plan(workspace, loaded, everything, now_ms=now_ms, lost=lost, notice=say_line)

    plan = plan_after_earlier(workspace, make, yes=yes)
    print_plan_warnings(loaded, plan)
    out = screen()
    show_plan(out, plan)
    # What is still ending keeps what it uses: who waits for that has the rest removed as well.
    if plan.is_empty and not following(plan):
        say_if_blocked(plan)
        code = apply_code(plan)
        record_nothing(json_into, plan, code)
        return code
    name = workspace.environment.name
    out.line()
    ask(
        f"This removes what is listed above. Type the environment's name, {name}, to continue:",
        expected=name,
        yes=yes,
        how="-y --allow-destroy",
    )
    has_results = any(change.action is Action.ARCHIVE for change in plan.changes)
    finished = f"{_REMOVED} {_RESULTS_STAY}" if has_results else _REMOVED
    watching = Watching(json_into=json_into, finished=finished)
    # Runs begin and end while the user reads; what was listed goes, however it goes.
    return carry_out(workspace, plan, watching, again=make)
