"""
Everything that is wrong with a tree, as one value, and the verdict over it.

The formats print a `Report` and decide nothing: which findings fail a check, in which words they
are counted, and how a file is called outside of its tree is said here, once.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fleetform.model.figures import counted
from fleetform.spec.desired import FILE_NAME
from fleetform.spec.findings import Finding, Level
from fleetform.views import json_value
from fleetform.views.lines import printable


@dataclass(frozen=True, slots=True)
class Report:
    """
    What a check of a tree, or of one file, has found.

    Attributes:
        findings: In order of place.
        documents_count: How many documents were read.
        files_count: How many files they stand in.
        files: Names of the files that were checked, with those that have no findings; for
            formats that list what passed. Empty when they were not asked for.
        folder: The tree as seen from the root of its git repository, with forward slashes; empty
            when they are one, and outside of git.
        strict: Warnings fail the check as errors do; notes never do.
    """

    findings: tuple[Finding, ...]
    documents_count: int = 0
    files_count: int = 0
    files: tuple[str, ...] = ()
    folder: str = ""
    strict: bool = False

    @property
    def is_valid(self) -> bool:
        return not any(self.fails(finding) for finding in self.findings)

    def fails(self, finding: Finding) -> bool:
        """Tell whether this finding alone makes the check fail."""
        return finding.level is Level.ERROR or (self.strict and finding.level is Level.WARNING)

    @property
    def verdict(self) -> str:
        """`4 documents in 2 files: 1 error, 0 warnings, 3 notes`; notes only where there are any."""
        counts = [self._counted(Level.ERROR), self._counted(Level.WARNING)]
        if any(finding.level is Level.NOTE for finding in self.findings):
            counts.append(self._counted(Level.NOTE))
        read = f"{counted(self.documents_count, 'document')} in {counted(self.files_count, 'file')}"
        return f"{read}: {', '.join(counts)}"

    def path(self, file: str) -> str:
        """
        Return a file of the configuration as the repository knows it, where pipelines look for it.

        What is wrong with the configuration as a whole is put into the file that makes the folder one:
        GitHub and GitLab show nothing that is not in a file.
        """
        named = FILE_NAME if file in {"", "."} else file
        return posixpath.normpath(posixpath.join(self.folder, named))

    def _counted(self, level: Level) -> str:
        return counted(sum(finding.level is level for finding in self.findings), level.value)


# Findings as JSON for scripts.
#     {"valid", "findings": [{"level", "code", "summary", "place": {"file", "line", "column", "length"},
#                             "detail", "advice", "address", "text"}],
#      "documents": count, "files": count}
# Files are relative to the folder of the environment. `valid` heeds `--strict`.


def to_json(report: Report) -> dict[str, Any]:
    """Return JSON values; the caller chooses the indentation."""
    return {
        "valid": report.is_valid,
        "findings": json_value.to_json(report.findings),
        "documents": report.documents_count,
        "files": report.files_count,
    }


# Findings as workflow commands: GitHub shows each at its line of the pull request.
#     ::error file=lab/train.yaml,line=6,col=1,endColumn=5,title=A field does not exist::lab/train.yaml:6:1: …
# The job's log shows the message alone, without its properties, so the place begins the message.

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


# Findings as SARIF 2.1.0, for GitHub's code scanning and for viewers in editors.
# The standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; sections are named
# where they decide something. What GitHub reads of it is less, and what it insists on is here: a
# file and a line for each result, texts of each rule, and an id that tells two trees apart.

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

ROOT = "SRCROOT"
"""
What paths are relative to: the repository's root. Where that lies is not said (section 3.14.14
allows it), so that the same tree gives the same bytes on every machine.
"""

FINGERPRINT = "fleetform/v1"
"""
Name and version of our fingerprints (section 3.27.17). Not `primaryLocationLineHash`: GitHub's
upload action computes that one from the files and complains of any other value under its name.
"""

_HELP = (
    "Each result says what to do about it. `fleetform validate` shows the same at the terminal, with"
    " the line that is meant."
)


def sarif_log(report: Report, *, version: str) -> dict[str, Any]:
    """Return the log as JSON values; `version` is fleetform's own."""
    codes = sorted({finding.code for finding in report.findings})
    positions = {code: position for position, code in enumerate(codes)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "fleetform",
                        "semanticVersion": version,
                        "rules": list(_sarif_rules(report, codes)),
                    }
                },
                "automationDetails": {"id": _run_id(report)},
                "originalUriBaseIds": {ROOT: {"description": {"text": "The repository's root."}}},
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": True}],
                "results": list(_sarif_results(report, positions)),
            }
        ],
    }


