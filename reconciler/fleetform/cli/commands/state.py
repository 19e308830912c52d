"""`fleetform state`: the ledger itself, and how one that was lost is put together again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import group, json_option, tree_option
from fleetform.cli.screen import screen
from fleetform.cli.tree import load, open_workspace
from fleetform.cli.who import who_asks
from fleetform.model.figures import counted

if TYPE_CHECKING:
    from fleetform.cli.screen import Screen
    from fleetform.wiring.rebuilding import Rebuilt

_EXAMPLES = (
    ("fleetform state rebuild --dry-run", "Show what the hosts know, and change nothing"),
    ("fleetform state rebuild", "Put a lost or restored ledger together again"),
    ("fleetform state rebuild --lost gpu-3", "Go on without a host that is gone for good"),
)


@group("state", examples=_EXAMPLES)
def command() -> None:
    """See to the ledger: the record of what was applied, kept outside the tree."""


@command.command("rebuild", examples=_EXAMPLES)
@tree_option
@json_option
@click.option("--dry-run", "trial", is_flag=True, help="Say what would come of it.")
@click.option(
    "--lost",
    multiple=True,
    metavar="HOST",
    help="A host that is gone for good; what it alone knew becomes unknown.",
)
def rebuild(path: str | None, as_json: bool, trial: bool, lost: tuple[str, ...]) -> int:
    """
    Read what every host remembers into the ledger.

    For a ledger that was lost, or restored from an older copy: fleetform has then refused to
    start or remove anything. Hosts prove which runs have run; the tree says what those were. A run
    that nobody can vouch for becomes `unknown` and is not run again until you say so.
    """
    import asyncio

    from fleetform.wiring.rebuilding import rebuild as rebuild_ledger

    workspace = open_workspace(path)
    desired = load(workspace, keep_going=True).desired
    assert desired is not None, "a tree that cannot be read is refused before"
    result = asyncio.run(rebuild_ledger(workspace, desired, who=who_asks(), lost=lost, trial=trial))
    out = screen()
    if as_json:
        out.json({"needed": result.needed, "epoch": result.epoch, "found": result.found})
    else:
        _show(out, result, trial=trial)
    return 0


def _show(out: Screen, result: Rebuilt, *, trial: bool) -> None:
    from fleetform.views.recovery import recovered_table

    if not result.found:
        out.line("no host bears this environment's uid: there is nothing to rebuild from", "dim")
        return
    out.table(recovered_table(result.found))
    out.line()
    runs = [row for row in result.found if row.kind == "run"]
    unknown = sum(row.state == "unknown" for row in runs)
    summary = counted(len(runs), "run")
    if unknown:
        summary = f"{summary}, {unknown} of them unknown"
    if trial:
        needed = "" if result.needed else "; the ledger knows all that its hosts know"
        out.line(f"Nothing was changed. A rebuild would find {summary}{needed}.")
        return
    out.line(f"Rebuilt: {summary}, epoch {result.epoch}. See what follows: `fleetform plan`")
