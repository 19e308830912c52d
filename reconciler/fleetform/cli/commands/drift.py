"""`fleetform drift`: what the world has become since it was made."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.directory import directory_argument
from fleetform.cli.exit import Exit
from fleetform.cli.output_format import json_option
from fleetform.cli.refresh import unrecorded_text
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.tree import open_reader, open_workspace

_EXAMPLES = (
    ("fleetform drift", "Ask the world, and say what is not as it was made, since when"),
    ("fleetform drift --detailed-exitcode", "Exit with 2 where something has drifted"),
    ("fleetform drift --format json", "Print it as JSON"),
)


@make_command("drift", examples=_EXAMPLES)
@directory_argument
@json_option
@click.option(
    "--detailed-exitcode",
    "detailed",
    is_flag=True,
    help="Exit with 2 where something has drifted.",
)
def command(path: str | None, as_json: bool, detailed: bool) -> int:
    """
    Ask the world what has become of what was made in the environment.

    No resource is changed, and a controller goes on undisturbed. What was seen is recorded: plans,
    `why` and `status` show it until a look or a correction shows that it is healed. `docs/drift.md`
    has the table of what is compared. `plan --refresh` shows what would be done about it.
    """
    from fleetform.views.drift import drift_rows, render
    from fleetform.wiring.observing import refreshed

    workspace = open_workspace(path)
    # Where nothing was applied, nothing can have drifted, and no ledger is made for the asking.
    open_reader(workspace).close()
    found = refreshed(workspace)
    drifts = found.live.drift
    assert found.live.observed_at_ms is not None
    out = screen()
    if found.unrecorded:
        error_screen().labelled("warning", unrecorded_text(found))
    if as_json:
        out.json({"observed_at_ms": found.live.observed_at_ms, "drift": drift_rows(drifts)})
    else:
        out.lines(render(drifts, observed_at_ms=found.live.observed_at_ms))
    return Exit.CHANGES if drifts and detailed else Exit.OK
