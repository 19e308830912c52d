"""What `plan`, `apply` and `status` say to a script."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from fleetform.model.ledger import LedgerStatus
from fleetform.model.plan import Scope
from fleetform.model.ports import RunHistory
from fleetform.model.run import FINAL, RunState
from fleetform.model.run_state import NO_EVIDENCE
from fleetform.plan.exit import (
    apply_code,
    exit_code_of_apply,
    exit_code_of_plan,
    exit_code_of_status,
    plan_code,
)
from simulation.scenario import make_desired
from unit.controllers.rig import Rig, pool, task
from unit.plan.trees import fleet, ledger, planned, row, tree
from unit.plan.trees import task as declared

LOCAL = fleet("local")
BAD = declared("bad")
CONVERGED = planned(tree(LOCAL), ledger(row(LOCAL)))
CHANGES = planned(tree(LOCAL), ledger())
HELD = planned(tree(), ledger(row(LOCAL)))
FAILED = planned(tree(LOCAL, BAD), ledger(row(LOCAL), row(BAD, RunState.FAILED)))
RECOVERING = planned(
    tree(LOCAL), replace(ledger(row(LOCAL)), status=LedgerStatus.RECOVERING, notes=("older",))
)
BOTH = (False, True)


@pytest.mark.parametrize(
    ("recovering", "blocked", "failed", "changes", "detailed"),
    list(itertools.product(BOTH, repeat=5)),
)
def test_each_case_of_a_plan(recovering, blocked, failed, changes, detailed) -> None:
    """1 while recovering; else 0 without --detailed-exitcode; else 3, 4, 2, 0 in this order."""
    code = exit_code_of_plan(
        is_recovering=recovering, is_blocked=blocked, has_failed=failed, has_changes=changes,
        detailed=detailed,
    )  # fmt: skip
    details = 3 if blocked else 4 if failed else 2 if changes else 0
    assert code == (1 if recovering else details if detailed else 0)


@pytest.mark.parametrize(("error", "blocked", "failed"), list(itertools.product(BOTH, repeat=3)))
def test_each_case_of_an_apply(error, blocked, failed) -> None:
    """1, 3, 4, 0 in this order."""
    code = exit_code_of_apply(has_error=error, is_blocked=blocked, has_failed=failed)
    assert code == (1 if error else 3 if blocked else 4 if failed else 0)


@pytest.mark.parametrize(
    ("trusted", "failed", "attention"), list(itertools.product(BOTH, repeat=3))
)
def test_each_case_of_a_status(trusted, failed, attention) -> None:
    """1, 4, 3, 0 in this order."""
    code = exit_code_of_status(is_trusted=trusted, has_failed=failed, needs_attention=attention)
    assert code == (1 if not trusted else 4 if failed else 3 if attention else 0)


@pytest.mark.parametrize(
    ("plan", "of_plan", "of_detailed", "of_apply"),
    [
        (CONVERGED, 0, 0, 0), (CHANGES, 0, 2, 0), (HELD, 0, 3, 3), (FAILED, 0, 4, 0),
        (RECOVERING, 1, 1, 1),
    ],
)  # fmt: skip
def test_what_a_plan_means(plan, of_plan, of_detailed, of_apply) -> None:
    """Failures of last week change no code without --detailed-exitcode; a failed step comes first."""
    assert plan_code(plan, detailed=False) == of_plan
    assert plan_code(plan, detailed=True) == of_detailed
    assert apply_code(plan) == of_apply
    assert apply_code(plan, ("no space",)) == 1


@pytest.mark.parametrize(
    ("scope", "code"),
    [
        (Scope(), 0), (Scope(targets=("run/bad",)), 4), (Scope(targets=("bad",)), 4),
        (Scope(replaces=("run/b*",)), 4), (Scope(targets=("fleet/local",)), 0),
        (Scope(excludes=("fleet/local",)), 0),
    ],
)  # fmt: skip
def test_an_apply_answers_for_the_runs_that_it_is_asked_about(scope, code) -> None:
    """`--target` and `--replace` name them, also where nothing is left to do for them."""
    assert apply_code(replace(FAILED, scope=scope)) == code


def test_a_stop_is_no_failure_of_a_plan() -> None:
    """A run that a person stopped is listed; who asks for it by name hears that it is not done."""
    stopped = row(BAD, RunState.STOPPED, message="emergency stop")
    plan = planned(tree(LOCAL, BAD), ledger(row(LOCAL), stopped))
    assert [one.state for one in plan.settled] == ["stopped"]
    assert plan_code(plan, detailed=True) == 0
    assert apply_code(replace(plan, scope=Scope(targets=("bad",)))) == 4


@pytest.mark.parametrize(
    "state", [RunState.FAILED, RunState.STOPPED, RunState.UNSCHEDULABLE, RunState.ABORTED]
)
def test_what_is_declared_stopped_counts_nowhere(state) -> None:
    """Its document says `state: stopped`: however it ended, nothing is missing."""
    meant = declared("bad", state="stopped")
    plan = planned(tree(LOCAL, meant), ledger(row(LOCAL), row(meant, state)))
    assert plan.settled == ()
    assert plan_code(plan, detailed=True) == 0


# -- runs that an apply started or followed -------------------------------------------------------


@pytest.fixture(scope="module")
def history() -> RunHistory:
    """A run that was submitted, as a real ledger has it."""
    rig = Rig({"one": 60})
    found: list[RunHistory] = []

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {"one": task()}))
        await rig.until(lambda: rig.state("one") is RunState.RUNNING)
        found.extend(rig.ledger.read_runs(["one"]))

    rig.play(story())
    return found[0]


def changed(history: RunHistory, *, archived: bool = False, wanted: str = "running",
            **values: Any) -> RunHistory:  # fmt: skip
    template = replace(history.run.template, wanted=wanted)
    return replace(
        history, archived=archived, run=replace(history.run, template=template, **values)
    )


@pytest.mark.parametrize("state", list(RunState))
@pytest.mark.parametrize("archived", BOTH)
@pytest.mark.parametrize("wanted", ["running", "stopped"])
@pytest.mark.parametrize("detached", BOTH)
def test_each_end_of_a_run(history, state, archived, wanted, detached) -> None:
    """
    `done` is 0, another end is 4 unless the run was removed or is declared stopped, and a run that
    is not over is waited for: 3. Who does not wait hears only of a run that can never start.
    """
    one = changed(history, state=state, archived=archived, wanted=wanted)
    code = 3
    if state in FINAL:
        is_well = state is RunState.DONE or archived or wanted == "stopped"
        code = 0 if is_well else 4
    counts = not detached or state is RunState.UNSCHEDULABLE
    assert apply_code(CONVERGED, (), (one,), detached=detached) == (code if counts else 0)


def test_a_run_without_evidence_needs_a_person(history) -> None:
    """No host will ever answer for it: it is 4, and not waiting."""
    one = changed(history, state=RunState.UNKNOWN, cause=NO_EVIDENCE)
    assert apply_code(CONVERGED, (), (one,)) == 4


def test_what_is_blocked_comes_before_a_run_that_failed(history) -> None:
    """Of two codes the one that a person has to decide on holds."""
    failed = changed(history, state=RunState.FAILED)
    silent = changed(history, state=RunState.UNKNOWN)
    assert apply_code(HELD, (), (failed,)) == 3
    assert apply_code(CONVERGED, (), (failed, silent)) == 3


def test_a_silent_host_keeps_an_apply_from_an_end() -> None:
    """The run on it may still go on: it is neither done nor failed."""
    rig = Rig({"one": 60})
    desired = make_desired(pool(1), {"one": task()})

    async def story() -> None:
        made = rig.plan(desired)
        await rig.apply(desired)
        await rig.until(lambda: rig.state("one") is RunState.RUNNING)
        (instance,) = rig.ledger.read_live().instances
        rig.ledger.mark_instance(instance.uid, state="unreachable", message="silent", now_ms=1)
        unknown = rig.ledger.read_runs(["one"])
        assert unknown[0].run.state is RunState.UNKNOWN
        assert apply_code(made, (), unknown) == 3

    rig.play(story())
