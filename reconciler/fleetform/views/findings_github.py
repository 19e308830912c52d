"""
Findings as workflow commands: GitHub shows each at its line of the pull request.

    ::error file=lab/train.yaml,line=6,col=1,endColumn=5,title=A field does not exist::lab/train.yaml:6:1: …

The job's log shows the message alone, without its properties, so the place begins the message.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.spec.findings import Finding, Level
from fleetform.views.findings import Report
from fleetform.views.lines import printable

__all__ = ["github_commands"]

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}

# What the runner takes back, in its own order: the sign of the escapes goes first.
_IN_MESSAGE = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
# In a property these end it, or the properties as a whole.
_IN_PROPERTY = (*_IN_MESSAGE, (":", "%3A"), (",", "%2C"))


def github_commands(report: Report) -> str:
    """Return a line for each finding, then the verdict, each with its newline."""
    commands = (_github_command(report, finding) for finding in report.findings)
    return "".join(f"{line}\n" for line in (*commands, report.verdict))


def _github_command(report: Report, finding: Finding) -> str:
    properties = ",".join(
        f"{name}={_github_escaped(printable(value), _IN_PROPERTY)}"
        for name, value in _github_properties(report, finding)
    )
    message = "\n".join(_github_message(report, finding))
    return f"::{_COMMANDS[finding.level]} {properties}::{_github_escaped(message, _IN_MESSAGE)}"


def _github_properties(report: Report, finding: Finding) -> Iterator[tuple[str, str]]:
    place = finding.place
    yield "file", report.path(place.file)
    if place.line:
        column = max(place.column, 1)
        yield "line", str(place.line)
        yield "col", str(column)
        yield "endColumn", str(column + max(place.length, 1))
    yield "title", finding.summary


def _github_message(report: Report, finding: Finding) -> Iterator[str]:
    place = finding.place
    where = report.path(place.file)
    if place.line:
        where = f"{where}:{place.line}:{max(place.column, 1)}"
    first, *others = finding.detail.splitlines() or [finding.summary]
    yield printable(f"{where}: {first} [{finding.code}]")
    for text in (*others, *finding.advice.splitlines()):
        yield printable(text)


def _github_escaped(text: str, table: tuple[tuple[str, str], ...]) -> str:
    for sign, escape in table:
        text = text.replace(sign, escape)
    return text
