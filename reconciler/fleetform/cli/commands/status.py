"""`fleetform status`: the state of an environment on one screen, for people and for monitoring."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_argument, json_option
from fleetform.cli.exit import STATUS_CODES, Exit
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_workspace, or_default

_EXAMPLES = (
    ("fleetform status", "Show commit, ledger, controller, hosts, runs and what is blocked"),
    ("fleetform status --exit-code > /dev/null", "Let a monitoring system branch on the exit code"),
    ("fleetform status --format json | jq .attention", "List what needs attention, for scripts"),
)


@make_command("status", examples=_EXAMPLES, codes=STATUS_CODES)
@directory_argument
@click.option(
    "--exit-code",
    "with_code",
    is_flag=True,
    help="Exit with 1, 4 or 3 if something needs attention.",
)
@json_option
def command(path: str | None, with_code: bool, as_json: bool) -> int:
    """
    Show the state of the environment on one screen.

    Makes no plan and contacts no host. Hosts and runs are shown as the ledger knows them. The applied
    commit is that of the last apply of the whole configuration, and blocked changes are those that it
    could not make; `apply --target`, `submit` and `shell` apply a part.

    The exit code is 0, or 1 if the ledger cannot be read; --exit-code adds codes for what needs
    attention.
    """
    from fleetform.app.clock import SystemClock
    from fleetform.app.status import read_status
    from fleetform.views.status import status_lines

    found = read_status(open_workspace(or_default(path)), now_ms=SystemClock().now_ms())
    out = screen()
    if as_json:
        out.json(found)
    else:
        out.lines(status_lines(found, width=out.width))
    if with_code or not found.ledger.is_readable:
        return found.exit_code
    return Exit.OK
