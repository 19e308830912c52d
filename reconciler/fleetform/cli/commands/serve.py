"""`fleetform serve`: keep an environment as its tree says, until told to stop."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import tree_argument
from fleetform.cli.duration import DURATION
from fleetform.cli.exit import Exit
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_to_write

_EXAMPLES = (
    ("fleetform serve", "Follow the tree; `fleetform apply` elsewhere hands its plans over"),
    ("fleetform serve --listen 127.0.0.1:8433", "Answer the read-only API as well"),
    ("fleetform serve --once", "Apply the tree, see its runs to their end, then leave"),
)


@make_command("serve", examples=_EXAMPLES)
@tree_argument
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Answer the read-only API here, in a process of its own; HOST is one of this machine alone.",
)
@click.option(
    "--insecure-listen",
    is_flag=True,
    help="Let HOST be an address that other machines reach: the API has no log-in, so everyone who"
    " reaches it can read runs, their output and plans.",
)
@click.option(
    "--drift-every",
    "drift_every_ms",
    type=DURATION,
    default="5m",
    show_default=True,
    metavar="5m",
    help="How often the world is asked what has become of what was made.",
)
@click.option("--once", is_flag=True, help="Leave when every run is over.")
@click.option("--show-output", is_flag=True, help="Print what the jobs print.")
def command(
    path: str | None,
    listen: str | None,
    insecure_listen: bool,
    drift_every_ms: int,
    once: bool,
    show_output: bool,
) -> int:
    """
    Keep the environment at PATH as its tree says, until told to stop.

    Plans again when the tree changes, drives the runs, and carries out what `apply` hands over.
    What needs a permission is held and said. What has drifted is said, and set right where nothing
    is lost by it. While somebody has taken over by `apply --takeover`, it rests. Ctrl-C ends it; the runs go on on their hosts, and
    the next `serve` or `apply` takes them up.
    """
    import asyncio

    from fleetform.cli.background import given_back
    from fleetform.cli.progress.plain import PlainProgress
    from fleetform.wiring.serving import serve

    workspace = open_to_write(path)
    progress = PlainProgress(screen(), show_output=show_output)
    try:
        with given_back(workspace, failed_only=True):
            return asyncio.run(
                serve(
                    workspace,
                    listen=listen,
                    insecure_listen=insecure_listen,
                    progress=progress,
                    once=once,
                    drift_every_ms=drift_every_ms,
                )
            )
    except KeyboardInterrupt:
        progress.notice("stopped; the runs go on, and `fleetform serve` takes them up again")
        return Exit.INTERRUPTED
