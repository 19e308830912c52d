"""
Findings as SARIF 2.1.0, for GitHub's code scanning and for viewers in editors.

The standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; sections are named
where they decide something. What GitHub reads of it is less, and what it insists on is here: a
file and a line for each result, texts of each rule, and an id that tells two trees apart.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from fleetform.spec.findings import Finding, Level
from fleetform.views.findings import Report
from fleetform.views.lines import printable

__all__ = ["FINGERPRINT", "ROOT", "SCHEMA", "sarif_log"]

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

    Section 3.11.5 wants braces doubled. Nobody who shows results turns them back where there are
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
    """Two equal findings, as of two expressions in one line, are told apart by their order."""
    data = f"{identity}\0{occurrence}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]
