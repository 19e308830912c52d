from __future__ import annotations

import json

from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Finding, Level, Place
from fleetform.views.json_value import to_json


def test_a_row_becomes_plain_values():
    """Whatever rows are made of, `json` can write it, and no key is left out."""
    finding = Finding(Level.ERROR, "unknown-field", "A field", Place("a.yaml", 3, 1, 2))
    value = to_json({"rows": (finding,), "states": {RunState.DONE, RunState.FAILED}, "none": None})
    assert json.loads(json.dumps(value)) == {
        "rows": [
            {
                "level": "error",
                "code": "unknown-field",
                "summary": "A field",
                "place": {"file": "a.yaml", "line": 3, "column": 1, "length": 2},
                "detail": "",
                "advice": "",
                "address": "",
                "text": "",
            }
        ],
        "states": ["done", "failed"],
        "none": None,
    }


def test_an_address_is_its_text():
    """A key is written as people write it, not as a pair."""
    assert to_json(ResourceKey("run", "sweep[lr=0.1]")) == "run/sweep[lr=0.1]"
