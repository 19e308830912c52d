"""`fleetform ssh-config`: running jobs as hosts of OpenSSH."""

from __future__ import annotations

import re

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option
from fleetform.cli.failure import Refused
from fleetform.cli.tree import open_workspace, or_default
from fleetform.views.ssh_command import DOMAIN, config_text

_EXAMPLES = (
    (
        "fleetform ssh-config >> ~/.ssh/config",
        "Let `ssh train.fleetform` open a shell in the run train",
    ),
    (
        "fleetform ssh-config --domain lab > ~/.ssh/lab",
        "Name the runs of this environment train.lab, in a file for `Include`",
    ),
)
_DOMAIN = re.compile(r"[A-Za-z][A-Za-z0-9.-]*")


@make_command("ssh-config", examples=_EXAMPLES)
@directory_option
@click.option(
    "--domain",
    default=DOMAIN,
    show_default=True,
    metavar="NAME",
    help="What follows the name of a run; another one for each environment.",
)
def command(path: str | None, domain: str) -> None:
    """
    Print lines for ~/.ssh/config that make each running job a host.

    The job of the run train is the host train.fleetform, its rank 3 is train.3.fleetform. `ssh`,
    `scp`, `sftp`, `rsync -e ssh`, `ssh -L` and editors that work over SSH then reach it, without a
    key and without a question. The lines hold for all runs of the environment, also later ones.
    """
    from fleetform.app.job_ssh import job_server

    if not _DOMAIN.fullmatch(domain):
        raise Refused(
            f"`{domain}` cannot follow the name of a host",
            advice="use letters, digits, dots and dashes, such as --domain lab",
        )
    workspace = open_workspace(or_default(path))
    server = job_server(workspace, domain)
    # Lines of a file: never folded to the width of a terminal.
    click.echo(config_text(server, workspace.environment.name, domain), nl=False)
