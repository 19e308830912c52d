"""The last pass: whole documents beside the changes, and nothing sensitive in sight."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fleetform.model.redaction import fingerprint
from fleetform.model.run import RunState
from fleetform.plan.serialize import dump, sealed
from fleetform.views.plan.json import to_json
from unit.plan.trees import ledger, planned, row, task, tree


def _env(value: str) -> dict[str, str]:
    return {"HF_TOKEN": value, "LR": "0.1"}


def test_a_change_has_the_whole_document_that_it_was_planned_against():
    """A viewer shows before and after without the ledger."""
    old, new = task("a", priority=1), task("a", priority=2)
    (change,) = planned(tree(new), ledger(row(old))).changes
    assert change.before == old.document
    assert change.after is None, "its step carries it"


def test_what_is_new_has_none():
    """There is nothing before a creation, and its step carries the rest."""
    (change,) = planned(tree(task("a")), ledger()).changes
    assert (change.before, change.after) == (None, None)


def test_a_step_keeps_what_the_job_is_given():
    """What is shown is sealed; the job's variable is what its author wrote."""
    (change,) = planned(tree(task("a", env=_env("hunter2"))), ledger()).changes
    (field,) = [one for one in change.fields if one.path == "env"]
    assert field.sensitive
    assert "hunter2" not in str(field.after)
    (step,) = change.steps
    assert step.arguments["document"]["env"] == _env("hunter2")


def test_a_change_carries_its_outcome_sealed_where_there_is_something_to_seal():
    """Whoever shows a plan has no key: of a creation and of a change, also where it stays."""
    (made,) = planned(tree(task("a", env=_env("hunter2"))), ledger()).changes
    assert made.after is not None
    assert "hunter2" not in str(made.after)
    assert made.after["env"]["LR"] == "0.1"
    old, new = (task("a", env=_env("hunter2"), priority=one) for one in (1, 2))
    (changed,) = planned(tree(new), ledger(row(old))).changes
    assert changed.after is not None
    assert (changed.after["env"], changed.after["priority"]) == (made.after["env"], 2)


def test_a_plan_has_no_key_of_what_is_sealed_in_it():
    """Neither as a field nor anywhere else, and its digest is no place to try words at."""
    desired = tree(task("a", env=_env("hunter2")))
    plan = planned(desired, ledger())
    assert desired.environment.uid.encode() not in dump(plan)
    assert plan.environment_fingerprint == fingerprint(desired.environment.uid)
    shown = json.dumps(to_json(plan, version="1"))
    assert desired.environment.uid not in shown
    assert plan.salt not in shown
    assert "hunter2" not in shown
    assert sealed(replace(plan, salt="")).digest != plan.digest


def test_what_is_held_keeps_no_secret_at_all():
    """It is carried out by nobody, so nothing of it needs the value: the file has versions only."""
    live = ledger(row(task("a", env=_env("hunter1")), RunState.RUNNING))
    plan = planned(tree(task("a", env=_env("hunter2"))), live)
    assert [one.change.key.name for one in plan.held] == ["a"]
    assert b"hunter" not in dump(plan)


_PROGRAM = """
import sys
from unit.views.plan.test_json import rich_plan
from fleetform.plan.serialize import dump
sys.stdout.buffer.write(dump(rich_plan()))
"""


@pytest.fixture(scope="module")
def bytes_by_seed():
    tests = Path(__file__).parents[2]
    found = {}
    for seed in ("0", "1", "2", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(tests)},
            capture_output=True,
            check=True,
        )
        found[seed] = done.stdout
    return found


def test_a_plan_is_the_same_bytes_under_any_hash_seed(bytes_by_seed):
    """In processes of their own: the order of sets and of dictionaries of sets is the seed's."""
    first, *others = bytes_by_seed.values()
    assert len(first) > 1000
    assert others == [first] * len(others)
