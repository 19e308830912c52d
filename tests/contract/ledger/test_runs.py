"""Runs: submitting one, changing one, and what is asked of it by hand."""

from __future__ import annotations

import json

import pytest

from contract.ledgers import (
    Desk,
    carry_out,
    enter,
    plan_of,
    run_key,
    step,
    submit_step,
    written,
)
from fleetform.agents.protocol.messages import JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.apply import StepOutcome
from fleetform.model.decision import Finish, Requeue
from fleetform.model.plan import Predicate, Step
from fleetform.model.ports import Ledger
from fleetform.model.recovery import Evidence
from fleetform.model.run import ArrayFacts, AttemptState, RunState
from fleetform.model.run_state import Outdated
from fleetform.spec.desired import Desired, Environment
from unit.plan.trees import declare


def test_submission_writes_everything_at_once(ledger: Ledger) -> None:
    """A submitted run has an attempt and a waiting job a node, and no place."""
    carry_out(ledger, [submit_step("a", nodes=3), submit_step("b", depends_on={"runs": []})])
    book = ledger.read_book()
    first, second = book.runs.values()
    assert (first.name, first.number, first.state) == ("a", 1, RunState.SUBMITTED)
    attempt = book.attempts[first.uid]
    assert (attempt.state, [job.key.rank for job in attempt.jobs]) == (
        AttemptState.WAITING,
        [0, 1, 2],
    )
    assert {job.state for job in attempt.jobs} == {JobState.WAITING}
    assert second.state is RunState.PENDING or second.template.depends_on == ()
    assert set(book.outcomes) == {"a", "b"}


def test_resubmission_is_another_run(desk: Desk) -> None:
    """The row of a finished run stays in the history; the resource points to the new one."""
    desk.submit(submit_step("a"))
    old = desk.run_to_end("a", exit_code=1)
    desk.submit(submit_step("a", env={"A": "1"}))
    live = desk.ledger.read_live().resources[run_key("a")]
    assert live.uid != old
    assert live.generation == 2
    assert live.run is not None
    assert live.run.state is RunState.SUBMITTED
    both = desk.ledger.read_runs(["a"], earlier=True)
    assert [history.run.uid for history in both] == [old, live.uid]
    assert desk.ledger.read_book().outcomes["a"].state is RunState.SUBMITTED


def test_an_array_keeps_its_number(ledger: Ledger) -> None:
    """An array has the number of its first run, also when that element has run again, and its indices."""
    carry_out(ledger, [submit_step("other")])
    elements = [submit_step(f"a[{one}]", parent="a", element=one) for one in ("10", "2")]
    carry_out(ledger, elements)
    assert ledger.read_array("a") == ArrayFacts(2, (2, 10))
    carry_out(ledger, [submit_step("a[10]", parent="a", element="10", commands=["again"])])
    assert ledger.read_array("a") == ArrayFacts(2, (2, 10))


def test_resubmission_waits_for_the_earlier(desk: Desk) -> None:
    """Two runs of one name are never placed at once: the later waits until the earlier is over."""
    desk.submit(submit_step("a"))
    desk.place("a")
    (earlier,) = desk.ledger.read_book().runs
    desk.submit(submit_step("a", env={"A": "1"}))
    assert desk.run("a").after_uid == earlier
    assert not desk.place("a")
    desk.ledger.commit_transitions(
        [(earlier, Finish(RunState.STOPPED, "given-up", ""))], fence=desk.fence, now_ms=1
    )
    (job,) = desk.ledger.read_book().lingering
    assert not desk.place("a")
    desk.say(JobRecord(job.key, job.uid, job.gen, "", JobState.FINISHED, Cause.STOPPED))
    assert desk.place("a")


def test_waiting_run_is_changed_whole(desk: Desk) -> None:
    """A run that waits takes on another document with another number of nodes."""
    desk.submit(submit_step("a"))
    before = desk.run("a")
    document = {"type": "task", "commands": ["false"], "nodes": 2, "rerun": 3}
    desk.submit(step("run.update", "a", **written(document)))
    after = desk.run("a")
    assert after.uid == before.uid
    assert after.generation > before.generation
    assert after.template.commands == ("false",)
    assert len(desk.ledger.read_book().attempts[after.uid].jobs) == 2
    live = desk.ledger.read_live().resources[run_key("a")]
    assert live.run is not None
    assert live.run.rerun_mark == 3


