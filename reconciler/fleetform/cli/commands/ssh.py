"""`fleetform ssh`: the user's own OpenSSH, to a host or to a running job."""

from __future__ import annotations

import contextlib
import os
import pwd
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option
from fleetform.cli.failure import Refused
from fleetform.cli.selection import some, unknown
from fleetform.cli.tree import open_reader, open_workspace, or_default
from fleetform.model.run_state import RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.model.ports import Reader

_EXAMPLES = (
    ("fleetform ssh gpu1", "Open a shell on a host"),
    ("fleetform ssh lab/gpu1 -- nvidia-smi", "Run a command on a host"),
    ("fleetform ssh gpu1 -- 'dmesg | tail'", "Run a line of shell on a host"),
    ("fleetform ssh i-0f1e2d3c4b5a69788", "Open a shell on an instance of a cloud"),
    ("fleetform ssh train", "Open a shell in the job of a run"),
    ("fleetform ssh train --rank 3 -- nvidia-smi", "Run a command in one rank"),
)


@make_command("ssh", examples=_EXAMPLES)
@click.argument("name", metavar="[FLEET/]HOST|RUN")
@click.argument("words", nargs=-1, metavar="[-- CMD...]", type=click.UNPROCESSED)
@directory_option
@click.option("--rank", type=click.IntRange(min=0), help="Number of the rank of RUN.  [default: 0]")
def command(name: str, words: tuple[str, ...], path: str | None, rank: int | None) -> None:
    """
    Open a shell on HOST or in the job of RUN, or run CMD there.

    Runs your own `ssh`. For HOST, a name that `fleetform fleet show` lists, it gets the user, port,
    key and jump host of the fleet; the rest is as ~/.ssh/config says. For an instance of a cloud,
    which may also be named by its id, it gets the key of the environment and the host key that the
    controller pinned, and no ~/.ssh/config.

    For RUN, it gets `fleetform proxy` as its connection: the job needs no SSH server, and no port is
    open. `fleetform ssh-config` lets `ssh`, `scp`, `rsync` and editors reach jobs by name.
    """
    workspace = open_workspace(or_default(path))
    reader = open_reader(workspace)
    instance = _found(reader.read_book([]).instances, name)
    is_run = "/" not in name and bool(reader.read_runs([name]))
    if is_run and instance is not None and rank is None:
        raise Refused(
            f"`{name}` is a host and a run",
            advice=f"write {instance.fleet}/{name} for the host, or --rank 0 for the run",
        )
    if rank is None and instance is not None:
        line = _host_line(workspace, instance, words)
    elif is_run:
        line = _job_line(workspace, reader, name, words, rank)
    else:
        hosts = [one.name for one in reader.read_book([]).instances]
        runs = [one.run.name for one in reader.read_runs() if one.run.state is RunState.RUNNING]
        raise unknown("host or run", name, [*hosts, *runs])
    _become(line)


def _job_line(
    workspace: Workspace, reader: Reader, name: str, words: Sequence[str], rank: int | None
) -> list[str]:
    from fleetform.app.job_ssh import job_server
    from fleetform.cli.running_job import find_job
    from fleetform.views.ssh_command import JobName, job_words

    found = find_job(reader, name, rank=rank)
    number = rank if found.ranks > 1 else None
    return job_words(job_server(workspace), JobName(found.history.run.name, number), words)


def _host_line(workspace: Workspace, instance: Instance, words: Sequence[str]) -> list[str]:
    from fleetform.app.host_ssh import reached_over_ssh
    from fleetform.model.instance import LOCAL
    from fleetform.views.ssh_command import ssh_words

    if instance.provider == LOCAL:
        raise Refused(
            f"host {instance.name} is this machine", advice="run the command here, without `ssh`"
        )
    if instance.is_bought:
        instance = reached_over_ssh(workspace, instance)
    home = os.path.expanduser("~")  # noqa: PTH111 -- a text
    return ssh_words(
        instance,
        words,
        home=home,
        config=_config(home),
        known_hosts=_known_hosts(workspace, instance),
    )


def _config(home: str) -> str:
    """
    Return the configuration below `home` that OpenSSH would not read; empty: it reads the same.

    It looks in the home folder of the user database, and the rest of fleetform in that of `HOME`.
    """
    config = Path(home, ".ssh/config")
    with contextlib.suppress(KeyError):
        if pwd.getpwuid(os.getuid()).pw_dir == home:
            return ""
    return str(config) if config.exists() else ""


def _become(line: list[str]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(line[0], line)  # noqa: S606 -- the user's own program, and no shell
    except FileNotFoundError:
        raise Refused(
            "the program `ssh` is not installed", advice="install the OpenSSH client"
        ) from None


def _found(instances: Sequence[Instance], typed: str) -> Instance | None:
    fleet, _, name = typed.rpartition("/")
    found = [one for one in instances if one.name == name and fleet in {"", one.fleet}]
    if not found:
        # By the name or address that the fleet declares, or by what its cloud calls it.
        found = [
            one
            for one in instances
            if name in {one.endpoint.get("hostname"), one.endpoint.get("id")}
            and fleet in {"", one.fleet}
        ]
    if len(found) > 1:
        raise Refused(
            f"`{typed}` means {len(found)} hosts",
            advice=f"name one of them: {some(sorted(f'{one.fleet}/{one.name}' for one in found))}",
        )
    return found[0] if found else None


def _known_hosts(workspace: Workspace, instance: Instance) -> str:
    """Write the key that the host must have, where the controller pinned one; returns the file."""
    from fleetform.views.ssh_command import known_hosts_lines

    if instance.endpoint.get("host_keys") != "first-use" or not instance.host_key:
        return ""
    folder = Path(workspace.paths.environment) / "known_hosts"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / instance.uid
    file.write_text(known_hosts_lines(instance), encoding="ascii")
    return str(file)
