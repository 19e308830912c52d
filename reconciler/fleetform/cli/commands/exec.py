"""`fleetform exec`: a command inside a running job, with this terminal or these pipes."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option
from fleetform.cli.exit import EXEC_CODES
from fleetform.cli.failure import Refused
from fleetform.cli.running_job import find_job
from fleetform.cli.screen import error_screen, say_line
from fleetform.cli.selection import complete_runs
from fleetform.cli.tree import open_reader, open_workspace, or_default

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.model.run import Job
    from fleetform.providers.contract.job_streams import ExecEnd, ExecRequest

_EXAMPLES = (
    ("fleetform exec train -- nvidia-smi", "Run a command where the run runs"),
    ("fleetform exec train", "Open a shell in the job"),
    ("fleetform exec 'sweep[lr=0.1]' -- py-spy dump --pid 42", "Run a command in one element"),
    ("fleetform exec train --rank 3 -- sh -c 'df -h .'", "Run a shell command in one rank"),
    ("fleetform exec train --node gpu-1 -- top", "Run a command in the rank on one host"),
    ("fleetform exec train -- tar c out | tar x", "Copy files from the job"),
)
SHELL = ("sh", "-c", 'exec "${SHELL:-sh}"')


@make_command("exec", examples=_EXAMPLES, codes=EXEC_CODES)
@click.argument("run", shell_complete=complete_runs)
@click.argument("words", nargs=-1, metavar="[-- CMD...]", type=click.UNPROCESSED)
@directory_option
@click.option("--rank", type=click.IntRange(min=0), help="Number of the rank.  [default: 0]")
@click.option("--node", metavar="HOST", help="Name of the host, instead of the rank.")
@click.option(
    "-T", "--no-terminal", is_flag=True, help="Give the command pipes, also in a terminal."
)
def command(
    run: str,
    words: tuple[str, ...],
    path: str | None,
    rank: int | None,
    node: str | None,
    no_terminal: bool,
) -> int:
    """
    Run CMD inside the running job of RUN, or open a shell in it: the one that runs its commands,
    which `shell:` of the run names.

    The command has the job's working directory, environment, user, mounts and limits. It gets a
    terminal if standard input and output are one, and pipes otherwise. No controller is needed.

    The command ends when its connection or its job ends. Background processes that it leaves end
    with the job.
    """
    if rank is not None and node is not None:
        raise Refused("--rank and --node exclude each other", advice="leave one of them out")
    workspace = open_workspace(or_default(path))
    reader = open_reader(workspace)
    found = find_job(reader, run, rank=rank, node=node)
    if found.ranks > 1 and rank is None and node is None:
        error_screen().line(f"rank 0 of {found.ranks}, on {found.instance.name}", "dim")
    return run_command(workspace, found.instance, found.job, words or SHELL, has_pipes=no_terminal)


def run_command(
    workspace: Workspace,
    instance: Instance,
    job: Job,
    words: Sequence[str],
    *,
    has_pipes: bool,
) -> int:
    """Run a command with this terminal or these pipes; returns its exit code as a shell has it."""
    from fleetform.cli.exec_streams import has_terminal, terminal_size
    from fleetform.providers.contract.job_streams import ExecRequest

    size = terminal_size() if has_terminal() and not has_pipes else None
    request = ExecRequest(
        job.key, job.uid, tuple(words), size, os.environ.get("TERM", "") if size else ""
    )
    ended = asyncio.run(_joined(workspace, instance, request))
    if ended.job_ended:
        error_screen().labelled("note", "the job has ended, and the command with it")
    if ended.exit_code is not None:
        return ended.exit_code
    return 128 + (ended.signal or 0)


async def _joined(workspace: Workspace, instance: Instance, request: ExecRequest) -> ExecEnd:
    from fleetform.app.exec_in_job import job_streams
    from fleetform.cli.exec_streams import join

    async with job_streams(workspace, instance, say_line) as streams:
        session = await streams.open_exec(request)
        return await join(session, terminal=request.size is not None)
