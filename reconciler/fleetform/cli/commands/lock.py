"""`fleetform lock`: show the manager of an environment, or take the environment over."""

from __future__ import annotations

from functools import partial

import click

from fleetform.cli.arguments import REASON, who_asks
from fleetform.cli.command import directory_option, group, json_option
from fleetform.cli.failure import Refused
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_to_write, open_workspace, or_default

_EXAMPLES = (
    ("fleetform lock list", "List the environments of this user, and which process manages each"),
    ("fleetform lock show", "Show the process that manages this environment, and its open steps"),
    (
        "fleetform lock break --force --reason 'serve hangs'",
        "End the process that manages this environment",
    ),
)


@group("lock", examples=_EXAMPLES)
def command() -> None:
    """
    Show which controller manages an environment, or take over.

    One process at a time manages an environment. It holds a file lock, which the system frees when
    the process ends or crashes; with PostgreSQL, it holds a lease of ten seconds.
    """


@command.command("list", examples=_EXAMPLES[:1])
@json_option
def list_locks(as_json: bool) -> None:
    """List the environments in your state folder, and the process that manages each."""
    from fleetform.app.clock import SystemClock
    from fleetform.app.lock import list_locks as every_lock
    from fleetform.views.controllers import locks_table

    table = partial(locks_table, now_ms=SystemClock().now_ms())
    screen().rows(every_lock(), table, none="no environments", as_json=as_json)


@command.command("show", examples=_EXAMPLES[1:2])
@directory_option
@json_option
def show(path: str | None, as_json: bool) -> None:
    """Show the process that manages this environment, its open steps, and waiting applies."""
    from fleetform.app.clock import SystemClock
    from fleetform.app.lock import show_lock
    from fleetform.views.controllers import locks_table, waiting_table
    from fleetform.views.history import operations_table
    from fleetform.views.lines import printable

    found = show_lock(open_workspace(or_default(path)))
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
        out.line("Accepted and not finished:", "bold")
        out.table(waiting_table(found.waiting, now_ms=now_ms))
    if found.open_operations:
        out.line()
        out.line("Started, without a result yet:", "bold")
        out.table(operations_table(found.open_operations))
    if found.waiting and not found.lock.held:
        out.line()
        out.line("No controller is running: `fleetform apply` continues it.", "warn")


@command.command("break", examples=_EXAMPLES[2:])
@directory_option
@click.option("--force", is_flag=True, help="End the process even if it is alive; needs --reason.")
@click.option(
    "--reason", default="", type=REASON, metavar="TEXT", help="Reason; recorded as an event."
)
def break_lock(path: str | None, force: bool, reason: str) -> int:
    """
    End the process that manages this environment, or its lease.

    Without --force, a running process is shown and not ended. With --force it gets SIGTERM, and
    SIGKILL after ten seconds. With PostgreSQL, its lease is ended instead, and everything that
    it writes after that is refused. A process that is still alive may take the lease again: `apply
    --takeover` pauses it. Open steps stay open, and the next apply continues them.
    """
    from fleetform.app.lock import break_lock as break_it
    from fleetform.views.controllers import held_by

    if force and not reason:
        raise Refused("--force needs a reason", advice="pass --reason TEXT")
    workspace = open_to_write(path)
    found = break_it(workspace, who=who_asks(), reason=reason, force=force)
    out = screen()
    if found is None:
        out.line("no process manages this environment", "dim")
        return 0
    out.line(f"taken from {held_by(found)}", "good")
    if found.left_ms is None:
        out.line("`fleetform lock show` shows its open steps, `fleetform apply` continues them")
    else:
        out.line(
            "no process was ended: a running `serve` takes the lease again soon. Pause it"
            " with `fleetform apply --takeover --for 1h --reason TEXT`, or end it on its"
            " machine",
            "warn",
        )
    return 0
