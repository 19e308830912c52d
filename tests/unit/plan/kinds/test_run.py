"""What a changed run leads to, by what changed and where it stands."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fleetform.checker import Invariant, check
from fleetform.model.live import EarlierRun
from fleetform.model.plan import Action, Change, HeldBy, Permissions, Plan, Reason
from fleetform.model.run import RunState
from fleetform.model.run_state import Outdated
from fleetform.plan.phase import documents_at_work
from fleetform.plan.wait_targets import ended_besides, ending
from fleetform.views.reasons import reason_sentence
from unit.plan.trees import fleet, ledger, planned, row, task, tree, volume

WAITING = RunState.SUBMITTED
RUNNING = RunState.RUNNING
DONE = RunState.DONE


def plan_of(declared: Any, live_row: Any, **permissions: Any) -> Plan:
    """Plan one run against one row, and let the second reader agree."""
    desired, live = tree(declared), ledger(live_row)
    made = planned(desired, live, **permissions)
    assert check(made, desired, live, Permissions(**permissions)) == ()
    return made


def only(plan: Plan) -> Change:
    assert plan.held == ()
    (change,) = plan.changes
    return change


def verbs(change: Change) -> list[str]:
    return [step.verb for step in change.steps]


def claims(plan: Plan) -> set[str]:
    return {one.claim for one in plan.predicates}


OLD = task("train", env={"LR": "0.1"})
NEW = task("train", env={"LR": "0.2"})


def test_the_same_document_is_no_change() -> None:
    """A run whose digest is the one last applied is left alone, in any state."""
    for state in RunState:
        assert plan_of(OLD, row(OLD, state)).is_empty


def test_a_new_run_is_submitted() -> None:
    """What is not there is submitted once, with its document and digests."""
    plan = planned(tree(OLD), ledger())
    change = only(plan)
    assert (change.action, change.reasons) == (Action.CREATE, (Reason.ABSENT,))
    (step,) = change.steps
    assert step.key == "run.submit:run/train"
    assert step.arguments["document"] == OLD.document
    assert claims(plan) == {"ledger", "absent"}


@pytest.mark.parametrize("state", list(RunState))
def test_control_changes_in_place_in_any_state(state: RunState) -> None:
    """A priority changes in place, whatever the run does, and runs nothing again."""
    change = only(plan_of(task("train", priority=50), row(task("train"), state)))
    assert change.action is Action.UPDATE
    assert change.reasons == (Reason.CONTROL_CHANGED,)
    assert verbs(change) == ["run.update"]
    assert not change.destructive


def test_cosmetic_changes_the_record() -> None:
    """A description is a change of its own class."""
    change = only(plan_of(task("train", description="x"), row(task("train"))))
    assert change.reasons == (Reason.COSMETIC_CHANGED,)
    assert verbs(change) == ["run.update"]


@pytest.mark.parametrize("state", [RunState.PENDING, RunState.SUBMITTED])
def test_execution_of_a_waiting_run_changes_in_place(state: RunState) -> None:
    """A run that waits gets the new document, as long as it has not started."""
    plan = plan_of(NEW, row(OLD, state))
    change = only(plan)
    assert verbs(change) == ["run.update"]
    assert not any(one.forces for one in change.fields)
    assert claims(plan) == {"ledger", "generation", "run-not-started"}


ACTIVE = [
    RunState.PROVISIONING,
    RunState.PREPARING,
    RunState.RUNNING,
    RunState.FINISHING,
    RunState.UNKNOWN,
]


@pytest.mark.parametrize("state", ACTIVE)
def test_execution_of_a_running_run_is_held(state: RunState) -> None:
    """Nothing that is at work is ended because its document changed."""
    plan = plan_of(NEW, row(OLD, state, gpus=8))
    assert plan.is_empty
    assert [one.by for one in plan.held] == [HeldBy.RUNNING_WORK]


def test_a_held_restart_says_what_would_be_lost() -> None:
    """The plan names the work at stake and what would release the change."""
    (held,) = plan_of(NEW, row(OLD, RUNNING, gpus=8, attempt=2)).held
    assert "attempt 2 (running) on 8 GPUs" in held.detail
    assert "--allow-restart" in held.cure


def test_allow_restart_stops_and_starts_anew() -> None:
    """With the permission it is stopped first, and the new one waits for its end."""
    change = only(plan_of(NEW, row(OLD, RUNNING), allow_restart=True))
    assert change.action is Action.REPLACE
    assert change.destructive
    stop, submit = change.steps
    assert (stop.verb, submit.verb) == ("run.stop", "run.submit")
    assert submit.needs == (stop.key,)
    assert submit.arguments["after_uid"] == change.uid != ""


def test_on_change_restart_is_a_permission_of_the_run() -> None:
    """`on_change: restart` allows what the flag would, once it has been applied."""
    before = task("train", env={"LR": "0.1"}, on_change="restart")
    declared = task("train", env={"LR": "0.2"}, on_change="restart")
    assert verbs(only(plan_of(declared, row(before, RUNNING)))) == ["run.stop", "run.submit"]


@pytest.mark.parametrize("applied", [None, "hold", "after-finish"])
def test_on_change_restart_does_not_permit_what_it_comes_with(applied: str | None) -> None:
    """A change is judged by what was applied last; the permission alone goes through in place."""
    said = {} if applied is None else {"on_change": applied}
    before = task("train", env={"LR": "0.1"}, **said)
    declared = task("train", env={"LR": "0.2"}, on_change="restart")
    plan = plan_of(declared, row(before, RUNNING))
    assert plan.is_empty
    assert "apply `on_change: restart` first, without this change" in plan.held[0].cure
    alone = task("train", env={"LR": "0.1"}, on_change="restart")
    assert verbs(only(plan_of(alone, row(before, RUNNING)))) == ["run.update"]


def test_on_change_that_is_taken_back_permits_nothing() -> None:
    """What a commit tightens counts at once."""
    before = task("train", env={"LR": "0.1"}, on_change="restart")
    declared = task("train", env={"LR": "0.2"})
    assert plan_of(declared, row(before, RUNNING)).is_empty


def test_after_finish_ends_nothing() -> None:
    """`on_change: after-finish` submits a successor and destroys nothing."""
    declared = task("train", env={"LR": "0.2"}, on_change="after-finish")
    change = only(plan_of(declared, row(OLD, RUNNING)))
    assert verbs(change) == ["run.submit"]
    assert change.steps[0].arguments["after_uid"] == change.uid
    assert not change.destructive


def test_nothing_starts_beside_a_run_that_nobody_can_see() -> None:
    """A silent host's run is not restarted even with permission."""
    plan = plan_of(NEW, row(OLD, RunState.UNKNOWN), allow_restart=True, allow_destroy=True)
    assert plan.is_empty
    assert "does not answer" in plan.held[0].detail


