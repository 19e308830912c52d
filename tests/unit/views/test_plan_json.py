"""A plan for scripts."""

from __future__ import annotations

import json

from fleetform.model.run import RunState
from fleetform.views.plan_json import to_json
from unit.plan.trees import ledger, planned, row, task, tree


def test_the_shape() -> None:
    """Keys are stable; a side that is not set is left out, and null stays a value."""
    live = ledger(
        row(task("train", env={"LR": "0.1"})),
        row(task("gone"), RunState.RUNNING),
        row(task("bad"), RunState.FAILED, message="exit code 1"),
    )
    new = task("train", env={"LR": "0.1"}, shell="bash")
    shown = json.loads(json.dumps(to_json(planned(tree(new, task("bad")), live))))
    assert sorted(shown) == sorted(
        [
            "version", "environment", "environment_uid", "commit", "digest", "depth", "summary",
            "changes", "steps", "held", "settled", "progressing", "warnings", "annex",
        ]
    )  # fmt: skip
    assert shown["summary"] == {
        "text": "Plan: 1 to replace; 1 held; 1 ended badly before.",
        "create": 0,
        "adopt": 0,
        "update": 0,
        "replace": 1,
        "delete": 0,
        "forget": 0,
        "archive": 0,
        "destructive": 0,
        "held": 1,
        "settled": 1,
        "progressing": 1,
    }
    (change,) = shown["changes"]
    assert change["address"] == "run/train"
    assert change["action"] == "replace"
    assert change["reasons"] == ["execution-changed"]
    assert change["fields"] == [
        {"path": "shell", "after": "bash", "class": "execution", "forces": True}
    ]
    assert change["steps"] == ["run.submit:run/train"]
    assert shown["steps"] == [
        {
            "key": "run.submit:run/train",
            "verb": "run.submit",
            "resource": "run/train",
            "needs": [],
        }
    ]
    (held,) = shown["held"]
    assert (held["by"], held["change"]["address"]) == ("destructive", "run/gone")
    assert shown["settled"] == [{"address": "run/bad", "state": "failed", "detail": "exit code 1"}]
    assert shown["progressing"] == ["run/gone"]
