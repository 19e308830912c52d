"""`fleetform completion`: the script that a shell sources."""

from __future__ import annotations

import os
from pathlib import PurePath

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.failure import Refused

_SHELLS = ("bash", "zsh", "fish")
_EXAMPLES = (
    (
        'eval "$(fleetform completion bash)"',
        "Enable completion in this shell; put it into ~/.bashrc to keep it",
    ),
    (
        "fleetform completion fish > ~/.config/fish/completions/fleetform.fish",
        "Enable completion in fish",
    ),
)


@make_command("completion", examples=_EXAMPLES)
@click.argument("shell", required=False, type=click.Choice(_SHELLS))
def command(shell: str | None) -> None:
    """
    Print the completion script of a shell, by default the one in $SHELL.

    It completes commands, options and the names of runs.
    """
    from click.shell_completion import get_completion_class

    from fleetform.cli.main import fleetform

    name = shell or PurePath(os.environ.get("SHELL", "")).name
    completion = get_completion_class(name) if name in _SHELLS else None
    if completion is None:
        raise Refused(
            f"there is no completion for the shell `{name}`"
            if name
            else "cannot tell which shell you use",
            advice=f"name one of {', '.join(_SHELLS)}: `fleetform completion bash`",
        )
    script = completion(fleetform, {}, "fleetform", "_FLEETFORM_COMPLETE").source()
    click.echo(script)
