"""Runs that wait for a fleet with `nodes: 0`: plan, status and why say so."""

from __future__ import annotations

import json

import applied

TREE = """\
type: fleet
name: local
nodes: {nodes}
local: {{cpu: 4, memory: 8GB}}
---
type: task
name: long
commands: [sleep 60]
"""


def test_a_run_that_no_host_can_take_is_named(typed, root, monkeypatch):
    """Also by the plan that takes the hosts away; with hosts, it only waits for its turn."""
    (root / "tree.yaml").write_text(TREE.format(nodes=1), encoding="utf-8")
    applied.enter(root)
    monkeypatch.chdir(root)
    assert "cannot start" not in typed("plan")[1]
    (root / "tree.yaml").write_text(TREE.format(nodes=0), encoding="utf-8")
    sentence = "  ! run/long cannot start: fleet local has `nodes: 0`"
    assert sentence in typed("plan")[1].splitlines()
    applied.enter(root)
    assert sentence in typed("plan")[1].splitlines()
    found = json.loads(typed("status", "--json")[1])
    assert "1 run cannot start on a fleet without hosts" in found["attention"]
    assert found["runs"]["blocked"] == [{"name": "long", "reason": "fleet local has `nodes: 0`"}]
    assert "  - fleet local has `nodes: 0`" in typed("why", "long")[1].splitlines()