def test_rerun_mark_never_falls(desk: Desk) -> None:
    """The mark of `rerun:` is the highest that was ever applied."""
    desk.submit(submit_step("a", rerun=5))
    desk.submit(step("run.update", "a", **written({"type": "task", "commands": ["true"]})))
    live = desk.ledger.read_live().resources[run_key("a")]
    assert live.run is not None
    assert live.run.rerun_mark == 5


def test_running_run_takes_control_fields(desk: Desk) -> None:
    """What does not change the execution changes in place while it runs."""
    desk.submit(submit_step("a"))
    desk.place("a")
    document = {"type": "task", "commands": ["true"], "priority": 9}
    desk.submit(step("run.update", "a", **written(document)))
    assert desk.run("a").template.priority == 9


def test_execution_of_a_running_run_is_kept(desk: Desk) -> None:
    """A run that was placed meanwhile keeps its execution, and its digest still differs."""
    desk.submit(submit_step("a"))
    desk.place("a")
    document = {"type": "task", "commands": ["false"]}
    desk.submit(step("run.update", "a", **written(document)))
    assert desk.run("a").template.commands == ("true",)
    live = desk.ledger.read_live().resources[run_key("a")]
    assert live.digest == submit_step("a").arguments["digest"]
    assert any("has started" in event.message for event in desk.ledger.read_events(run="a"))


def test_stop_of_a_running_run_defers_its_execution(desk: Desk) -> None:
    """`state: stopped` reaches a run that has started; its new commands wait until it runs again."""
    desk.submit(submit_step("a"))
    desk.place("a")
    document = {"type": "task", "commands": ["false"], "nodes": 2, "state": "stopped"}
    desk.submit(step("run.update", "a", **written(document)))
    template = desk.run("a").template
    assert (template.commands, template.wanted) == (("true",), "stopped")
    live = desk.ledger.read_live().resources[run_key("a")]
    assert json.loads(live.document) == document
    assert live.run is not None
    assert json.loads(live.run.executed)["commands"] == ["true"]
    assert live.run.stale is Outdated.DOCUMENT


def test_refused_step_is_told(desk: Desk) -> None:
    """Whoever carries the plan out hears which steps were refused, each time it writes them."""
    desk.submit(submit_step("a"), submit_step("b"))
    desk.place("a")
    changed = written({"type": "task", "commands": ["false"]})
    steps = [step("run.update", name, **changed) for name in ("a", "b")]
    accepted = enter(desk.ledger, plan_of(desk.ledger, steps))
    outcomes = [StepOutcome(one.key) for one in steps]
    for _ in range(2):
        refused = desk.ledger.finish_steps(accepted.apply_uid, steps, outcomes, now_ms=1)
        assert refused == {
            steps[0].key: "run a has started, so its execution was not changed",
        }
    resumed, _ = desk.ledger.unfinished_apply() or pytest.fail("the apply is lost")
    assert resumed.done == {steps[1].key}


def test_what_was_to_go_before_it_began_keeps_its_work(desk: Desk) -> None:
    """
    A run that waited when its end was agreed to, and was placed before it came to that, goes on.

    Nobody has agreed to lose its work. One that still waits ends as planned.
    """
    desk.submit(submit_step("a"), submit_step("b"))
    steps = [step("run.stop", name, cause="removed", waiting=True) for name in ("a", "b")]
    accepted = enter(desk.ledger, plan_of(desk.ledger, steps))
    desk.place("a")
    outcomes = [StepOutcome(one.key) for one in steps]
    refused = desk.ledger.finish_steps(accepted.apply_uid, steps, outcomes, now_ms=1)
    assert list(refused) == [steps[0].key]
    assert "the plan did not include the loss of its work" in refused[steps[0].key]
    assert [desk.run(name).stop_requested for name in ("a", "b")] == [
        "",
        "its document was removed, applied by anna",
    ]


def test_a_run_is_told_what_ended_it(desk: Desk) -> None:
    """`ps` and `why` say whether a document left, or all was destroyed whatever the tree says."""
    desk.submit(submit_step("a"))
    desk.submit(step("run.stop", "a", cause="destroyed"))
    assert desk.run("a").stop_requested == "the whole environment was destroyed, applied by anna"


