"""`fleetform validate`: what is wrong with a tree, for people, editors and pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, format_option, take_folder
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.screen import screen
from fleetform.cli.tree import print_findings

if TYPE_CHECKING:
    from fleetform.views.findings import Report

_EXAMPLES = (
    ("fleetform validate", "Check every document of the configuration"),
    ("fleetform validate -C my-lab --strict", "Exit with 1 for warnings too"),
    ("fleetform validate runs/train.yaml", "Check one file, in its environment if it has one"),
    ("fleetform validate --format github", "Show findings in a pull request on GitHub"),
    ("fleetform validate --format junit --output report.xml", "Write test results for GitLab or Jenkins"),
    ("fleetform validate --format json", "Print the findings as JSON: level, code, place and advice"),
)  # fmt: skip


@make_command("validate", examples=_EXAMPLES)
@click.argument(
    "file", required=False, type=click.Path(exists=True), metavar="[FILE]", callback=take_folder
)
@directory_option
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@format_option("text", "json", "github", "sarif", "junit")
@click.option(
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write that format into FILE, and print text.",
)
def command(
    file: str | None, path: str | None, strict: bool, form: str, output: str | None
) -> Exit:
    """
    Check every document of the configuration, or of FILE only.

    Contacts no host: the same configuration always has the same findings. The check fails for
    errors, with --strict for warnings too, and never for notes.
    """
    from fleetform.app.validate import check

    if file is not None and path is not None:
        raise Refused(
            "-C does not go with a FILE, which is checked within the environment around it",
            advice="leave one of them out",
        )
    report = check(file or path, strict=strict, list_files=form == "junit")
    if output is not None:
        Path(output).write_text(_rendered(report, form), encoding="utf-8")
    if output is not None or form == "text":
        print_findings(report.findings)
        screen().line(report.verdict, "good" if report.is_valid else "bad")
    else:
        screen().stream.write(_rendered(report, form))
    return Exit.OK if report.is_valid else Exit.ERROR


def _rendered(report: Report, form: str) -> str:
    """The whole text in a format, with a newline at its end."""
    if form == "github":
        from fleetform.views.findings import github_commands

        return github_commands(report)
    if form == "junit":
        from fleetform.views.findings_junit import junit_xml

        return junit_xml(report)
    if form == "text":
        from fleetform.spec.findings import render_findings

        blocks = (render_findings(report.findings), report.verdict)
        return "\n\n".join(block for block in blocks if block) + "\n"
    return _json(report, form)


def _json(report: Report, form: str) -> str:
    import json

    if form == "sarif":
        from fleetform.agents.host import VERSION
        from fleetform.views.findings import sarif_log

        value = sarif_log(report, version=VERSION)
    else:
        from fleetform.views.findings import to_json

        value = to_json(report)
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # A name of a file that is no UTF-8 has characters that cannot be written, but in JSON escaped.
    return text.encode("utf-8", "backslashreplace").decode() + "\n"
