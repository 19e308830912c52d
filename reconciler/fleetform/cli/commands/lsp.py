"""`fleetform lsp`: the language server that editors start."""

from __future__ import annotations

import importlib.util

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.failure import Refused
from fleetform.spec.extras import install_extra

_EXAMPLES = (
    (
        "fleetform lsp",
        "Serve one editor over standard input and output; editors start this command",
    ),
)


@make_command("lsp", examples=_EXAMPLES)
@click.option(
    "--stdio",
    is_flag=True,
    help="No effect; accepted because some editors add it to every command.",
)
def command(stdio: bool) -> int:
    """
    Run the language server for editors.

    It shows findings while you type, finds the declaration and the uses of a name, renames across
    files, and completes names. Install it in the clone of fleetform: `pip install '.[lsp]'`.
    """
    if importlib.util.find_spec("pygls") is None:
        raise Refused("the language server is not installed", advice=install_extra("lsp"))
    from fleetform.agents.host import VERSION
    from fleetform.lsp.server import serve

    return serve(VERSION)
