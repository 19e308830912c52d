"""An environment that an API serves: before its first apply, and after its runs have ended."""

from __future__ import annotations

import pytest

import applied

TASKS = """\
type: task
name: train
commands: [echo hi]
env: {TOKEN: hunter2}
---
type: task
name: bad
commands: ["false"]
---
type: task
name: big
commands: [echo hi]
resources: {cpu: 3}
depends_on: [bad]
---
type: task
name: sweep
commands: ["echo ${{ matrix.lr }}"]
matrix: {lr: [0.1, 0.2]}
resources: {cpu: 1}
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    return applied.write_tree(tmp_path / "lab", applied.FLEET, TASKS)


@pytest.fixture
def lab(root):
    applied.enter(root)
    applied.run_all(root, exit_codes={"bad": 3})
    return root
