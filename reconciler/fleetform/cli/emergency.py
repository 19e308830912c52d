"""
What an override is about, as people type it, and the commit that would make it permanent.

An address that nobody knows is refused with a near one: whoever pulls this handle is in a hurry,
and must not find out an hour later that nothing was stopped.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from fleetform.cli.failure import Refused, bad_address
from fleetform.cli.screen import error_screen
from fleetform.cli.selection import read_live, unknown

if TYPE_CHECKING:
    from fleetform.app.edit import Editor
    from fleetform.app.workspace import Workspace
    from fleetform.model.override import PutInForce
    from fleetform.spec.desired import ResourceKey

__all__ = ["place_targets", "run_targets", "say_permanent_drain", "say_permanent_freeze",
           "say_permanent_stop"]  # fmt: skip

_DIFFS_MAX = 5
"""Documents whose edit is shown: as many as a person in a hurry still reads."""


# -- targets ---------------------------------------------------------------------------------


def run_targets(workspace: Workspace, typed: Sequence[str]) -> tuple[str, ...]:
    """
    Return addresses of runs, `run/train`, each of which means something that there is.

    Raises:
        Refused: One does not. A pattern is taken as it is: what it means may come.
    """
    from fleetform.model.selection import Selection, address_problem

    targets = tuple(dict.fromkeys(one if "/" in one else f"run/{one}" for one in typed))
    known: dict[ResourceKey, str] | None = None
    for target in targets:
        if problem := address_problem(target):
            raise bad_address(problem, advice="write a run's name, or `run/*` for all of them")
        if not target.startswith("run/"):
            raise Refused(
                f"`{target}` is not a run, and only runs can be stopped",
                advice="`fleetform emergency drain` keeps work off fleets and hosts",
            )
        if "*" in target:
            continue
        known = _known_runs(workspace) if known is None else known
        selection = Selection([target])
        if not any(selection.selects(key, parent) for key, parent in known.items()):
            names = {name for key, parent in known.items() for name in (key.name, parent) if name}
            raise unknown("run", target.removeprefix("run/"), names)
    return targets


def _known_runs(workspace: Workspace) -> dict[ResourceKey, str]:
    """Runs of the ledger and of the tree, with their sweeps; a tree with errors says less."""
    live = read_live(workspace)
    rows = {} if live is None else live.resources
    known = {key: row.parent for key, row in rows.items() if key.kind == "run"}
    desired = workspace.load().desired
    if desired is not None:
        known.update(
            (key, one.parent) for key, one in desired.resources.items() if key.kind == "run"
        )
    return known


def place_targets(workspace: Workspace, typed: Sequence[str]) -> tuple[str, ...]:
    """
    Return addresses of fleets and hosts, `fleet/gpu`, `host/gpu-3`, each of something there is.

    Raises:
        Refused: One is not, or a bare name is a fleet's and a host's.
    """
    known = _known_places(workspace)
    if not known:
        raise Refused(
            "there is no host to drain: nothing has been applied yet",
            advice="`fleetform plan` shows what would be created",
        )
    return tuple(dict.fromkeys(_place(one, known) for one in typed))


def _known_places(workspace: Workspace) -> dict[str, str]:
    """How the tree's own verbs call each fleet and host: `host/gpu-3` is `gpu/gpu-3` to them."""
    live = read_live(workspace)
    if live is None:
        return {}
    fleets = {f"fleet/{key.name}": key.name for key in live.resources if key.kind == "fleet"}
    return fleets | {f"host/{one.name}": f"{one.fleet}/{one.name}" for one in live.instances}


def _place(typed: str, known: Mapping[str, str]) -> str:
    if typed.partition("/")[0] in {"fleet", "host"} and "/" in typed:
        patterns = [typed]
    elif "/" in typed:
        patterns = [f"host/{typed.partition('/')[2]}"]
    else:
        patterns = [f"fleet/{typed}", f"host/{typed}"]
    found = [one for one in patterns if any(fnmatchcase(place, one) for place in known)]
    if len(found) > 1:
        raise Refused(
            f"`{typed}` is a fleet and a host", advice=f"write `{found[0]}` or `{found[1]}`"
        )
    if not found:
        raise unknown("fleet or host", typed, known.values())
    return found[0]


# -- the commit that makes it permanent --------------------------------------------------------


def say_permanent_stop(workspace: Workspace, put: PutInForce) -> None:
    """Show the edit that says in the tree what the override says above it."""
    names = [one.target.removeprefix("run/") for one in put.overrides]

    typed = f"fleetform stop {' '.join(map(shlex.quote, names))}"
    if any("*" in name for name in names):
        # A pattern may mean a hundred documents, and their edits are not read now.
        _say_end(put, f"`{typed} --commit` makes it permanent;")
        return

    def edit(editor: Editor) -> None:
        from fleetform.cli.selection import ask_for_stop, find_runs

        for run in find_runs(editor, None, names[:_DIFFS_MAX]):
            ask_for_stop(editor, run.source, run.element)

    _say_permanent(workspace, put, typed, edit)


def say_permanent_drain(workspace: Workspace, put: PutInForce) -> None:
    """Show the edit that says in the tree that these get nothing more."""
    from fleetform.cli.drains import FleetHost, drained

    known = _known_places(workspace)
    addresses = [known[one.target] for one in put.overrides if one.target in known]
    if not addresses:
        _say_end(put, "to drain them in the configuration, name each fleet or host;")
        return
    reason = put.overrides[0].reason

    def edit(editor: Editor) -> None:
        for address in addresses[:_DIFFS_MAX]:
            wanted = FleetHost.parse(address)
            source = editor.find(wanted.fleet, kinds=("fleet",))
            said = drained(editor.said(source, "drain"), wanted.name_in(source), reason)
            editor.set(source, ("drain",), said)

    typed = f"fleetform drain {' '.join(addresses)} --reason {shlex.quote(reason)}"
    _say_permanent(workspace, put, typed, edit)


def _say_permanent(
    workspace: Workspace, put: PutInForce, typed: str, edit: Callable[[Editor], None]
) -> None:
    """Show what an edit would change, without writing it, and the command that writes it."""
    from fleetform.app.edit import Editor
    from fleetform.app.problems import Problem
    from fleetform.cli.editing import show_diff

    try:
        editor = Editor(workspace)
        edit(editor)
        edits = editor.finish()
    except (Problem, Refused) as problem:
        # The override holds; a tree with errors must not make that look otherwise.
        _say_end(put, f"the edit that makes it permanent cannot be made now: {problem.message};")
        return
    show_diff(workspace, edits)
    _say_end(put, f"`{typed} --commit` makes it permanent, as shown above;")


def say_permanent_freeze(put: PutInForce) -> None:
    """A window of the environment's rules says the same, with a review."""
    from fleetform.views.moments import moment

    (one,) = put.overrides
    assert one.until_ms is not None, "every override of the command has an end"
    reason = one.reason.replace('"', "'")
    _say_end(
        put,
        "to make it permanent, write into `rules:` of environment.yaml"
        f' `freeze: [{{from: "{moment(one.since_ms)}", to: "{moment(one.until_ms)}",'
        f' reason: "{reason}"}}]`;',
    )


def _say_end(put: PutInForce, sentence: str) -> None:
    numbers = " ".join(str(one.number) for one in put.overrides)
    error_screen().labelled(
        "help",
        f"{sentence} the override ends by itself, sooner with `fleetform emergency lift {numbers}`",
    )
