"""
What all commands have in common that edit the configuration: options, the diff, and what comes next.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import directory_option, json_option, several_options
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.tree import print_warnings

if TYPE_CHECKING:
    from fleetform.app.edit import Editor
    from fleetform.app.edits import Committed, Edits
    from fleetform.app.workspace import Workspace


_NEXT = "`fleetform plan` shows the changes, `fleetform apply` makes them"


@dataclass(frozen=True, slots=True)
class EditOptions:
    """What `edit_options` took. `message` is empty where none was given."""

    path: str | None
    apply: bool
    yes: bool
    detach: bool
    commit: bool
    message: str
    branch: str
    push: bool
    remote: str
    as_json: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> EditOptions:
        """
        Raises:
            Refused: Two of them exclude each other.
        """
        branch, message, remote = (options[name] or "" for name in ("branch", "message", "remote"))
        found = cls(
            path=options["path"],
            apply=options["apply"],
            yes=options["yes"],
            detach=options["detach"],
            commit=bool(options["commit"] or message or branch or options["push"] or remote),
            message=message,
            branch=branch,
            push=bool(options["push"] or remote),
            remote=remote,
            as_json=options["as_json"],
        )
        if found.branch and found.apply:
            raise Refused(
                "--branch proposes the change for later, and --apply makes it now",
                advice="pass one of the two",
            )
        if found.yes and not found.apply:
            raise Refused("-y goes with --apply only", advice="pass both, or none")
        if found.detach and not found.apply:
            raise Refused("--detach goes with --apply only", advice="pass both, or none")
        if found.as_json and found.apply:
            raise Refused(
                "--format json prints the edit, and --apply applies it",
                advice="edit with --format json, then `fleetform apply`",
            )
        return found


def in_default(options: EditOptions) -> EditOptions:
    """
    Edit the default environment where this folder has none, and apply the edit at once.

    That environment has no reviews, and `apply` is never about it. One that FLEETFORM_ENVIRONMENT names
    may be reviewed: there it is an edit like any other.

    Raises:
        Refused: JSON was asked for, which prints an edit and does not apply it.
    """
    from fleetform.app.workspace import is_created_here
    from fleetform.cli.tree import or_default

    path = or_default(options.path)
    if path == options.path or path is None:
        return options
    if not is_created_here(Path(path)):
        return replace(options, path=path)
    if options.as_json:
        raise Refused(
            "JSON prints an edit, and an edit of the default environment is applied at once",
            advice="leave the format out",
        )
    return replace(options, path=path, apply=True, yes=True)


edit_options = several_options(
    json_option,
    directory_option,
    click.option(
        "--apply",
        is_flag=True,
        help="Plan and apply the edited resources at once. Other pending changes of the same resources are"
        " applied too; the plan shows them.",
    ),
    click.option("-y", "--yes", is_flag=True, help="With --apply: do not ask for confirmation."),
    click.option("--detach", is_flag=True, help="With --apply: do not wait for the runs."),
    click.option("--commit", is_flag=True, help="Commit only this change."),
    click.option("-m", "--message", metavar="TEXT", help="Message of the commit."),
    click.option(
        "--branch",
        metavar="NAME",
        help="Commit on the new branch NAME, and leave the files here unchanged.",
    ),
    click.option("--push", is_flag=True, help="Push the branch of the commit."),
    click.option(
        "--remote", metavar="NAME", help="Git remote to push to.  [default: as configured in git]"
    ),
)
"""Take the options of all commands that edit the configuration; `EditOptions.of` collects them."""


def open_editor(options: EditOptions) -> tuple[Workspace, Editor]:
    """Open the environment and read its tree."""
    from fleetform.app.edit import Editor
    from fleetform.cli.tree import open_to_write, open_workspace

    workspace = open_to_write(options.path) if options.apply else open_workspace(options.path)
    return workspace, Editor(workspace)


def finish(
    workspace: Workspace,
    editor: Editor,
    options: EditOptions,
    *,
    message: str,
    ends_work: bool = False,
    targets: Sequence[str] = (),
    needs: str = "",
) -> int:
    """
    Show the diff, write or commit it, and plan and apply it where that was asked for.

    Args:
        workspace: Of the configuration.
        editor: With all that was asked for.
        options: As typed.
        message: The message of a commit without `--message`.
        ends_work: The edit itself asks for running work to end, so `--apply` may.
        targets: Addresses that `--apply` applies, such as single elements. Empty: all resources that
            the edits are about.
        needs: What the next apply needs to make the change; empty where it needs nothing.
    """
    edits = editor.finish()
    if not options.apply:
        # With --apply the plan of the edit says it.
        print_warnings(edits.loaded, edits.touched, by="edit")
    if options.commit and not edits.files:
        from fleetform.app import edits as edit_files

        edit_files.refuse_unfinished(workspace, edits)
        if options.push and not options.branch:
            _say_pushed(*edit_files.push_unpushed(workspace, options.remote))
    if options.as_json:
        return _finish_as_json(workspace, edits, options, message)
    if not edits.files:
        so = "the configuration already contains this change: " if edits.touched else ""
        screen().line(f"{so}nothing to write", "dim")
        if edits.touched and needs and not options.apply:
            error_screen().labelled("help", needs)
    else:
        show_diff(workspace, edits)
        if options.apply:
            _require_answer(options)
        made = write(workspace, edits, options, message)
        _say_written(workspace, edits, made, options, needs or _NEXT)
    return (
        apply_touched(workspace, edits, options, ends_work=ends_work, targets=targets)
        if options.apply
        else Exit.OK
    )


def _require_answer(options: EditOptions) -> None:
    """Refuse an edit that is to be applied and could not be: nothing is written then."""
    from fleetform.cli.apply_flow import require_terminal

    look = "nothing was written; look at the diff above, then"
    require_terminal(yes=options.yes, how="-y to write and apply it", look=look)


def show_diff(workspace: Workspace, edits: Edits) -> None:
    """Print what changes, as a unified diff."""
    from fleetform.views.text_diff import text_diff

    out = screen()
    for edit in edits.files:
        before, after = (
            None if data is None else data.decode() for data in (edit.before, edit.after)
        )
        out.exact_lines(text_diff(shown(workspace.root / edit.path), before, after))


def write(
    workspace: Workspace, edits: Edits, options: EditOptions, message: str
) -> Committed | None:
    """Write the edits, or commit them; returns the commit where there is one."""
    from fleetform.app import edits as edit_files
    from fleetform.app.edits import write_edits

    if not options.commit:
        write_edits(workspace.root, edits)
        return None
    text = options.message or message
    if options.branch:
        made = edit_files.propose_edits(workspace, edits, text, options.branch)
    else:
        made = edit_files.commit_edits(workspace, edits, text)
    if options.push:
        _say_pushed(made.branch, edit_files.push_branch(workspace, made.branch, options.remote))
    return made


def apply_touched(
    workspace: Workspace,
    edits: Edits,
    options: EditOptions,
    *,
    ends_work: bool,
    targets: Sequence[str] = (),
) -> int:
    """Plan and apply the resources that the edits are about, and nothing else."""
    from fleetform.cli.apply_flow import Watching, apply_scoped
    from fleetform.model.plan import Scope

    if not edits.touched:
        # No targets mean everything, and nothing was asked for.
        return Exit.OK
    targets = tuple(targets) or tuple(str(key) for key in edits.touched)
    # Hosts that are drained or released may take days for it; only runs are followed to their end.
    follows = any(key.kind == "run" for key in edits.touched)
    watching = Watching(detach=options.detach or not follows, finished="Applied.")
    return apply_scoped(
        workspace,
        Scope(targets=targets),
        yes=options.yes,
        watching=watching,
        ends_work=ends_work,
    )


def _say_pushed(branch: str, remote: str) -> None:
    error_screen().line(f"pushed {branch} to {remote}", "dim")


def _say_written(
    workspace: Workspace,
    edits: Edits,
    made: Committed | None,
    options: EditOptions,
    advice: str,
) -> None:
    say = error_screen()
    if made is None:
        names = ", ".join(shown(workspace.root / edit.path) for edit in edits.files)
        say.line(f"\nwrote {names}", "good")
        if not options.apply:
            say.labelled("help", advice)
        return
    say.line(f"\ncommitted {made.commit[:12]} on {made.branch or 'no branch'}", "good")
    if not made.branch:
        say.labelled("help", "`git switch -c NAME` keeps it when you switch to another commit")
    if options.branch and not options.push:
        say.labelled("help", f"`git push -u origin {made.branch}` proposes it")
    elif not options.apply and not options.branch:
        say.labelled("help", advice)


def _finish_as_json(workspace: Workspace, edits: Edits, options: EditOptions, message: str) -> int:
    made = write(workspace, edits, options, message) if edits.files else None
    screen().json(
        {
            "resources": [str(key) for key in edits.touched],
            "files": [
                {
                    "path": edit.path,
                    "before": None if edit.before is None else edit.before.decode(),
                    "after": None if edit.after is None else edit.after.decode(),
                }
                for edit in edits.files
            ],
            "commit": made.commit if made else "",
            "branch": made.branch if made else "",
        }
    )
    return Exit.OK


def shown(path: Path) -> str:
    """Return a path as people would type it from here."""
    near = os.path.relpath(path)
    return str(path) if near.startswith("../../..") else near