@pytest.mark.parametrize(
    "state",
    [RunState.DONE, RunState.FAILED, RunState.STOPPED, RunState.UNSCHEDULABLE, RunState.ABORTED],
)
def test_a_finished_run_runs_again_when_its_own_document_changed(state: RunState) -> None:
    """Another execution of its own is a replacement."""
    change = only(plan_of(NEW, row(OLD, state)))
    assert (change.action, change.reasons) == (Action.REPLACE, (Reason.EXECUTION_CHANGED,))
    assert verbs(change) == ["run.submit"]
    assert [one.path for one in change.fields if one.forces] == ["env.LR"]


def test_what_is_inherited_makes_a_result_stale_and_runs_nothing() -> None:
    """A changed base marks the result; the run's own document did not change."""
    own = {"name": "train"}
    old = task("train", own=own, env={"LR": "0.1"})
    new = task("train", own=own, env={"LR": "0.2"})
    change = only(plan_of(new, row(old)))
    assert (change.action, change.reasons) == (Action.UPDATE, (Reason.INHERITED_CHANGED,))
    assert verbs(change) == ["run.update"]
    assert change.steps[0].arguments["stale"] is True


def test_stale_stays_stale_through_other_changes() -> None:
    """A control change of a stale run does not make its result fresh."""
    change = only(plan_of(task("train", priority=9), row(task("train"), stale=Outdated.INHERITED)))
    assert change.steps[0].arguments["stale"] is True


