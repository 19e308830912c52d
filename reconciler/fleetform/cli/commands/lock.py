"""`fleetform lock`: who holds which environment, and how it is taken from them."""

from __future__ import annotations

import click

from fleetform.cli.command import group
from fleetform.cli.directory import directory_option
from fleetform.cli.failure import Refused
from fleetform.cli.output_format import json_option
from fleetform.cli.reason import REASON
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_to_write, open_workspace
from fleetform.cli.who import who_asks

_EXAMPLES = (
    ("fleetform lock list", "List the environments of this machine and who holds each"),
    ("fleetform lock show", "Show this one's holder, its open steps and what waits"),
    ("fleetform lock break --force --reason 'serve hangs'", "End the process that holds it"),
)


@group("lock", examples=_EXAMPLES)
def command() -> None:
    """
    See who manages an environment, and take it from them.

    One process manages an environment at a time. Its lock is freed when it ends, also by a crash;
    with PostgreSQL it is a lease of ten seconds.
    """


@command.command("list", examples=_EXAMPLES[:1])
@json_option
def list_locks(as_json: bool) -> None:
    """List the environments of this user's state folder, and who manages each."""
    from fleetform.views.locks import locks_table
    from fleetform.wiring.clock import SystemClock
    from fleetform.wiring.locking import list_locks as every_lock

    rows = every_lock()
    out = screen()
    if as_json:
        out.json(rows)
    elif rows:
        out.table(locks_table(rows, now_ms=SystemClock().now_ms()))
    else:
        out.line("no environments", "dim")


@command.command("show", examples=_EXAMPLES[1:2])
@directory_option
@json_option
def show(path: str | None, as_json: bool) -> None:
    """Show who manages this environment, which steps were begun and are open, and what waits."""
    from fleetform.views.history import operations_table
    from fleetform.views.lines import printable
    from fleetform.views.locks import locks_table, waiting_table
    from fleetform.wiring.clock import SystemClock
    from fleetform.wiring.locking import show_lock

    found = show_lock(open_workspace(path))
    out = screen()
    if as_json:
        out.json(found)
        return
    now_ms = SystemClock().now_ms()
    out.table(locks_table([found.lock], now_ms=now_ms))
    if found.taken_over:
        out.line()
        out.line(printable(found.taken_over), "warn")
    if found.waiting:
        out.line()
        out.line("Entered and not over:", "bold")
        out.table(waiting_table(found.waiting, now_ms=now_ms))
    if found.open_operations:
        out.line()
        out.line("Begun, and no result yet:", "bold")
        out.table(operations_table(found.open_operations))
    if found.waiting and not found.lock.held:
        out.line()
        out.line("Nobody carries it out now: `fleetform apply` goes on with it.", "warn")


@command.command("break", examples=_EXAMPLES[2:])
@directory_option
@click.option("--force", is_flag=True, help="End a holder that is alive; needs --reason.")
@click.option("--reason", default="", type=REASON, metavar="TEXT", help="Why; kept as an event.")
def break_lock(path: str | None, force: bool, reason: str) -> int:
    """
    Take this environment from whoever holds it.

    A holder that is alive is named, and left alone unless --force: then its process gets SIGTERM,
    and SIGKILL after ten seconds. With PostgreSQL its lease is ended instead, and what it writes
    from then on is refused; one that lives may take it up again, and `apply --takeover` is what has
    it rest. What was begun stays open, and the next apply goes on with it.
    """
    from fleetform.views.locks import held_by
    from fleetform.wiring.locking import break_lock as break_it

    if force and not reason:
        raise Refused("whoever breaks a lock says why", advice="pass --reason TEXT")
    workspace = open_to_write(path)
    found = break_it(workspace, who=who_asks(), reason=reason, force=force)
    out = screen()
    if found is None:
        out.line("nobody holds this environment", "dim")
        return 0
    out.line(f"taken from {held_by(found)}", "good")
    if found.left_ms is None:
        out.line("`fleetform lock show` shows what it has left, `fleetform apply` goes on with it")
    else:
        out.line(
            "no process was ended: a `serve` that lives takes it up again in a moment. Have it"
            " rest with `fleetform apply --takeover --for 1h --reason TEXT`, or end it where it"
            " runs",
            "warn",
        )
    return 0
