"""
Findings as JUnit XML: what GitLab, Jenkins and most other pipelines show as test results.

A file is a test case. It fails for its errors, and with `--strict` for its warnings; whatever else
was found in it is its output. Files without findings are listed as well: a pipeline calls a test
mended only when it sees it pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from fleetform.spec.findings import render_findings, summarize
from fleetform.views.lines import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleetform.spec.findings import Finding
    from fleetform.views.findings import Report

_SUITE = "fleetform validate"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def junit_xml(report: Report) -> str:
    """Return the whole document; ASCII only, so that no locale of a pipeline can spoil it."""
    by_file: dict[str, list[Finding]] = {report.path(file): [] for file in report.files}
    for finding in report.findings:
        by_file.setdefault(report.path(finding.place.file), []).append(finding)
    cases = [_junit_case(report, file, found) for file, found in sorted(by_file.items())]
    counts = {
        "name": _SUITE,
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": "0",
    }
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {**counts, "skipped": "0"})
    suite.extend(cases)
    ET.indent(suites)
    return f"{_DECLARATION}{ET.tostring(suites, encoding='us-ascii').decode('ascii')}\n"


def _junit_case(report: Report, file: str, findings: list[Finding]) -> ET.Element:
    name = printable(file)
    case = ET.Element("testcase", {"name": name, "classname": _SUITE, "file": name})
    failing = [finding for finding in findings if report.fails(finding)]
    others = [finding for finding in findings if not report.fails(finding)]
    # One element for all of them: GitLab reads a single failure of each case.
    if failing:
        failure = ET.SubElement(
            case, "failure", {"type": _codes(failing), "message": _junit_message(failing)}
        )
        failure.text = render_findings(failing)
    if others:
        ET.SubElement(case, "system-out").text = render_findings(others)
    return case


def _codes(findings: Iterable[Finding]) -> str:
    return ", ".join(sorted({finding.code for finding in findings}))


def _junit_message(findings: list[Finding]) -> str:
    """Say what a list of results has room for: the one thing that is wrong, or how many are."""
    if len(findings) > 1:
        return summarize(findings)
    only = findings[0]
    at = f"line {only.place.line}: " if only.place.line else ""
    return f"{at}{printable(only.detail or only.summary)}"