def test_an_equal_document_under_another_digest_reruns_nothing() -> None:
    """A digest of another version of the form is no change."""
    old = row(OLD)
    foreign = type(old)(
        key=old.key,
        uid=old.uid,
        generation=1,
        digest="v0",
        execution_digest="v0",
        own_digest="v0",
        document=old.document,
        type="task",
        run=old.run,
    )
    assert planned(tree(OLD), ledger(foreign)).is_empty


# -- rerun -----------------------------------------------------------------------------------


def test_rerun_above_its_mark_runs_again() -> None:
    """Raising `rerun` executes a finished run once more."""
    change = only(plan_of(task("train", rerun=1), row(task("train"))))
    assert change.action is Action.REPLACE
    assert Reason.RERUN_ASKED in change.reasons


@pytest.mark.parametrize("value", [0, 1, 2])
def test_rerun_at_or_below_its_mark_does_nothing(value: int) -> None:
    """Reverting a commit lowers the number and runs nothing."""
    live_row = row(task("train", rerun=2), rerun_mark=2)
    plan = plan_of(task("train", rerun=value), live_row)
    assert all(verbs(change) == ["run.update"] for change in plan.changes)


def test_the_mark_outlives_the_document() -> None:
    """After 2 was lowered to 1, raising it to 2 again is no news."""
    live_row = row(task("train", rerun=1), rerun_mark=2)
    assert verbs(only(plan_of(task("train", rerun=2), live_row))) == ["run.update"]


def test_rerun_of_a_running_run_is_held() -> None:
    """Asking again for what is just being done waits."""
    plan = plan_of(task("train", rerun=1), row(task("train"), RUNNING))
    assert [one.by for one in plan.held] == [HeldBy.RUNNING_WORK]


# -- state -----------------------------------------------------------------------------------

STOPPED = task("train", state="stopped")


def test_stopping_a_running_run_needs_permission() -> None:
    """`state: stopped` is what was asked, and it ends running work."""
    plan = plan_of(STOPPED, row(task("train"), RUNNING))
    assert plan.is_empty
    assert [one.by for one in plan.held] == [HeldBy.DESTRUCTIVE]
    change = only(plan_of(STOPPED, row(task("train"), RUNNING), allow_destroy=True))
    assert verbs(change) == ["run.update", "run.stop"]
    assert change.reasons[0] is Reason.STATE_WANTED


def test_stopping_a_waiting_run_destroys_nothing() -> None:
    """Its document says so from now on, and a controller ends the run."""
    change = only(plan_of(STOPPED, row(task("train"), WAITING)))
    assert verbs(change) == ["run.update"]
    assert not change.destructive


@pytest.mark.parametrize(
    "after", [task("train"), task("train", rerun=1), task("train", commands=["other"])]
)
def test_taking_the_stop_back_before_a_controller_has_ended_the_run(after: Any) -> None:
    """The controller may end it before the change is made, so another run follows it."""
    change = only(plan_of(after, row(STOPPED, WAITING)))
    assert verbs(change) == ["run.stop", "run.submit"]
    assert change.reasons[0] is Reason.RESUMED
    assert not change.destructive


def test_taking_the_stop_back_resumes() -> None:
    """A run that was stopped before its end is submitted again."""
    change = only(plan_of(task("train"), row(STOPPED, RunState.STOPPED)))
    assert verbs(change) == ["run.submit"]
    assert change.reasons[0] is Reason.RESUMED


