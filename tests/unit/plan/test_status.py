"""What a plan says beyond its changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fleetform.model.drift import Drift, DriftClass, Remedy
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.lineage import DEPENDENCY
from fleetform.model.live import Work
from fleetform.model.offers import REFUSED_SINCE
from fleetform.model.run import RunState
from fleetform.plan.notes import with_notes
from fleetform.spec.desired import Declared, ResourceKey
from fleetform.views.plan.json import to_json
from fleetform.views.plan.markdown import render as render_markdown
from fleetform.views.plan.text import render
from unit.plan.trees import fleet, ledger, planned, row, task, tree


@pytest.mark.parametrize(
    ("state", "listed"),
    [
        (RunState.FAILED, True),
        (RunState.ABORTED, True),
        (RunState.UNSCHEDULABLE, True),
        (RunState.STOPPED, True),
        (RunState.DONE, False),
        (RunState.RUNNING, False),
    ],
)
def test_failures_stay_visible(state: RunState, listed: bool) -> None:
    """A run that ended badly is in every plan until something is done about it."""
    plan = planned(tree(task("train")), ledger(row(task("train"), state, message="exit code 1")))
    assert [(one.key.name, one.state) for one in plan.settled] == (
        [("train", state.value)] if listed else []
    )


def test_an_end_that_was_asked_for_is_no_failure() -> None:
    """`state: stopped` and a stopped run agree."""
    stopped = task("train", state="stopped")
    assert planned(tree(stopped), ledger(row(stopped, RunState.STOPPED))).settled == ()


def test_what_the_plan_reruns_or_removes_is_settled_no_more() -> None:
    """Something is being done about it."""
    live = ledger(row(task("a"), RunState.FAILED), row(task("b"), RunState.FAILED))
    plan = planned(tree(task("a", commands=["fixed"])), live)
    assert plan.settled == ()
    assert len(plan.changes) == 2


def test_work_under_way_is_progress_and_no_change() -> None:
    """A second plan while runs run and hosts come is empty."""
    live = ledger(row(fleet("local")), row(task("train"), RunState.RUNNING), row(task("done")))
    coming = Instance("i", "local-0", "local", 0, InstanceState.PROVISIONING)
    live = type(live)(
        **{name: getattr(live, name) for name in live.__slots__ if name != "instances"},
        instances=(coming,),
    )
    plan = planned(tree(fleet("local"), task("train"), task("done")), live)
    assert plan.is_empty
    assert plan.progressing == (ResourceKey("fleet", "local"), ResourceKey("run", "train"))


def test_a_run_on_a_host_that_does_not_answer_is_not_in_progress() -> None:
    """The plan names the run and its host, outside its digest, and does not say that all is well."""
    rows = (row(fleet("local")), row(task("w"), RunState.RUNNING), row(task("x"), RunState.RUNNING))
    work = (
        Work("w", "local", 1, 0, hosts=("local-0",)),
        Work("x", "local", 1, 0, hosts=("local-1",)),
    )
    hosts = tuple(
        Instance(f"i{number}", f"local-{number}", "local", number, state)
        for number, state in enumerate((InstanceState.UNREACHABLE, InstanceState.READY))
    )
    desired = tree(fleet("local"), task("w"), task("x"))
    live = replace(ledger(*rows), work=work, instances=hosts)
    plan = with_notes(planned(desired, live), live)
    lines = [one.text for one in render(plan)]
    assert "! run/w is unknown: host local-0 does not answer" in lines
    assert "In progress: run/x" in lines
    assert lines[-1] == "No changes; 1 run unknown."
    assert "run/w is unknown: host local-0 does not answer" in "".join(render_markdown(plan))
    ready = tuple(replace(one, state=InstanceState.READY) for one in hosts)
    assert plan.digest == planned(desired, replace(live, instances=ready)).digest


def test_a_fleet_with_a_host_that_cannot_be_reached_is_not_as_declared() -> None:
    """The plan says why, outside its digest, in text, in Markdown and in JSON."""
    why = "the host key of gpu1 port 22 has changed"
    silent = Instance(
        "i",
        "gpu1",
        "gpus",
        0,
        InstanceState.UNREACHABLE,
        message=why,
        provider="ssh",
        install_id="a",
    )
    live = replace(ledger(row(fleet("gpus"))), instances=(silent,))
    desired = tree(fleet("gpus"))
    plan = planned(desired, live)
    lines = [one.text for one in render(plan)]
    said = f"host gpu1 of fleet gpus is unreachable: {why} (`fleetform fleet check gpus`)"
    assert f"! {said}" in lines
    assert lines[-1] == "No changes to make; 1 host unreachable."
    assert "host gpu1 of fleet gpus is unreachable" in "".join(render_markdown(plan))
    document = to_json(plan, version="0.1.0")
    assert document["hosts_silent"] == [{"fleet": "gpus", "host": "gpu1", "reason": why}]
    assert document["hosts_joining"] == []
    ready = replace(silent, state=InstanceState.READY, message="")
    assert plan.digest == planned(desired, replace(live, instances=(ready,))).digest


def test_a_plan_says_who_knows_whether_a_silent_instance_exists() -> None:
    """The plan asks no cloud; `drift` does."""
    silent = Instance(
        "i", "gpus-0", "gpus", 0, InstanceState.UNREACHABLE, provider="aws", install_id="a"
    )
    live = replace(ledger(row(fleet("gpus"))), instances=(silent,))
    said = [one.text for one in render(planned(tree(fleet("gpus")), live))]
    assert any("`fleetform drift` asks its cloud whether it exists" in one for one in said)


def test_a_plan_names_hosts_that_are_not_set_up_yet() -> None:
    """It says why, outside its digest, in text, in Markdown and in JSON."""
    why = "port 22 refuses connections"
    joining = Instance(
        "i", "gpu1", "gpus", 0, InstanceState.PROVISIONING, message=why, provider="ssh"
    )
    live = replace(ledger(row(fleet("gpus"))), instances=(joining,))
    desired = tree(fleet("gpus"))
    plan = planned(desired, live)
    said = f"host gpu1 of fleet gpus is not set up: {why}"
    assert any(one.text.startswith(f"  ! {said}") for one in render(plan))
    assert said in "".join(render_markdown(plan))
    document = to_json(plan, version="0.1.0")
    assert document["hosts_joining"] == [{"fleet": "gpus", "host": "gpu1", "reason": why}]
    assert document["hosts_silent"] == []
    untried = replace(joining, message="")
    assert plan.digest == planned(desired, replace(live, instances=(untried,))).digest


def test_a_host_that_was_not_created_is_not_asked_again() -> None:
    """The plan names the command that explains the creation, and not the one that asks hosts."""
    failed = Instance(
        "i", "gpus-0", "gpus", 0, InstanceState.PROVISIONING, message="AWS refuses it", provider="aws",
    )  # fmt: skip
    created = replace(failed, uid="j", name="gpus-1", number=1, endpoint={"id": "i-1"})
    live = replace(ledger(row(fleet("gpus"))), instances=(failed, created))
    lines = [one.text for one in render(planned(tree(fleet("gpus")), live))]
    said = "host gpus-0 of fleet gpus is not created: AWS refuses it (`fleetform why fleet/gpus`)"
    assert f"  ! {said}" in lines
    (asked,) = [one for one in lines if "is asked again until it answers" in one]
    assert "host gpus-1 " in asked


def test_a_plan_names_hosts_that_no_cloud_has_capacity_for() -> None:
    """One sentence for equal reasons, in text and in Markdown; a fleet that the plan changes says it itself."""
    why = "waiting for capacity, asked again at 2026-01-01T00:10:00Z"
    hosts = tuple(
        Instance(
            f"i{number}", f"gpus-{number}", "gpus", number, InstanceState.PROVISIONING, message=why,
            provider="aws", endpoint={REFUSED_SINCE: 5},
        )
        for number in range(2)
    )  # fmt: skip
    live = replace(ledger(row(fleet("gpus"))), instances=hosts)
    plan = planned(tree(fleet("gpus")), live)
    said = f"hosts gpus-0, gpus-1 of fleet gpus are not created: {why} (`fleetform why fleet/gpus`)"
    assert [one.text for one in render(plan)].count(f"  ! {said}") == 1
    assert [one.text for one in render(plan)][-1] == "No changes to make; 2 hosts not created."
    assert "hosts gpus-0, gpus-1 of fleet gpus are not created" in "".join(render_markdown(plan))
    document = to_json(plan, version="0.1.0")
    assert [one["host"] for one in document["hosts_waiting"]] == ["gpus-0", "gpus-1"]
    assert document["hosts_joining"] == []
    changed = planned(tree(fleet("gpus", nodes=3)), live)
    assert to_json(changed, version="0.1.0")["hosts_waiting"] == []


def test_a_look_that_gets_no_answer_makes_a_run_unknown() -> None:
    """What `--refresh` has seen counts, although the ledger does not know of it yet."""
    seen = Drift(
        ResourceKey("fleet", "local"),
        "agent",
        DriftClass.ENFORCED,
        Remedy.APPLY,
        "answers",
        "does not answer",
        part="local-0",
    )
    live = replace(
        ledger(row(fleet("local")), row(task("w"), RunState.RUNNING)),
        work=(Work("w", "local", 1, 0, hosts=("local-0",)),),
        drift=(seen,),
        observed_at_ms=1,
    )
    plan = with_notes(planned(tree(fleet("local"), task("w")), live), live)
    assert plan.annex["unknown"] == [{"name": "w", "hosts": ["local-0"]}]


def test_a_run_whose_end_cannot_be_proven_is_unknown_although_its_host_answers() -> None:
    """`why` says what is in doubt."""
    live = ledger(row(task("w"), RunState.UNKNOWN))
    lines = [one.text for one in render(with_notes(planned(tree(task("w")), live), live))]
    assert "! run/w is unknown: `fleetform why w`" in lines
    assert not any(one.startswith("In progress") for one in lines)


def test_a_plan_names_the_aborted_runs_that_its_reruns_do_not_start() -> None:
    """Also along a chain, and not those that it runs again itself; the digest does not cover it."""

    def after(name: str, *inputs: str, **fields: Any) -> Declared:
        runs = [{"run": one, "when": "succeeded"} for one in inputs]
        return task(name, depends_on={"all": True, "runs": runs}, **fields)

    aborted = (after("down", "up"), after("last", "down"), after("again", "up"))
    other = after("other", "elsewhere")
    rows = [row(one, RunState.ABORTED, cause=DEPENDENCY) for one in (*aborted, other)]
    live = ledger(row(task("up"), RunState.FAILED), *rows)
    new = {"commands": ["new"]}
    desired = tree(task("up", **new), *aborted[:2], after("again", "up", **new), other)
    plan = with_notes(planned(desired, live), live)
    assert plan.annex["still_aborted"] == ["down", "last"]
    line = "run/down, run/last stay aborted unless they are run again: `fleetform rerun NAME`"
    assert f"! {line}" in [one.text for one in render(plan)]
    assert "stay aborted unless" in "".join(render_markdown(plan))
    nothing_new = planned(tree(task("up"), *aborted, other), live)
    assert with_notes(nothing_new, live) == nothing_new
