"""Test reports, read back as XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given

from fleetform.spec.findings import Level, render_findings
from fleetform.views.findings import Report
from fleetform.views.findings_junit import junit_xml
from unit.views.reports import REPORTS, finding


def cases(report):
    """The cases of a report by name."""
    return {case.get("name"): case for case in ET.fromstring(junit_xml(report)).iter("testcase")}


def test_a_file_fails_for_its_errors():
    """What is wrong stands in the list of results, and whole below it; a note is only output."""
    note = finding(Level.NOTE, line=8, code="no-effect")
    report = Report((finding(), note), files=("environment.yaml",), folder="lab")
    found = cases(report)
    assert list(found) == ["lab/environment.yaml", "lab/runs/train.yaml"]
    assert list(found["lab/environment.yaml"]) == []
    failure, output = found["lab/runs/train.yaml"]
    assert failure.attrib == {
        "type": "unknown-field",
        "message": "line 6: A task has no field `gpus`.",
    }
    assert failure.text == render_findings([finding()])
    assert (output.tag, output.text) == ("system-out", render_findings([note]))


def test_warnings_fail_a_file_when_strict():
    """The report and the exit code agree."""
    found = (finding(Level.WARNING), finding(Level.WARNING, line=7))
    assert cases(Report(found))["runs/train.yaml"].find("failure") is None
    strict = cases(Report(found, strict=True))["runs/train.yaml"].find("failure")
    assert strict.get("message") == "2 warnings"


def test_a_sound_tree_is_a_report_too():
    """Pipelines refuse a file without a suite."""
    suite = ET.fromstring(junit_xml(Report((), files=("environment.yaml",)))).find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")


@given(REPORTS)
def test_any_text_makes_a_document_that_parses(report):
    """Control characters, surrogates and markup of a document break nothing, and nothing is lost."""
    text = junit_xml(report)
    assert text.isascii()
    root = ET.fromstring(text)
    found = list(root.iter("testcase"))
    names = [case.get("name") for case in found]
    assert len(set(names)) == len(names)
    failed = [case for case in found if case.find("failure") is not None]
    assert bool(failed) is not report.is_valid
    for counting in (root, root.find("testsuite")):
        assert counting.get("tests") == str(len(found))
        assert counting.get("failures") == str(len(failed))
    for tag, wanted in (("failure", True), ("system-out", False)):
        said = "\n\n".join(element.text for element in root.iter(tag))
        headers = {
            f"{one.level}[{one.code}]" for one in report.findings if report.fails(one) is wanted
        }
        assert all(header in said for header in headers)
