"""`fleetform validate`: what is wrong with a tree, for people, editors and pipelines."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import json_option, tree_argument
from fleetform.cli.exit import Exit
from fleetform.cli.screen import screen
from fleetform.cli.tree import show_findings
from fleetform.model.figures import counted

_EXAMPLES = (
    ("fleetform validate", "Check the tree around the current folder"),
    ("fleetform validate my-lab --strict", "Fail for warnings too"),
    ("fleetform validate --json", "Print the findings as JSON: level, code, place, advice"),
)


@make_command("validate", examples=_EXAMPLES)
@tree_argument
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@json_option
def command(path: str | None, strict: bool, as_json: bool) -> Exit:
    """
    Check every document of the tree at PATH.

    Nothing is contacted: the same tree gives the same findings anywhere.
    """
    from fleetform.spec.findings import Level
    from fleetform.spec.tree import load_tree
    from fleetform.wiring.workspace import find_root

    # Not through the workspace: that needs an `environment.yaml` without errors.
    loaded = load_tree(find_root(path))
    warnings = sum(finding.level is Level.WARNING for finding in loaded.findings)
    errors = len(loaded.errors)
    failed = errors > 0 or loaded.desired is None or (strict and warnings > 0)
    out = screen()
    if as_json:
        out.json({"valid": not failed, "findings": loaded.findings,
                  "documents": loaded.documents_count, "files": loaded.files_count})  # fmt: skip
    else:
        show_findings(loaded)
        checked = f"{counted(loaded.documents_count, 'document')} in {counted(loaded.files_count, 'file')}"
        verdict = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
        out.line(f"{checked}: {verdict}", "bad" if failed else "good")
    return Exit.ERROR if failed else Exit.OK