def _run_id(report: Report) -> str:
    """
    Name what was checked (section 3.17.3): everything up to the last slash is its category.

    GitHub replaces results by those of the next upload of their category, so that two environments
    of one repository may not share one.
    """
    return posixpath.join("fleetform", report.folder, "")


def _sarif_rules(report: Report, codes: list[str]) -> Iterator[dict[str, Any]]:
    """Describe the codes that occur, and never by one finding's values: rules seldom change."""
    for code in codes:
        found = [finding for finding in report.findings if finding.code == code]
        text = {"text": found[0].summary}
        yield {
            "id": code,
            "shortDescription": text,
            "fullDescription": text,
            "help": {"text": _HELP},
            "defaultConfiguration": {"level": min(found, key=_severity).level.value},
        }


def _severity(finding: Finding) -> int:
    return list(Level).index(finding.level)


def _sarif_results(report: Report, positions: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for finding in report.findings:
        identity = _identity(report, finding)
        seen[identity] += 1
        yield {
            "ruleId": finding.code,
            "ruleIndex": positions[finding.code],
            "level": finding.level.value,
            "message": {"text": _sarif_message(finding)},
            "locations": [_sarif_location(report, finding)],
            "partialFingerprints": {FINGERPRINT: _fingerprint(identity, seen[identity])},
        }


def _sarif_message(finding: Finding) -> str:
    """
    Return what is wrong, why, and what to do.

    Section 3.11.5 wants braces doubled. No viewer turns them back where there are
    no arguments, and people would read `${{{{ matrix.lr }}}}`; so they stand as they are.
    """
    prose = finding.detail.strip() or finding.summary
    lines = [printable(line) for text in (prose, finding.advice) for line in text.splitlines()]
    # `[text](target)` would be a link (section 3.11.6), and a document's value may hold one.
    return "\n".join(lines).replace("](", "] (")


def _sarif_location(report: Report, finding: Finding) -> dict[str, Any]:
    # Percent-encoded as section 3.4.3 has it; a name that is no UTF-8 keeps its bytes.
    uri = quote(report.path(finding.place.file).encode("utf-8", "surrogateescape"))
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "uriBaseId": ROOT},
            "region": _sarif_region(finding),
        }
    }
    if finding.address:
        location["logicalLocations"] = [{"fullyQualifiedName": printable(finding.address)}]
    return location


def _sarif_region(finding: Finding) -> dict[str, int]:
    """What is marked; the end is the column behind it (section 3.30.8)."""
    place = finding.place
    if not place.line:
        # GitHub refuses a result without a line.
        return {"startLine": 1}
    column = max(place.column, 1)
    return {
        "startLine": place.line,
        "startColumn": column,
        "endColumn": column + max(place.length, 1),
    }


def _identity(report: Report, finding: Finding) -> str:
    """
    Return what stays the same of a finding while lines move around it.

    The line's text is in it and its number is not, nor positions in lists, nor the detail, which
    may name the line of another document.
    """
    steps = [step for step in finding.address.split(".") if not step.isdigit()]
    parts = (finding.code, report.path(finding.place.file), ".".join(steps), finding.text.strip())
    return "\0".join(parts)


def _fingerprint(identity: str, occurrence: int) -> str:
    """Two equal findings, as of two expressions in one line, are distinguished by their order."""
    data = f"{identity}\0{occurrence}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]
