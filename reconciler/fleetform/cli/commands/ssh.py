"""`fleetform ssh`: the user's own OpenSSH, to a host of an SSH fleet."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option
from fleetform.cli.failure import Refused
from fleetform.cli.selection import some, unknown
from fleetform.cli.tree import open_reader, open_workspace, or_default

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance

_EXAMPLES = (
    ("fleetform ssh gpu1", "Open a shell on a host"),
    ("fleetform ssh lab/gpu1 -- nvidia-smi", "Run a command on a host"),
    ("fleetform ssh gpu1 -- 'dmesg | tail'", "Run a line of shell on a host"),
)


@make_command("ssh", examples=_EXAMPLES)
@click.argument("host", metavar="[FLEET/]HOST")
@click.argument("words", nargs=-1, metavar="[-- CMD...]", type=click.UNPROCESSED)
@directory_option
def command(host: str, words: tuple[str, ...], path: str | None) -> None:
    """
    Open a shell on a host of an SSH fleet, or run CMD there.

    Runs your own `ssh` with the user, port, key and jump host of the fleet; the rest is as
    ~/.ssh/config says. HOST is the name that `fleetform fleet show` lists. `fleetform exec` runs a
    command inside a job instead.
    """
    from fleetform.model.instance import LOCAL
    from fleetform.views.ssh_command import ssh_words

    workspace = open_workspace(or_default(path))
    instance = _found(open_reader(workspace).read_book([]).instances, host)
    if instance.provider == LOCAL:
        raise Refused(
            f"host {instance.name} is this machine", advice="run the command here, without `ssh`"
        )
    if instance.provider != "ssh":
        raise Refused(f"host {instance.name} is not reached over SSH: it is of {instance.provider}")
    line = ssh_words(
        instance,
        words,
        home=os.path.expanduser("~"),  # noqa: PTH111 -- a text
        known_hosts=_known_hosts(workspace, instance),
    )
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(line[0], line)  # noqa: S606 -- the user's own program, and no shell
    except FileNotFoundError:
        raise Refused(
            "the program `ssh` is not installed", advice="install the OpenSSH client"
        ) from None


def _found(instances: Sequence[Instance], typed: str) -> Instance:
    fleet, _, name = typed.rpartition("/")
    found = [one for one in instances if one.name == name and fleet in {"", one.fleet}]
    if not found:
        # By the name or address that the fleet declares.
        found = [
            one
            for one in instances
            if one.endpoint.get("hostname") == name and fleet in {"", one.fleet}
        ]
    if len(found) > 1:
        raise Refused(
            f"`{typed}` means {len(found)} hosts",
            advice=f"name one of them: {some(sorted(f'{one.fleet}/{one.name}' for one in found))}",
        )
    if not found:
        raise unknown("host", name, [one.name for one in instances])
    return found[0]


def _known_hosts(workspace: Workspace, instance: Instance) -> str:
    """Write the key that the host must have, where the fleet trusts the first one; returns the file."""
    from fleetform.views.ssh_command import known_hosts_line

    if instance.endpoint.get("host_keys") != "first-use" or not instance.host_key:
        return ""
    folder = Path(workspace.paths.environment) / "known_hosts"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / instance.uid
    file.write_text(known_hosts_line(instance), encoding="ascii")
    return str(file)