def test_taking_the_stop_back_from_a_finished_run_runs_nothing() -> None:
    """A run that had come to its own end has nothing to resume."""
    assert verbs(only(plan_of(task("train"), row(STOPPED, DONE)))) == ["run.update"]


def test_taking_the_stop_back_waits_for_the_end() -> None:
    """While it is still being stopped, nothing is started beside it."""
    plan = plan_of(task("train"), row(STOPPED, RunState.FINISHING))
    assert [one.by for one in plan.held] == [HeldBy.ENDING]


def test_what_is_being_stopped_keeps_its_document_until_it_has_ended() -> None:
    """Another execution under `state: stopped` is taken over once nothing of the old one runs."""
    after = task("train", state="stopped", commands=["other"])
    plan = plan_of(after, row(STOPPED, RunState.FINISHING))
    assert [one.by for one in plan.held] == [HeldBy.ENDING]
    assert verbs(only(plan_of(after, row(STOPPED, RunState.STOPPED)))) == ["run.update"]


OTHER_STOPPED = task("train", state="stopped", commands=["other"])


def test_stopping_a_running_run_defers_its_new_execution() -> None:
    """A run that has started ends with the document that it executes; the new one waits."""
    change = only(plan_of(OTHER_STOPPED, row(task("train"), RUNNING), allow_destroy=True))
    assert verbs(change) == ["run.update", "run.stop"]
    assert change.reasons == (Reason.STATE_WANTED, Reason.DEFERRED, Reason.CONTROL_CHANGED)
    assert "`commands` changed: takes effect when it runs again" in reason_sentence(change)


@pytest.mark.parametrize("state", [WAITING, DONE, RunState.STOPPED])
def test_a_stopped_run_defers_its_new_execution_in_any_state(state: RunState) -> None:
    """No plan says that a run starts with a change while its document keeps it from starting."""
    change = only(plan_of(OTHER_STOPPED, row(task("train"), state)))
    assert verbs(change) == ["run.update"]
    assert Reason.DEFERRED in change.reasons
    assert (Reason.STATE_WANTED in change.reasons) == (state is WAITING)


def test_the_end_of_a_stop_runs_the_deferred_execution() -> None:
    """Also that of a run which had come to its own end; one with an inherited change stays as it is."""
    after = task("train", commands=["other"])
    before = row(OTHER_STOPPED, DONE, stale=Outdated.DOCUMENT)
    change = only(plan_of(after, before))
    assert verbs(change) == ["run.submit"]
    assert change.reasons[0] is Reason.EXECUTION_CHANGED
    inherited = row(OTHER_STOPPED, DONE, stale=Outdated.INHERITED)
    assert verbs(only(plan_of(after, inherited))) == ["run.update"]
    unmarked, desired = row(OTHER_STOPPED, DONE), tree(after)
    made = planned(desired, ledger(before))
    broken = {one.invariant for one in check(made, desired, ledger(unmarked), Permissions())}
    assert Invariant.FINISHED_STAYS_FINISHED in broken


def test_what_a_run_being_stopped_executes_stays_in_use() -> None:
    """What it uses is in the document that it executes, not in the one that waits."""
    live_row = row(OTHER_STOPPED, RunState.FINISHING)
    assert live_row.run is not None
    executed = json.dumps(task("train", env={"LR": "0.3"}).document)
    ending_row = replace(live_row, run=replace(live_row.run, executed=executed))
    assert documents_at_work(ending_row) == (executed,)


# -- leaving and coming back --------------------------------------------------------------------


def gone(live_row: Any, **permissions: Any) -> Plan:
    desired, live = tree(), ledger(live_row)
    made = planned(desired, live, **permissions)
    assert check(made, desired, live, Permissions(**permissions)) == ()
    return made


def test_removing_a_finished_run_archives_it() -> None:
    """Its result is kept, and nobody has to allow that."""
    change = only(gone(row(OLD)))
    assert (change.action, change.reasons) == (Action.ARCHIVE, (Reason.REMOVED_FINISHED,))
    assert verbs(change) == ["run.archive"]
    assert not change.destructive


