"""`fleetform plan`: what would change and why, for people, scripts and pull requests."""

from __future__ import annotations

from pathlib import Path

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import tree_argument
from fleetform.cli.failure import Refused
from fleetform.cli.permissions import permission_options, permissions_of
from fleetform.cli.plan_output import show_plan
from fleetform.cli.screen import screen
from fleetform.cli.tree import load, open_workspace

_EXAMPLES = (
    ("fleetform plan", "Show what apply would change, value by value"),
    ("fleetform plan --detailed-exitcode", "Exit with 2 when there are changes"),
    ("fleetform plan --markdown >> $GITHUB_STEP_SUMMARY", "Show the plan in a pull request"),
    ("fleetform plan --out today.plan", "Keep the plan; `fleetform apply --plan today.plan`"),
)


@make_command("plan", examples=_EXAMPLES)
@tree_argument
@permission_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
@click.option("--markdown", is_flag=True, help="Print Markdown for a pull request.")
@click.option(
    "--detailed-exitcode", "detailed", is_flag=True, help="Exit with 2 when there are changes."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    help="Write the plan into a file that `apply --plan` carries out.",
)
@click.option("--destroy", is_flag=True, help="Plan the removal of everything, as `destroy` would.")
def command(
    path: str | None,
    as_json: bool,
    markdown: bool,
    detailed: bool,
    out: str | None,
    destroy: bool,
    **permissions: object,
) -> int:
    """
    Show what apply would change in the environment at PATH.

    Nothing is changed and no host is contacted: the tree is compared with the ledger. The exit
    code is 0, 3 when something is held back, 4 when a run has ended badly.
    """
    if as_json and markdown:
        raise Refused("--json and --markdown exclude each other")
    workspace = open_workspace(path)
    loaded = load(workspace, keep_going=bool(permissions["keep_going"]))
    from fleetform.plan.exit import exit_code
    from fleetform.wiring.clock import SystemClock
    from fleetform.wiring.planning import make_plan

    plan = make_plan(
        workspace,
        loaded,
        permissions_of(permissions, destroy=destroy),
        now_ms=SystemClock().now_ms(),
    )
    show_plan(screen(), plan, "json" if as_json else "markdown" if markdown else "text")
    if out is not None:
        from fleetform.plan.file import dump

        Path(out).write_bytes(dump(plan))
    return exit_code(plan, detailed=detailed)