def test_a_run_between_two_attempts_has_not_started(desk: Desk) -> None:
    """What waits for its next attempt has nothing to lose: a plan that ends it is not stale."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.FINISHED, exit_code=1))
    desk.decide("a", Requeue(0, "error", ""))
    waits = Predicate("run-not-started", run_key("a"))
    assert enter(desk.ledger, plan_of(desk.ledger, [submit_step("b")], waits)).state == "new"


def test_a_run_without_evidence_takes_another_document(desk: Desk) -> None:
    """After a rebuild it has no attempt; what does not change its execution is written down."""
    declared = declare("run", "a", {"type": "task", "commands": ["true"]})
    desired = Desired(Environment("test", "e" * 32), {declared.key: declared})
    evidence = Evidence(desired, (), {}, {})
    desk.ledger.adopt_evidence(evidence, {}, who="me", now_ms=9, mark_missing=True)
    assert desk.run("a").state is RunState.UNKNOWN
    document = {"type": "task", "commands": ["true"], "priority": 9}
    desk.submit(step("run.update", "a", **written(document)))
    assert json.loads(desk.ledger.read_live().resources[run_key("a")].document) == document


def test_finished_run_is_marked_stale(desk: Desk) -> None:
    """A finished run keeps what was executed; that it is out of date is written beside it."""
    desk.submit(submit_step("a"))
    desk.run_to_end("a")
    document = {"type": "task", "commands": ["false"]}
    desk.submit(step("run.update", "a", **written(document, stale=True)))
    live = desk.ledger.read_live().resources[run_key("a")]
    assert live.run is not None
    assert live.run.stale
    assert json.loads(live.document) == document
    (history,) = desk.ledger.read_runs(["a"])
    assert history.run.template.commands == ("true",)
    assert history.execution_digest != live.execution_digest


def test_archive_keeps_result_and_restore_finds_it(desk: Desk) -> None:
    """A tombstone keeps uid, digests and result; the same document finds them again."""
    desk.submit(submit_step("a"))
    uid = desk.run_to_end("a")
    desk.submit(step("run.archive", "a"))
    row = desk.ledger.read_live().resources[run_key("a")]
    assert (row.uid, row.archived) == (uid, True)
    assert "a" not in desk.ledger.read_book().outcomes
    (history,) = desk.ledger.read_runs(["a"])
    assert history.archived
    desk.submit(step("run.restore", "a", **submit_step("a").arguments))
    row = desk.ledger.read_live().resources[run_key("a")]
    assert (row.uid, row.archived, row.generation) == (uid, False, 3)
    assert desk.ledger.read_book().outcomes["a"].state is RunState.DONE


def test_stop_is_asked_once(desk: Desk) -> None:
    """The first who asks for the end is remembered; a run that is asked is not placed."""
    desk.submit(submit_step("a"))
    desk.submit(step("run.stop", "a", cause="removed"))
    desk.submit(step("run.stop", "a", cause="state"))
    assert desk.run("a").stop_requested.startswith("its document was removed, applied by ")
    assert not desk.place("a")


def test_the_end_of_a_name_is_that_of_all_its_runs(desk: Desk) -> None:
    """One that waits for an earlier one hides it, and both are asked to end."""
    desk.submit(submit_step("a"))
    desk.place("a")
    (earlier,) = desk.ledger.read_book().runs
    desk.submit(submit_step("a", env={"A": "1"}))
    live = desk.ledger.read_live().resources[run_key("a")]
    assert live.run is not None
    assert live.run.earlier is not None
    assert live.run.earlier.uid == earlier != live.uid
    assert "env" not in json.loads(live.run.earlier.document)
    desk.submit(step("run.stop", "a", cause="removed"), step("run.archive", "a"))
    runs = desk.ledger.read_book().runs
    assert {uid: bool(run.stop_requested) for uid, run in runs.items()} == {
        earlier: True,
        live.uid: True,
    }


def _withdrawing(desk: Desk, earlier: str) -> dict[str, str]:
    """Give the name back to what is at work under it; returns what is refused."""
    arguments = {**submit_step("a").arguments, "earlier": earlier}
    steps = [Step("run.update:run/a", "run.update", run_key("a"), (), arguments)]
    accepted = enter(desk.ledger, plan_of(desk.ledger, steps))
    outcomes = [StepOutcome(steps[0].key)]
    refused = desk.ledger.finish_steps(accepted.apply_uid, steps, outcomes, now_ms=1)
    desk.ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=1)
    return dict(refused)


def test_a_name_is_given_back_to_what_is_at_work(desk: Desk) -> None:
    """The one that waited is asked to end, and is history; the first goes on under its name."""
    desk.submit(submit_step("a"))
    desk.place("a")
    (earlier,) = desk.ledger.read_book().runs
    desk.submit(submit_step("a", env={"A": "1"}))
    later = desk.ledger.read_live().resources[run_key("a")].uid
    assert _withdrawing(desk, earlier) == {}
    live = desk.ledger.read_live().resources[run_key("a")]
    assert live.uid == earlier
    assert live.run is not None
    assert live.run.earlier is None
    assert "env" not in json.loads(live.document)
    book = desk.ledger.read_book()
    assert book.outcomes["a"].state is RunState.PREPARING
    asked = {uid: run.stop_requested for uid, run in book.runs.items()}
    assert asked[earlier] == ""
    assert asked[later].startswith("the running version is declared again, applied by ")


@pytest.mark.parametrize("what", ["the later has begun", "the earlier is over"])
def test_a_name_that_is_not_given_back(desk: Desk, what: str) -> None:
    """Something happened since the plan was made: nothing is ended, and the sentence says it."""
    desk.submit(submit_step("a"))
    desk.place("a")
    (earlier,) = desk.ledger.read_book().runs
    desk.submit(submit_step("a", env={"A": "1"}))
    desk.ledger.commit_transitions(
        [(earlier, Finish(RunState.STOPPED, "given-up", ""))], fence=desk.fence, now_ms=1
    )
    (job,) = desk.ledger.read_book().lingering
    desk.say(JobRecord(job.key, job.uid, job.gen, "", JobState.FINISHED, Cause.STOPPED))
    if what == "the later has begun":
        assert desk.place("a")
    (sentence,) = _withdrawing(desk, earlier).values()
    assert (
        "has started" if what == "the later has begun" else "is ending or has ended"
    ) in sentence
    assert not any(run.stop_requested for run in desk.ledger.read_book().runs.values())


def test_what_drives_a_name_drives_the_run_before_it(desk: Desk) -> None:
    """A limit that is set while a successor waits holds for what is at work; no command does."""
    desk.submit(submit_step("a", max_duration=60, priority=1))
    desk.place("a")
    (earlier,) = desk.ledger.read_book().runs
    desk.submit(submit_step("a", commands=["false"], priority=1))
    arguments = submit_step("a", commands=["date"], max_duration=3).arguments
    desk.submit(Step("run.update:run/a", "run.update", run_key("a"), (), arguments))
    live = desk.ledger.read_live().resources[run_key("a")]
    assert live.run is not None
    assert live.run.earlier is not None
    assert live.run.earlier.uid == earlier
    assert json.loads(live.run.earlier.document) == {
        "type": "task",
        "commands": ["true"],
        "max_duration": 3,
    }


def test_what_was_agreed_of_one_that_waits_does_not_end_the_one_before_it(desk: Desk) -> None:
    """That has begun since, or always had: no plan says that its work would be lost."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.submit(submit_step("a", env={"A": "1"}))
    steps = [step("run.stop", "a", cause="removed", waiting=True)]
    accepted = enter(desk.ledger, plan_of(desk.ledger, steps))
    refused = desk.ledger.finish_steps(
        accepted.apply_uid, steps, [StepOutcome(steps[0].key)], now_ms=1
    )
    assert "the plan did not include the loss of its work" in refused[steps[0].key]
    assert not any(run.stop_requested for run in desk.ledger.read_book().runs.values())


def test_a_third_run_waits_for_the_first(desk: Desk) -> None:
    """The one between them is over without having begun, and the first is still at work."""
    desk.submit(submit_step("a"))
    desk.place("a")
    (earlier,) = desk.ledger.read_book().runs
    desk.submit(submit_step("a", env={"A": "1"}))
    desk.finish("a", RunState.ABORTED, "dependency")
    desk.submit(submit_step("a", env={"A": "2"}))
    assert desk.run("a").after_uid == earlier
    assert not desk.place("a")
