"""`fleetform keep`: have an experiment's document in the reviewed tree."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen
from fleetform.cli.selection import complete_runs

if TYPE_CHECKING:
    from fleetform.app.edit import Editor
    from fleetform.app.locate import Source

_EXAMPLES = (
    ("fleetform keep train-x7qa", "Move the document of an experiment out of the scratch folder"),
    (
        "fleetform keep train-x7qa --as baseline --commit",
        "Rename the run as well, and commit the change",
    ),
    ("fleetform keep train-x7qa --branch keep-train --push", "Commit on a new branch, and push it"),
)


@make_command("keep", examples=_EXAMPLES)
@click.argument("run", shell_complete=complete_runs)
@click.option("--as", "name", default="", metavar="NAME", help="New name of the run.")
@edit_options
def command(run: str, name: str, **typed: Any) -> int:
    """
    Move an experiment into the configuration.

    Moves the document of RUN from the scratch folder to the folder of the other runs. Nothing runs
    again: it is the same execution, and its result is kept. With a new name it is still the same
    run, and `moved` in environment.yaml says so.
    """
    options = EditOptions.of(typed)
    workspace, editor = open_editor(options)
    source = editor.find(run, kinds=("run",))
    _refuse_kept(source)
    kept = name or source.key.name
    file = f"{_usual_folder(editor)}{kept}.yaml"
    if (workspace.root / file).exists():
        raise Refused(f"the file {file} exists already", advice="keep it under another name: --as")
    editor.move_document(source, file, name=name)
    _say_of_code(source)
    code = finish(workspace, editor, options, message=f"keep run/{kept}")
    if options.branch:
        error_screen().labelled(
            "help",
            f"after the branch is merged here, remove {source.file}: two documents of one name are an error",
        )
    return code


def _refuse_kept(source: Source) -> None:
    from fleetform.app.submit import SCRATCH

    if not source.file.startswith(f"{SCRATCH}/"):
        raise Refused(
            f"{source.key} is not in the scratch folder: {source.file}",
            advice="`keep` moves only experiments of `fleetform submit`; edit other documents in place",
        )


def _usual_folder(editor: Editor) -> str:
    """Where most documents of runs stand that have a file of their own; the top otherwise."""
    from fleetform.app.submit import SCRATCH

    files = Counter(editor.declared_runs().values())
    folders = Counter(
        str(PurePosixPath(file).parent)
        for file, documents in files.items()
        if documents == 1 and not file.startswith((f"{SCRATCH}/", "../"))
    )
    if not folders:
        return ""
    most = max(sorted(folders), key=lambda folder: folders[folder])
    return "" if most == "." else f"{most}/"


def _say_of_code(source: Source) -> None:
    """Say where the code is: at a commit that was pushed, or only as a bundle."""
    code = source.value.get("code")
    if not isinstance(code, dict):
        return
    commit = str(code.get("commit", ""))
    if commit and not commit.endswith("+dirty"):
        error_screen().line(f"its code is commit {commit[:12]}", "dim")
        return
    error_screen().line(
        f"its code was not committed: bundle {str(code.get('sha256'))[:12]} in this"
        " machine's state folder is the only copy",
        "warn",
    )
