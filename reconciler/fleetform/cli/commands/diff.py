"""`fleetform diff`: two commits, two environments or two runs compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, json_option
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.tree import is_environment, maybe_reader, open_workspace
from fleetform.model.figures import counted

if TYPE_CHECKING:
    from fleetform.app.history import TreeSide
    from fleetform.app.workspace import Workspace
    from fleetform.cli.screen import Screen
    from fleetform.model.redaction import Seal
    from fleetform.views.difference import RunSide

_EXAMPLES = (
    ("fleetform diff HEAD~1", "Show what changed in the configuration since the previous commit"),
    ("fleetform diff main my-branch", "Show what a branch changes"),
    ("fleetform diff environments/staging environments/production", "Compare two environments"),
    ("fleetform diff 'sweep[lr=0.1]' 'sweep[lr=0.2]'", "Compare two runs and their results"),
)


@make_command("diff", examples=_EXAMPLES)
@click.argument("left", metavar="A")
@click.argument("right", metavar="[B]", required=False)
@directory_option
@click.option(
    "--detailed-exitcode", "detailed", is_flag=True, help="Exit with 2 if there are differences."
)
@json_option
def command(left: str, right: str | None, path: str | None, detailed: bool, as_json: bool) -> int:
    """
    Compare two commits, environments or runs, field by field.

    A and B are two commits, two folders with an environment, or two runs. Without B, A is compared
    with the configuration on disk. diff compares declarations with each other; `fleetform plan`
    compares them with what exists.
    """
    # Two environments need no third one around them.
    both = right is not None and is_environment(left) and is_environment(right)
    workspace = open_workspace(left if both and path is None else path)
    runs = _runs(workspace, left, right)
    out = screen()
    if runs is not None:
        from fleetform.model.redaction import Seal

        sides = (left, runs[0]), (right or "", runs[1])
        differs = _show_runs(out, *sides, Seal(workspace.environment.uid), as_json=as_json)
    else:
        differs = _show_trees(out, workspace, left, right, as_json=as_json)
    return Exit.CHANGES if differs and detailed else Exit.OK


def _runs(workspace: Workspace, left: str, right: str | None) -> tuple[RunSide, RunSide] | None:
    from fleetform.app.history import find_run

    reader = None if right is None else maybe_reader(workspace)
    if reader is None or right is None:
        return None
    sides = [find_run(reader, one) for one in (left, right)]
    if sides[0] is not None and sides[1] is not None:
        return sides[0], sides[1]
    named = [one for one, side in zip((left, right), sides, strict=True) if side is None]
    if any(one.startswith("run/") for one in (left, right)):
        raise Refused(
            f"there is no run `{named[0].removeprefix('run/')}` in the ledger",
            advice="`fleetform ps` lists the runs",
        )
    return None


def _show_trees(
    out: Screen, workspace: Workspace, left: str, right: str | None, *, as_json: bool
) -> bool:
    from fleetform.app.history import open_tree
    from fleetform.plan.diff import differences
    from fleetform.views.difference import difference_json, difference_lines

    with open_tree(workspace, left) as one, open_tree(workspace, right) as other:
        changes = differences(one.desired, other.desired)
        if as_json:
            out.json(
                {"left": one.label, "right": other.label, "differences": difference_json(changes)}
            )
        else:
            _title(out, one, other)
            out.lines(difference_lines(changes))
        _warn(one, other)
    return bool(changes)


def _title(out: Screen, left: TreeSide, right: TreeSide) -> None:
    out.line(f"{out.toned(left.label, 'bad')} → {out.toned(right.label, 'good')}")
    out.line()


def _warn(*sides: TreeSide) -> None:
    for side in sides:
        if side.errors:
            error_screen().labelled(
                "warning",
                f"{side.label} has {counted(side.errors, 'error')}: invalid documents are not compared",
            )


def _documents_differ(fields: int) -> str:
    if not fields:
        return "Their documents are equal."
    return f"Their documents differ in {counted(fields, 'field')}."


def _show_runs(
    out: Screen,
    left: tuple[str, RunSide],
    right: tuple[str, RunSide],
    seal: Seal,
    *,
    as_json: bool,
) -> bool:
    from fleetform.plan.diff import run_differences
    from fleetform.views.difference import run_facts, run_facts_table
    from fleetform.views.plan.groups import field_rows, row_lines

    facts = run_facts(left[1], right[1], seal)
    fields = run_differences(left[1].document, right[1].document, seal)
    if as_json:
        out.json(
            {
                "left": left[1].history.run.name,
                "right": right[1].history.run.name,
                "facts": facts,
                "fields": [row.sides() for row in field_rows("run", fields)],
            }
        )
    else:
        out.table(run_facts_table(facts, left[0], right[0]))
        out.line()
        for row in field_rows("run", fields):
            out.lines(row_lines(row, "  "))
        out.line(_documents_differ(len(fields)), "bold")
    return bool(fields)
