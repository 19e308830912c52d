"""`fleetform version`."""

from __future__ import annotations

import sys

import click

from fleetform.agents.host import VERSION
from fleetform.cli.command import command as make_command

_EXAMPLES = (("fleetform version", "Print the versions of fleetform and Python"),)


def version_line() -> str:
    """Name the version, and the Python that runs it."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"fleetform {VERSION} (Python {python})"


@make_command("version", examples=_EXAMPLES)
def command() -> None:
    """Print the version."""
    click.echo(version_line())
