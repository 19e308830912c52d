"""SARIF 2.1.0: the shape that the standard and code scanning want, and what it promises."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from urllib.parse import unquote

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.findings import Level
from fleetform.views.findings import FINGERPRINT, ROOT, Report, sarif_log
from unit.views.reports import REPORTS, finding

VERSION = "1.2.3"


def thing(required, **properties):
    """An object with these properties and no others."""
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = thing("text", text={"type": "string", "minLength": 1})
POSITIVE = {"type": "integer", "minimum": 1}
RULE = thing(
    "id shortDescription fullDescription help",
    id={"type": "string"},
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=thing("level", level=LEVEL),
)
LOCATION = thing(
    "physicalLocation",
    physicalLocation=thing(
        "artifactLocation region",
        artifactLocation=thing(
            "uri uriBaseId",
            # A relative reference of RFC 3986 without a colon that would make a scheme.
            uri={"type": "string", "pattern": r"\A(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+\Z"},
            uriBaseId={"const": ROOT},
        ),
        region=thing("startLine", startLine=POSITIVE, startColumn=POSITIVE, endColumn=POSITIVE),
    ),
    logicalLocations={
        "type": "array",
        "items": thing("fullyQualifiedName", fullyQualifiedName={"type": "string", "minLength": 1}),
    },
)
RESULT = thing(
    "ruleId ruleIndex level message locations partialFingerprints",
    ruleId={"type": "string"},
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    message=MESSAGE,
    locations={"type": "array", "items": LOCATION, "minItems": 1, "maxItems": 1},
    partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
)
RUN = thing(
    "tool results columnKind",
    tool=thing(
        "driver",
        driver=thing(
            "name rules",
            name={"const": "fleetform"},
            semanticVersion={"type": "string", "pattern": r"\A\d+\.\d+\.\d+"},
            rules={"type": "array", "items": RULE, "uniqueItems": True},
        ),
    ),
    automationDetails=thing("id", id={"type": "string", "pattern": "/\\Z"}),
    originalUriBaseIds=thing(ROOT, **{ROOT: thing("", description=MESSAGE)}),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    invocations={
        "type": "array",
        "items": thing("executionSuccessful", executionSuccessful={"type": "boolean"}),
    },
    results={"type": "array", "items": RESULT},
)
LOG = thing(
    "version runs",
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"const": "2.1.0"},
    runs={"type": "array", "items": RUN, "minItems": 1, "maxItems": 1},
)


VALIDATOR = jsonschema.Draft202012Validator(LOG)


def results(report):
    return sarif_log(report, version=VERSION)["runs"][0]["results"]


def test_a_result_in_full():
    """What is wrong and what to do, at the characters that are meant."""
    (result,) = results(Report((finding(),), folder="lab"))
    assert re.fullmatch("[0-9a-f]{32}", result.pop("partialFingerprints")[FINGERPRINT])
    assert result == {
        "ruleId": "unknown-field",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "A task has no field `gpus`.\nDid you mean `resources.gpu`?"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "lab/runs/train.yaml", "uriBaseId": "SRCROOT"},
                    "region": {"startLine": 6, "startColumn": 1, "endColumn": 5},
                },
                "logicalLocations": [{"fullyQualifiedName": "task.train.gpus"}],
            }
        ],
    }


def test_two_environments_of_a_repository_do_not_replace_each_other():
    """Code scanning keeps the last upload of each category."""
    ids = {
        sarif_log(Report((), folder=folder), version=VERSION)["runs"][0]["automationDetails"]["id"]
        for folder in ("", "lab", "environments/lab")
    }
    assert ids == {"fleetform/", "fleetform/lab/", "fleetform/environments/lab/"}


def test_values_of_a_document_make_no_link():
    """Messages may hold links, and a stranger's branch may not write them."""
    (result,) = results(Report((finding(detail="No `[see](https://evil.example)`."),)))
    assert re.search(r"\[[^\]]*\]\(", result["message"]["text"]) is None


def test_a_rule_is_described_by_its_code_alone():
    """GitHub shows the description of the last upload for all alerts of the rule."""
    one, other = (
        sarif_log(Report((finding(detail=detail, advice=detail),)), version=VERSION)["runs"][0][
            "tool"
        ]
        for detail in ("one", "other")
    )
    assert one == other


@given(REPORTS)
def test_every_report_has_the_standards_shape(report):
    """The properties the standard demands and code scanning reads, and no misspelt ones."""
    log = sarif_log(report, version=VERSION)
    VALIDATOR.validate(log)
    assert json.loads(json.dumps(log)) == log


@given(REPORTS)
def test_every_finding_is_one_result(report):
    """In order, with the rule it names, in the file it is in."""
    run = sarif_log(report, version=VERSION)["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert {rule["id"] for rule in rules} == {one.code for one in report.findings}
    for found, result in zip(report.findings, run["results"], strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == found.code
        assert result["level"] == found.level.value
        physical = result["locations"][0]["physicalLocation"]
        path = unquote(physical["artifactLocation"]["uri"], errors="surrogateescape")
        assert path == report.path(found.place.file)
        assert physical["region"]["startLine"] == max(found.place.line, 1)
        if found.place.line:
            marked = physical["region"]["endColumn"] - physical["region"]["startColumn"]
            assert marked == max(found.place.length, 1)


@given(REPORTS, st.integers(min_value=1, max_value=50))
def test_fingerprints_are_stable_when_lines_move(report, down):
    """A comment above makes no new alert; each finding has one of its own."""
    moved = tuple(
        dataclasses.replace(
            one, place=dataclasses.replace(one.place, line=one.place.line and one.place.line + down)
        )
        for one in report.findings
    )
    before, after = (
        [result["partialFingerprints"][FINGERPRINT] for result in results(one)]
        for one in (report, dataclasses.replace(report, findings=moved))
    )
    assert before == after
    assert max(Counter(before).values(), default=1) == 1


def test_a_rule_has_the_worst_of_its_levels():
    """One code may be an error here and a warning there."""
    report = Report((finding(Level.NOTE), finding(Level.WARNING, line=7)))
    (rule,) = sarif_log(report, version=VERSION)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["defaultConfiguration"]["level"] == "warning"