def test_removing_a_running_run_is_destructive() -> None:
    """It is held until somebody allows it, then stopped and archived."""
    assert [one.by for one in gone(row(OLD, RUNNING)).held] == [HeldBy.DESTRUCTIVE]
    change = only(gone(row(OLD, RUNNING), allow_destroy=True))
    assert change.action is Action.DELETE
    assert [(step.verb, step.needs) for step in change.steps] == [
        ("run.stop", ()),
        ("run.archive", ("run.stop:run/train",)),
    ]


def test_a_run_is_told_why_it_ends() -> None:
    """Its document left, or the whole environment goes while its document is still there."""
    live = ledger(row(OLD, RUNNING))
    (removed,) = planned(tree(), live, allow_destroy=True).steps[:1]
    (destroyed,) = planned(tree(OLD), live, allow_destroy=True, destroy=True).steps[:1]
    assert (removed.verb, removed.arguments["cause"]) == ("run.stop", "removed")
    assert (destroyed.verb, destroyed.arguments["cause"]) == ("run.stop", "destroyed")


def test_removing_a_waiting_run_destroys_nothing() -> None:
    """What has not begun may go, as long as it has not begun."""
    plan = gone(row(OLD, WAITING))
    change = only(plan)
    assert change.action is Action.DELETE
    assert not change.destructive
    assert "run-not-started" in claims(plan)


def test_the_same_document_finds_its_result_again() -> None:
    """Putting a removed run back runs nothing."""
    change = only(plan_of(OLD, row(OLD, archived=True)))
    assert (change.action, change.reasons) == (Action.CREATE, (Reason.RETURNED,))
    assert verbs(change) == ["run.restore"]


def test_another_document_of_that_name_runs() -> None:
    """A run that returns as another execution is executed."""
    change = only(plan_of(NEW, row(OLD, archived=True)))
    assert change.reasons == (Reason.RETURNED, Reason.EXECUTION_CHANGED)
    assert verbs(change) == ["run.submit"]


def test_a_run_that_was_cut_short_runs_when_it_returns() -> None:
    """Removed while it ran, it has no result to find again."""
    change = only(plan_of(OLD, row(OLD, RunState.STOPPED, archived=True)))
    assert change.reasons == (Reason.RETURNED, Reason.RESUMED)
    assert verbs(change) == ["run.submit"]


def test_a_run_that_returns_while_it_is_stopped_waits() -> None:
    """Nothing starts beside what is still ending."""
    plan = plan_of(OLD, row(OLD, RUNNING, archived=True))
    assert plan.is_empty
    assert [one.by for one in plan.held] == [HeldBy.ENDING]


# -- digests of another form -----------------------------------------------------------------


def of_another_form(live_row: Any) -> Any:
    """The same row as a version would have written it whose canonical form is another one."""
    return replace(
        live_row, digest="other form", execution_digest="other form", own_digest="other form"
    )


@pytest.mark.parametrize("state", [WAITING, RUNNING, DONE])
def test_an_upgrade_that_writes_other_digests_changes_nothing(state: RunState) -> None:
    """The same document is the same run, whatever its digests were."""
    plan = plan_of(task("train"), of_another_form(row(task("train"), state)))
    assert plan.is_empty
    assert plan.held == ()


def test_a_result_that_came_before_an_upgrade_is_found_again() -> None:
    """A tombstone's execution is compared by what it says."""
    change = only(plan_of(task("train"), of_another_form(row(task("train"), archived=True))))
    assert verbs(change) == ["run.restore"]


def test_after_an_upgrade_another_execution_is_marked_and_not_run() -> None:
    """Nobody can tell the run's own change from an inherited one: `rerun` asks for it."""
    changed = task("train", commands=["new"])
    change = only(plan_of(changed, of_another_form(row(task("train")))))
    assert change.action is Action.UPDATE
    assert change.steps[0].arguments["stale"] is True
    again = task("train", commands=["new"], rerun=1)
    assert only(plan_of(again, of_another_form(row(task("train"))))).action is Action.REPLACE


