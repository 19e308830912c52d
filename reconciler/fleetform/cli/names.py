"""Names of runs as people type them: found, refused with the near ones, and completed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from fleetform.cli.failure import Refused
from fleetform.cli.screen import Screen
from fleetform.model.figures import counted
from fleetform.spec.names import natural_order

if TYPE_CHECKING:
    from fleetform.model.ports import Reader, RunHistory

DEFAULTS = frozenset({"ps", "logs", "why", "events", "stop", "rerun"})
"""Commands with names of runs that, outside an environment, are about those of the default one."""

# A refusal that lists a thousand elements helps nobody.
_NAMES_SHOWN_MAX = 5
# As many lines as one still looks through.
_LINES_MAX = 20


def one_run(reader: Reader, name: str) -> RunHistory:
    """Find the run `name`, current before archived; refuse with advice if there is none."""
    found = reader.read_runs([name])
    named = [history for history in found if history.run.name == name]
    if named:
        return min(named, key=lambda history: history.archived)
    if found:
        elements = sorted((history.run.name for history in found), key=natural_order)
        raise Refused(
            f"`{name}` has {counted(len(elements), 'element')}",
            advice=f"name one of them: {some(elements)}",
        )
    raise unknown("run", name, [history.run.name for history in reader.read_runs()])


def require_run(reader: Reader, name: str) -> None:
    """Refuse with advice if there is no run, sweep or array `name`; one that is archived is one."""
    if not reader.read_runs([name]):
        raise unknown("run", name, [history.run.name for history in reader.read_runs()])


def unknown(kind: str, name: str, known: Iterable[str]) -> Refused:
    """Say that there is no such name, and which ones are near."""
    import difflib

    names = sorted(known, key=natural_order)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        advice = f"did you mean {' or '.join(f'`{found}`' for found in near)}?"
    elif names:
        advice = f"there is: {some(names)}"
    else:
        advice = f"no {kind} has been applied yet; `fleetform plan` shows what would be"
    return Refused(f"there is no {kind} `{name}`", advice=advice)


def some(names: Sequence[str]) -> str:
    """List a few names, and say how many more there are."""
    listed = ", ".join(f"`{name}`" for name in names[:_NAMES_SHOWN_MAX])
    more = len(names) - _NAMES_SHOWN_MAX
    return f"{listed} and {more} more" if more > 0 else listed


def say_of_each(out: Screen, names: Sequence[str], what: str) -> None:
    """Write `train: runs again` for each; of a thousand elements the first few and a count."""
    shown = names if len(names) <= _LINES_MAX else names[:_NAMES_SHOWN_MAX]
    for name in shown:
        out.line(f"{name}: {what}")
    if len(shown) < len(names):
        out.line(f"and {len(names) - len(shown)} more")


def complete_runs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of runs from the ledger."""
    from fleetform.app.default_environment import default_root
    from fleetform.app.workspace import root_around
    from fleetform.cli.tree import open_workspace

    # The shell is waiting with the person's line half typed: whatever is wrong with the tree,
    # the answer is no completion, and never a message.
    try:
        path = ctx.params.get("path")
        root = (path or root_around() or default_root()) if ctx.command.name in DEFAULTS else path
        reader = open_workspace(None if root is None else str(root)).reader()
        if reader is None:
            return []
        with contextlib.closing(reader):
            runs = reader.read_runs()
    except Exception:  # noqa: BLE001 -- see above
        return []
    return [each.run.name for each in runs if each.run.name.startswith(incomplete)]
