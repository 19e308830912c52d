"""Environments for the commands: one that was never applied, one with a history."""

from __future__ import annotations

import json

import pytest

import applied
from fleetform.cli.main import main
from leftovers import end_agents

TASKS = """\
type: volume
name: data
fleet: local
path: data
---
type: task
name: train
commands: [echo hi]
---
type: task
name: bad
commands: ["false"]
---
type: task
name: next
commands: [echo hi]
depends_on: [train]
resources: {cpu: 400}
---
type: task
name: sweep
commands: ["echo ${{ matrix.lr }}"]
matrix: {lr: [0.1, 0.2]}
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A tree that was never applied; its state is of this test alone."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    yield applied.write_tree(tmp_path / "lab", applied.FLEET, TASKS)
    end_agents(tmp_path / "state")


@pytest.fixture
def lab(root, monkeypatch):
    """The same after its runs: `bad` has failed, `next` waits, the others are done."""
    applied.enter(root)
    applied.run_all(root, exit_codes={"bad": 3})
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def typed(capfdbinary):
    """Types a command; returns its exit code, what it printed, and what it said beside."""

    def type_command(*arguments):
        capfdbinary.readouterr()
        code = main(list(arguments))
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return type_command


@pytest.fixture
def asked(typed):
    """Types a command with --json; returns the values."""

    def ask(*arguments):
        code, out, err = typed(*arguments, "--json")
        assert code in {0, 3, 4}, err
        return json.loads(out)

    return ask