def test_after_an_upgrade_a_run_at_work_keeps_its_execution() -> None:
    """Its priority changes in place; the ledger would refuse what looks like another execution."""
    changed = task("train", priority=9)
    change = only(plan_of(changed, of_another_form(row(task("train"), RUNNING))))
    assert verbs(change) == ["run.update"]
    assert change.steps[0].arguments["execution_digest"] == "other form"


# -- one that waits for the run before it ----------------------------------------------------------

EARLIER = {"earlier": EarlierRun("e" * 32, json.dumps(OLD.document))}


@pytest.mark.parametrize(
    "state", [WAITING, RunState.PENDING, RunState.UNSCHEDULABLE, RunState.ABORTED]
)
def test_the_work_that_a_removed_run_waits_for_goes_with_it(state: RunState) -> None:
    """Nobody would know of it any more: so its end is planned, and is told as what is lost."""
    desired, live = tree(task("other")), ledger(row(OLD, state, **EARLIER))
    refused = planned(desired, live)
    (held,) = refused.held
    assert (held.change.destructive, held.change.key) == (True, OLD.key)
    made = planned(desired, live, allow_destroy=True)
    assert check(made, desired, live, Permissions(allow_destroy=True)) == ()
    (change,) = [one for one in made.changes if one.key == OLD.key]
    assert verbs(change) == ["run.stop", "run.archive"]
    assert "waiting" not in change.steps[0].arguments
    assert ended_besides(made) == {change.uid: OLD.key, "e" * 32: OLD.key}
    assert change.at_stake == "the work of the earlier run, which has not ended"
    assert change.stake is not None
    assert change.stake.runs == ("train",)


def test_what_waits_for_a_run_at_work_is_not_forgotten() -> None:
    """Forgetting would not end that, and nobody would know of it."""
    desired = replace(tree(), removed=(OLD.key,))
    made = planned(desired, ledger(row(OLD, WAITING, **EARLIER)))
    assert made.is_empty
    assert "an earlier run of it is running" in made.held[0].detail


def test_to_stop_what_waits_ends_the_run_before_it() -> None:
    """`state: stopped` is said of the name, and means all that is at work under it."""
    declared = task("train", env={"LR": "0.1"}, state="stopped")
    change = only(plan_of(declared, row(OLD, WAITING, **EARLIER), allow_destroy=True))
    assert verbs(change) == ["run.update", "run.stop"]
    assert change.destructive


@pytest.mark.parametrize("archived", [False, True])
def test_no_third_run_starts_beside_the_first(archived: bool) -> None:
    """What it waited for is still at work, although the one that waited is over."""
    live = row(OLD, RunState.STOPPED, archived=archived, **EARLIER)
    made = plan_of(NEW, live)
    if archived:
        assert made.is_empty
        assert made.held[0].by is HeldBy.ENDING
        assert ending(made) == {live.uid: OLD.key, "e" * 32: OLD.key}
    else:
        assert only(made).steps[0].arguments["after_uid"] == "e" * 32


def test_a_run_that_waits_for_the_one_before_it_changes_in_place() -> None:
    """It has not begun itself: its document may change, and nothing ends."""
    change = only(plan_of(NEW, row(OLD, WAITING, **EARLIER)))
    assert verbs(change) == ["run.update"]
    assert not change.destructive


def test_a_change_that_is_taken_back_runs_nothing_again() -> None:
    """What is at work is what is declared: its successor is withdrawn, and it goes on."""
    desired, live = tree(OLD), ledger(row(NEW, WAITING, **EARLIER))
    made = planned(desired, live)
    assert check(made, desired, live, Permissions()) == ()
    change = only(made)
    assert (change.action, change.reasons) == (Action.UPDATE, (Reason.WITHDRAWN,))
    (step,) = change.steps
    assert (step.verb, step.arguments["earlier"]) == ("run.update", "e" * 32)
    assert not change.destructive
    assert ("run-not-started", OLD.key) in {(one.claim, one.resource) for one in made.predicates}


