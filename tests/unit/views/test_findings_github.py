"""Workflow commands, read back as GitHub's runner reads them."""

from __future__ import annotations

from hypothesis import given

from fleetform.spec.findings import Level
from fleetform.views.findings import Report, github_commands
from unit.views.reports import REPORTS, finding

COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def parse(line):
    """A line as the runner takes it: its command, its properties and its message."""
    head, _, message = line.removeprefix("::").partition("::")
    command, _, properties = head.partition(" ")
    pairs = (one.partition("=") for one in properties.split(","))
    return command, {name: unescaped(value) for name, _, value in pairs}, unescaped(message)


def unescaped(text):
    for escape, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, sign)
    return text


def test_a_command_in_full():
    """The place twice: for the pull request, and for people who read the log."""
    report = Report((finding(),), 1, 1, folder="lab")
    assert github_commands(report) == (
        "::error file=lab/runs/train.yaml,line=6,col=1,endColumn=5,title=A field does not exist"
        "::lab/runs/train.yaml:6:1: A task has no field `gpus`. [unknown-field]"
        "%0ADid you mean `resources.gpu`?\n"
        "1 document in 1 file: 1 error, 0 warnings\n"
    )


def test_a_file_as_a_whole_has_no_line():
    """GitHub shows it at the top of the file."""
    _command, properties, message = parse(
        github_commands(Report((finding(file=".", line=0, column=0),))).splitlines()[0]
    )
    assert properties == {"file": "environment.yaml", "title": "A field does not exist"}
    assert message.startswith("environment.yaml: A task")


def test_what_separates_properties_is_escaped_in_them():
    """A comma or a colon in a file's name ends no property."""
    report = Report((finding(file="a,line=1::b%3A.yaml"),))
    command, properties, _message = parse(github_commands(report).splitlines()[0])
    assert (command, properties["file"]) == ("error", "a,line=1::b%3A.yaml")
    assert properties["line"] == "6"


@given(REPORTS)
def test_each_finding_is_one_command(report):
    """No text of a document begins a command of its own, ends one, or is lost."""
    text = github_commands(report)
    *lines, verdict, end = text.split("\n")
    assert (verdict, end) == (report.verdict, "")
    assert len(lines) == len(report.findings)
    for line, found in zip(lines, report.findings, strict=True):
        assert line.isprintable()
        command, properties, message = parse(line)
        assert command == COMMANDS[found.level]
        assert set(properties) <= {"file", "line", "col", "endColumn", "title"}
        assert properties["title"] == found.summary
        assert properties.get("line", "0") == str(found.place.line)
        assert len(message.split("\n")) == 1 + max(len(found.detail.splitlines()) - 1, 0) + len(
            found.advice.splitlines()
        )
        assert f"[{found.code}]" in message
