"""`fleetform drift`: what changed outside fleetform."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_argument, json_option
from fleetform.cli.exit import DRIFT_CODES
from fleetform.cli.plan import drift_code, look_only, show_drift, warn_incomplete
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_reader, open_workspace, or_default

_EXAMPLES = (
    ("fleetform drift", "Show each difference from the applied state, and since when it exists"),
    ("fleetform drift --detailed-exitcode", "Exit with 2 if there is drift"),
    ("fleetform drift --format json", "Print the drift as JSON"),
)


@make_command("drift", examples=_EXAMPLES, codes=DRIFT_CODES)
@directory_argument
@json_option
@click.option(
    "--detailed-exitcode",
    "detailed",
    is_flag=True,
    help="Exit with 2 if there is drift.",
)
def command(path: str | None, as_json: bool, detailed: bool) -> int:
    """
    Show drift: what changed outside fleetform.

    Compares the actual state with the applied state. Changes no resource, and works while a
    controller runs. Records the drift that it finds: `plan`, `why` and `status` show it until it is
    corrected or a later check no longer finds it. `docs/drift.md` lists the compared fields.
    `plan --refresh` shows the corrections. If a cloud does not answer, drift shows what it knows, says which one, and exits
    with 1: drift there is not known.
    """
    from fleetform.views.drift import drift_rows

    workspace = open_workspace(or_default(path))
    # Where nothing was applied, nothing can have drifted, and no ledger is made for the asking.
    open_reader(workspace).close()
    found = look_only(workspace)
    drifts = found.live.drift
    if as_json:
        warn_incomplete(found)
        said = {"observed_at_ms": found.live.observed_at_ms, "unlisted": list(found.unlisted)}
        screen().json({**said, "drift": drift_rows(drifts)})
    else:
        show_drift(screen(), found)
    return drift_code(found, detailed=detailed)