@pytest.mark.parametrize("what", ["asked to end", "asked to run again"])
def test_what_is_not_withdrawn(what: str) -> None:
    """What ends is no result, and who asks for another execution gets one."""
    before = replace(EARLIER["earlier"], ending=what == "asked to end")
    live = ledger(row(NEW, WAITING, earlier=before))
    declared = OLD if before.ending else task("train", env={"LR": "0.1"}, rerun=1)
    (step,) = only(planned(tree(declared), live)).steps
    assert "earlier" not in step.arguments


def test_a_successor_that_is_not_withdrawn_rightly() -> None:
    """The second reader compares what is executed by itself."""
    desired, live = tree(OLD), ledger(row(NEW, WAITING, **EARLIER))
    made = planned(desired, live)
    for wrong in (
        EarlierRun("f" * 32, EARLIER["earlier"].document),
        EarlierRun("e" * 32, json.dumps(NEW.document)),
        replace(EARLIER["earlier"], ending=True),
    ):
        other = ledger(row(NEW, WAITING, earlier=wrong))
        assert [one.invariant for one in check(made, desired, other, Permissions())] == [
            Invariant.RUNNING_KEEPS_ITS_EXECUTION
        ]


def test_a_restart_does_not_wait_for_the_run_before() -> None:
    """Who allows to end what is at work is not made to wait for it by a successor that waits."""
    third = task("train", env={"LR": "0.3"})
    change = only(plan_of(third, row(NEW, WAITING, **EARLIER), allow_restart=True))
    assert verbs(change) == ["run.stop", "run.submit"]
    stop, submit = change.steps
    assert stop.arguments["earlier"] == submit.arguments["after_uid"] == "e" * 32
    assert change.destructive
    assert change.at_stake == "the work of the earlier run, which has not ended"


@pytest.mark.parametrize("on_change", ["after-finish", "restart"])
def test_two_at_work_under_one_name(on_change: str) -> None:
    """As a rebuilt ledger may find them: a third could wait for one of them only, and waits itself."""
    earlier = EarlierRun("e" * 32, json.dumps(OLD.document))
    live = ledger(row(OLD, RunState.RUNNING, earlier=earlier))
    desired = tree(task("train", commands=["new"], on_change=on_change))
    made = planned(desired, live, allow_restart=True)
    assert check(made, desired, live, Permissions(allow_restart=True)) == ()
    (held,) = made.held
    assert (held.by, held.cure) == (
        HeldBy.RUNNING_WORK,
        "plan again once one of them has ended",
    )


def test_what_the_run_before_it_has_mounted_stays() -> None:
    """The document that waits has let the volume go; the one at work uses it still."""
    data = volume("data", deletion_policy="delete")
    mounting = task("train", volumes=[{"name": "data", "path": "/in"}])
    before = {"earlier": EarlierRun("e" * 32, json.dumps(mounting.document))}
    local = fleet("local")
    desired, live = tree(local, OLD), ledger(row(local), row(OLD, WAITING, **before), row(data))
    allowed = {"allow_destroy": True}
    made = planned(desired, live, **allowed)
    assert check(made, desired, live, Permissions(**allowed)) == ()
    assert made.is_empty
    assert [one.change.key for one in made.held] == [data.key]
    assert "train has it mounted" in made.held[0].detail
    # Where both go, the volume waits for the end of what uses it.
    desired = tree(local, task("other"))
    made = planned(desired, live, **allowed)
    assert check(made, desired, live, Permissions(**allowed)) == ()
    steps = {step.key: step for change in made.changes for step in change.steps}
    assert "run.stop:run/train" in steps["volume.remove:volume/data"].needs
