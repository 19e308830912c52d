"""
From what was typed to a loaded tree and a ledger to read: the start of most commands.

Findings are shown here, once, on standard error: what a command prints on standard output
is its answer and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from fleetform.cli.arguments import who_asks
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen
from fleetform.model.figures import counted
from fleetform.model.leadership import BACKGROUND

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Plan
    from fleetform.model.ports import Reader
    from fleetform.spec.desired import Loaded, ResourceKey
    from fleetform.spec.findings import Finding

_FILE = "environment.yaml"


def open_workspace(path: str | None) -> Workspace:
    """Open the environment at `path`, or the nearest one upward from here."""
    from fleetform.app.workspace import Workspace

    return Workspace.open(path)


def or_default(path: str | None, *, create: bool = False) -> str | None:
    """
    Return `path`; outside an environment without one, the default environment's folder, and say so.

    Args:
        path: As typed after -C.
        create: Create a default environment where there is none.

    Raises:
        Problem: There is no default environment, or it is damaged.
    """
    from fleetform.app.problems import WorkspaceProblem
    from fleetform.app.workspace import create_default, default_root, root_around

    if path is not None or root_around() is not None:
        return path
    root = default_root()
    if root is None and not create:
        raise WorkspaceProblem(
            "there is no environment here and no default environment",
            "`fleetform submit FILE` creates a default one; `-C PATH` names another",
        )
    root = root or create_default()
    error_screen().line(f"Using the default environment in {root}", "dim")
    return str(root)


def open_to_write(path: str | None) -> Workspace:
    """The same for a command that writes the ledger."""
    workspace = open_workspace(path)
    upgrade_first(workspace)
    return workspace


def upgrade_first(workspace: Workspace) -> None:
    """Upgrade a ledger of an earlier release, and say so: a command that writes needs this release's."""
    from fleetform.app.state import upgrade_if_older

    before = workspace.manager()
    if (upgraded := upgrade_if_older(workspace, who=who_asks())) is not None:
        if before is not None and before.command == BACKGROUND:
            from fleetform.cli.background import leave_quietly

            # The upgrade has taken its place, and not every command leaves one.
            leave_quietly(workspace)
        error_screen().labelled(
            "note",
            f"upgraded the ledger from version {upgraded.before} to {upgraded.after};"
            f" the backup from before is {upgraded.backup}",
        )


def is_environment(path: str) -> bool:
    """Tell whether `path` is a folder with an environment in it."""
    return (Path(path) / _FILE).is_file()


def maybe_reader(workspace: Workspace) -> Reader | None:
    """Open the ledger for reading until the command ends; None where nothing has been applied."""
    from fleetform.app.generations import doubts, known_generation

    # Before the ledger is opened: the controller goes on meanwhile.
    known = known_generation(workspace.environment.uid)
    reader = workspace.reader()
    if reader is not None:
        if doubt := doubts(reader, known):
            error_screen().labelled("warning", f"the ledger is not the newest: {doubt}")
        # The driver's connection is in a circle with its statements: only the collector
        # would close it, and a server would not hear that we have left.
        click.get_current_context().call_on_close(reader.close)
    return reader


def open_reader(workspace: Workspace) -> Reader:
    """The same; refuse where nothing has been applied."""
    reader = maybe_reader(workspace)
    if reader is None:
        from fleetform.app.generations import lost
        from fleetform.app.workspace import is_created_here

        if proof := lost(workspace.environment.uid):
            from fleetform.app.ledger import recovering

            raise recovering(proof)
        raise Refused(
            f"nothing has been applied in the environment `{workspace.environment.name}` yet",
            advice="`fleetform submit FILE` runs a file in it"
            if is_created_here(workspace.root)
            else "`fleetform plan` shows what would be created, `fleetform apply` creates it",
        )
    return reader


def load(workspace: Workspace, *, keep_going: bool, quiet: bool = False) -> Loaded:
    """
    Read the configuration and print its errors; `quiet`: only those that it is refused for.

    Warnings wait for `print_warnings`: only a plan says which documents it changes.

    Raises:
        Refused: It has errors and not `keep_going`, or `environment.yaml` cannot be used.
    """
    loaded = workspace.load()
    errors = len(loaded.errors)
    if errors and not (quiet and keep_going and loaded.desired is not None):
        print_findings(loaded.errors)
    if loaded.desired is None or (errors and not keep_going):
        print_warnings(loaded)
    if loaded.desired is None:
        its_own = sum(one.place.file == _FILE for one in loaded.errors)
        raise Refused(
            f"{_FILE} has {counted(its_own, 'error')}, and nothing can be planned without it"
            if its_own
            else "the environment cannot be read",
            advice="every plan depends on it, so it is never guessed: correct it"
            " first, as shown above"
            if its_own
            else f"an environment that cannot be read is never treated as empty; correct {_FILE}"
            " first",
        )
    if errors and not keep_going:
        raise Refused(
            f"the configuration has {counted(errors, 'error')}",
            advice="correct them, or pass --keep-going to skip them; their resources stay as they are",
        )
    return loaded


def print_plan_warnings(loaded: Loaded, plan: Plan) -> None:
    """Print the warnings about documents that the plan changes or blocks, and count the others."""
    if loaded.findings:
        changes = (*plan.changes, *(one.change for one in plan.held))
        print_warnings(loaded, [one.key for one in changes], by="plan")


def print_warnings(loaded: Loaded, changed: Iterable[ResourceKey] = (), *, by: str = "") -> None:
    """
    Print the warnings about changed documents; count the others and the notes in one line.

    Everyone who plans every few minutes knows the others. A plan never hides a warning about a document
    that is under review.
    """
    if not loaded.findings:
        return
    from fleetform.views.notices import split_warnings

    found = split_warnings(loaded, changed, by)
    print_findings(found.whole)
    if found.rest:
        error_screen().line(f"{found.rest}: `fleetform validate`\n", "dim")


def print_findings(findings: Iterable[Finding]) -> None:
    """Print every finding with its place and source line."""
    from fleetform.spec.findings import render_findings

    screen = error_screen()
    text = render_findings(findings, width=screen.width or 100, colour=screen.colour)
    if text:
        screen.line(f"{text}\n")


def directory_words(workspace: Workspace, *, finds_default: bool = False) -> str:
    """
    Return ` -C PATH` for a command in a hint where the command does not find the environment by itself.

    Args:
        workspace: The environment.
        finds_default: The command uses the default environment outside of any.
    """
    from fleetform.app.workspace import default_root, root_around

    here = Path.cwd()
    if workspace.root in (here, *here.parents):
        return ""
    if finds_default and root_around() is None and default_root() == workspace.root:
        return ""
    return f" -C {quote(str(workspace.root))}"


def not_driven(workspace: Workspace) -> str:
    """Say that a run is not over and no process brings it to its end, and which command does."""
    where = directory_words(workspace)
    return f"no controller is running; `fleetform apply{where}` or `fleetform serve{where}` drives the runs"
