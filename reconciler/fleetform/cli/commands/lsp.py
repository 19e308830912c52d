"""`fleetform lsp`: the language server that editors start."""

from __future__ import annotations

import importlib.util

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.failure import Refused

_EXAMPLES = (
    ("fleetform lsp", "Serve one editor over standard input and output; editors type this"),
)


@make_command("lsp", examples=_EXAMPLES)
@click.option(
    "--stdio",
    is_flag=True,
    help="What it does anyway: some editors add this to every server's command.",
)
def command(stdio: bool) -> int:
    """
    Tell an editor what takes the whole environment to know.

    Findings while you type, where a name is declared and who refers to it, renaming across
    files, names to complete. Needs the extra `lsp`: pip install 'fleetform[lsp]'.
    """
    if importlib.util.find_spec("pygls") is None:
        raise Refused(
            "the language server is not installed",
            advice="install fleetform with the extra: pip install 'fleetform[lsp]'",
        )
    from fleetform.agents.host import VERSION
    from fleetform.lsp.server import serve

    return serve(VERSION)
