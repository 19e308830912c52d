"""`fleetform proxy`: the SSH server of a running job, on standard input and output."""

from __future__ import annotations

import asyncio
import os

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option
from fleetform.cli.exit import PROXY_CODES
from fleetform.cli.failure import Refused
from fleetform.cli.running_job import find_job
from fleetform.cli.screen import say_line
from fleetform.cli.selection import complete_runs
from fleetform.cli.tree import open_reader, open_workspace, or_default
from fleetform.views.ssh_command import DOMAIN, parse_job_name

_EXAMPLES = (
    (
        "fleetform proxy train.fleetform",
        "Serve one SSH connection; type `fleetform ssh-config` to set OpenSSH up",
    ),
)


@make_command("proxy", examples=_EXAMPLES, codes=PROXY_CODES)
@click.argument("name", metavar="RUN[[.RANK].DOMAIN]", shell_complete=complete_runs)
@directory_option
@click.option(
    "--domain",
    default=DOMAIN,
    show_default=True,
    metavar="NAME",
    help="What follows the name of RUN.",
)
def command(name: str, path: str | None, domain: str) -> None:
    """
    Serve SSH for the running job of RUN on standard input and output.

    OpenSSH runs it as its `ProxyCommand`; `fleetform ssh-config` prints the configuration. A shell,
    commands, `scp`, `sftp`, `rsync` and forwarded ports work as with a machine. The commands run in
    the job, with its account and its limits. No port is open, and no controller is needed.
    """
    if os.isatty(0):
        raise Refused(
            "standard input is a terminal, and `proxy` speaks SSH",
            advice=f"`fleetform ssh {name}` opens a shell in the job",
        )
    from fleetform.app.job_ssh import serve_job

    job = parse_job_name(name, domain)
    workspace = open_workspace(or_default(path))
    found = find_job(open_reader(workspace), job.run, rank=job.rank)
    asyncio.run(serve_job(workspace, found.instance, found.job, say_line))
