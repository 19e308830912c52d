"""Commands that the caller's PATH has and the job's has not: a warning, outside the plan's digest."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetform.app.plan import only_on_callers_path
from fleetform.views.plan.notes import command_lines
from unit.plan.trees import declare, element, fleet, ledger, planned, task, tree


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH whose first folder has `train` and `evaluate`, which no job has."""
    for name in ("train", "evaluate"):
        (tmp_path / name).touch(mode=0o755)
    return f"{tmp_path}{os.pathsep}/usr/bin:/bin"


def lost(path: str, *declared: Any) -> list[tuple[str, str]]:
    desired = tree(fleet("local"), *declared)
    rows = only_on_callers_path(planned(desired, ledger()), desired, path)
    return [(row["run"], row["program"]) for row in rows]


def run(*commands: str, **document: Any) -> Any:
    return task("a1", commands=list(commands), **document)


def test_a_program_that_only_the_caller_has_is_named(path: str) -> None:
    """Once, on whichever line and behind whichever variables; one that the job finds is not."""
    assert lost(path, run("cat x", "LR=1 A= train --lr 1\ntrain; ls")) == [("a1", "train")]
    assert lost(path, run("evaluate", "train|cat")) == [("a1", "evaluate"), ("a1", "train")]
    assert lost("/usr/bin:/bin", run("train")) == []
    assert lost(path, run("./train", "echo train", "# train", "trainer")) == []


def test_what_a_job_finds_by_itself_is_not(path: str) -> None:
    """By the document's own PATH, in a container, or after the script has set its PATH."""
    folder = path.partition(os.pathsep)[0]
    assert lost(path, run("train", env={"PATH": folder})) == []
    assert lost(path, run("train", image="python:3.12")) == []
    for before in ("export PATH=/x", ". venv/bin/activate", "source env.sh", "module load cuda"):
        assert lost(path, run(before, "train")) == []
        assert lost(path, run("train", before)) == [("a1", "train")]


def test_the_path_of_a_fleet_counts_below_that_of_a_run(path: str) -> None:
    """A program is named when a job on any of the run's fleets would not find it."""
    folder = path.partition(os.pathsep)[0]
    with_path = fleet("tools", env={"PATH": folder})
    on_tools = run("train", fleets=["tools"])
    assert lost(path, with_path, on_tools) == []
    assert lost(path, with_path, run("train")) == [("a1", "train")]
    assert lost(path, with_path, run("train", fleets=["tools"], env={"PATH": "/bin"})) == [
        ("a1", "train")
    ]


def test_of_a_sweep_one_element_stands_for_all(path: str) -> None:
    """A thousand warnings say no more than one."""
    assert lost(path, element("sweep", lr=1), element("sweep", lr=2)) == [("sweep", "train")]


def test_programs_of_another_machine_are_not_looked_for_on_this_one(path: str) -> None:
    """What its jobs find is not known here."""
    far = declare("fleet", "far", {"type": "fleet", "ssh_config": {"hosts": [{"hostname": "h"}]}})
    assert lost(path, far, run("train", fleets=["far"])) == []
    assert lost(path, far, run("train", fleets=["local"])) == [("a1", "train")]


def test_the_warning_says_where_the_program_is_and_what_to_do(path: str) -> None:
    """In a line each, and one of advice."""
    desired = tree(fleet("local"), run("train"))
    plan = planned(desired, ledger())
    assert command_lines(plan) == ()
    rows = only_on_callers_path(plan, desired, path)
    first, advice = command_lines(replace(plan, annex={"only_on_callers_path": rows}))
    folder = path.partition(os.pathsep)[0]
    assert first == f"a1: `train` is only on your PATH ({folder}/train), not on the job's"
    assert advice == "use its absolute path in `commands`, or set `env: {PATH: …}`"
