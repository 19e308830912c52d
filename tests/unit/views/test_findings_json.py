"""Findings for scripts: the shape they rely on."""

from __future__ import annotations

import json

from hypothesis import given

from fleetform.spec.findings import Level
from fleetform.views.findings import Report, to_json
from unit.views.reports import REPORTS, finding


def test_the_shape_in_full():
    """Every key is there, also when nothing is known; the folder of the repository is not in it."""
    report = Report((finding(Level.WARNING),), 4, 2, folder="lab", strict=True)
    assert to_json(report) == {
        "valid": False,
        "findings": [
            {
                "level": "warning",
                "code": "unknown-field",
                "summary": "A field does not exist",
                "place": {"file": "runs/train.yaml", "line": 6, "column": 1, "length": 4},
                "detail": "A task has no field `gpus`.",
                "advice": "Did you mean `resources.gpu`?",
                "address": "task.train.gpus",
                "text": "gpus: 4",
            }
        ],
        "documents": 4,
        "files": 2,
    }


@given(REPORTS)
def test_whatever_was_found_can_be_written_and_read(report):
    """Nothing is lost on the way through JSON."""
    value = to_json(report)
    assert json.loads(json.dumps(value)) == value
    assert [one["detail"] for one in value["findings"]] == [one.detail for one in report.findings]
