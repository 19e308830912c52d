"""`fleetform serve`: keep an environment as its configuration says, until a signal."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

import click

from fleetform.cli.arguments import DURATION
from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_argument
from fleetform.cli.exit import SERVE_CODES, Exit
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_to_write

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.cli.progress.plain import LogFormat

_EXAMPLES = (
    ("fleetform serve", "Watch the configuration; `fleetform apply` hands its plans over"),
    ("fleetform serve --listen 127.0.0.1:8433", "Serve the read-only API as well"),
    ("fleetform serve --once", "Apply the configuration, drive its runs to their end, then exit"),
)


@make_command("serve", examples=_EXAMPLES, codes=SERVE_CODES)
@directory_argument
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Serve the read-only API at this address, in a separate process; HOST is a loopback address, such as 127.0.0.1.",
)
@click.option(
    "--insecure-listen",
    is_flag=True,
    help="Allow a HOST that other machines reach. The API has no authentication: everyone who"
    " reaches it can read runs, their output and plans.",
)
@click.option(
    "--drift-every",
    "drift_every_ms",
    type=DURATION,
    default="5m",
    show_default=True,
    metavar="5m",
    help="Time between checks for drift.",
)
@click.option(
    "--once", is_flag=True, help="Exit when every run has ended, with the exit code of an apply."
)
@click.option("--show-output", is_flag=True, help="Print the output of the jobs.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Write each event as a line of text or as a JSON object.",
)
def command(
    path: str | None,
    listen: str | None,
    insecure_listen: bool,
    drift_every_ms: int,
    once: bool,
    show_output: bool,
    log_format: LogFormat,
) -> int:
    """
    Apply continuously: watch the configuration and drive the runs.

    Plans again when the configuration changes, drives the runs, and applies the plans that `apply`
    hands over. Changes that need a permission are blocked and reported. Drift is reported, and
    corrected if the correction loses no data and ends no work. While `apply --takeover` is in force,
    serve pauses.

    Ctrl-C or a closed terminal ends it; if work is left, a background controller drives the runs.
    SIGTERM, which a service manager sends, ends it without a background controller: running jobs
    continue, and nothing new starts until `serve` or `apply` runs again.
    """
    import asyncio

    from fleetform.app.clock import SystemClock
    from fleetform.app.serve import serve
    from fleetform.cli.background import given_back
    from fleetform.cli.progress.plain import LogProgress

    workspace = open_to_write(path)
    progress = LogProgress(screen(), SystemClock(), form=log_format, show_output=show_output)
    signals: list[signal.Signals] = []
    code: int = Exit.OK
    try:
        with given_back(workspace, failed_only=True):
            code = asyncio.run(
                serve(
                    workspace,
                    listen=listen,
                    insecure_listen=insecure_listen,
                    progress=progress,
                    once=once,
                    drift_every_ms=drift_every_ms,
                    signalled=signals.append,
                )
            )
    except KeyboardInterrupt:
        # Before it had begun to manage.
        signals.append(signal.SIGINT)
        code = Exit.INTERRUPTED
    except OSError:
        # Nothing can be printed at a terminal that is closed.
        if signal.SIGHUP not in signals:
            raise
    finally:
        if signals:
            _part(workspace, signals[0])
    return code


def _part(workspace: Workspace, number: signal.Signals) -> None:
    """Leave what is left of the work as the signal asks for, and say how it goes on."""
    from fleetform.app.problems import Problem
    from fleetform.cli.interrupts import Interrupts
    from fleetform.model.refusals import LedgerUnavailable, LedgerUnusable

    # The kernel and the shell both send SIGHUP. What cannot be read or printed by now changes nothing.
    unread = (LedgerUnavailable, LedgerUnusable, Problem)
    with Interrupts() as interrupts, contextlib.suppress(OSError, *unread):
        interrupts.shield(lambda: _leave(workspace, number))


def _leave(workspace: Workspace, number: signal.Signals) -> None:
    from fleetform.cli.background import leave_quietly, say_not_driven
    from fleetform.cli.summary import show_interrupted

    # A person who stops a service means it, and a service manager would end every process of it.
    left = None if number == signal.SIGTERM else leave_quietly(workspace)
    if left is not None:
        show_interrupted(workspace, left)
    elif workspace.manager() is None:
        say_not_driven(workspace)
