"""One suite that every ledger passes; what a call means is in the docstrings of `model.ports`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contract.ledgers import (
    ENVIRONMENT,
    GIB,
    CountingIds,
    Desk,
    StillClock,
    absent,
    carry_out,
    enter,
    fleet_step,
    hello,
    plan_of,
    run_key,
    step,
    submit_step,
    written,
)
from fleetform.agents.protocol.messages import Cursor, JobKey, JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.decision import AllPrepared, Finish, Placement, Requeue, StopGang
from fleetform.model.event import LoggedEvent
from fleetform.model.instance import InstanceState
from fleetform.model.live import LedgerStatus
from fleetform.model.plan import Predicate
from fleetform.model.ports import FenceLost, Ledger, StalePlan, StepOutcome
from fleetform.model.run import AttemptState, RunState
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.store.opening import open_ledger
from fleetform.store.snapshot import open_snapshot


def open_sqlite(folder: Path) -> Ledger:
    return open_ledger(folder / "ledger.db", ENVIRONMENT, CountingIds(), StillClock())


@pytest.fixture(params=[open_sqlite], ids=["sqlite"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Ledger]:
    """Open the test's one ledger once more, as another process would."""
    return lambda: request.param(tmp_path)


@pytest.fixture
def ledger(reopen: Callable[[], Ledger]) -> Iterator[Ledger]:
    ledger = reopen()
    yield ledger
    ledger.close()


@pytest.fixture
def desk(ledger: Ledger) -> Desk:
    return Desk.of(ledger)


@pytest.fixture
def two_hosts(ledger: Ledger) -> Desk:
    return Desk.of(ledger, nodes=2)


# -- plans --------------------------------------------------------------------------------


def test_empty_until_first_plan(ledger: Ledger) -> None:
    """A new ledger says that it is empty, and is in use from the first accepted plan on."""
    assert ledger.read_live().status is LedgerStatus.EMPTY
    carry_out(ledger, [submit_step("a")])
    assert ledger.read_live().status is LedgerStatus.READY


def test_plan_is_applied_once(ledger: Ledger) -> None:
    """A plan that was carried out is known as such when it comes again."""
    plan = plan_of(ledger, [submit_step("a")], absent("run", "a"))
    first = enter(ledger, plan)
    ledger.finish_steps(first.apply_uid, plan.steps, [StepOutcome(plan.steps[0].key)], now_ms=1)
    ledger.finish_apply(first.apply_uid, state="done", summary="", now_ms=1)
    again = enter(ledger, plan)
    assert (again.state, again.apply_uid) == ("already-applied", first.apply_uid)


def test_plan_holds_again_after_undo(ledger: Ledger) -> None:
    """The same plan is a new apply once what it did has been undone."""
    making = plan_of(ledger, [fleet_step("f")], absent("fleet", "f"))
    for _ in range(2):
        accepted = enter(ledger, making)
        assert accepted.state == "new"
        ledger.begin_steps(accepted.apply_uid, making.steps, now_ms=1)
        ledger.finish_steps(
            accepted.apply_uid, making.steps, [StepOutcome(making.steps[0].key)], now_ms=1
        )
        ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=1)
        carry_out(ledger, [step("fleet.remove", "f")])


def test_unfinished_plan_is_resumed(reopen: Callable[[], Ledger]) -> None:
    """After a crash the plan is found with the steps that are done, and its uids stay."""
    ledger = reopen()
    steps = [submit_step("a"), fleet_step("f")]
    plan = plan_of(ledger, steps)
    first = enter(ledger, plan)
    ledger.finish_steps(first.apply_uid, steps[:1], [StepOutcome(steps[0].key)], now_ms=1)
    begun = ledger.begin_steps(first.apply_uid, steps[1:], now_ms=1)
    ledger.close()

    ledger = reopen()
    accepted, body = ledger.unfinished_apply() or pytest.fail("the apply is lost")
    assert (accepted.apply_uid, accepted.done) == (first.apply_uid, {steps[0].key})
    assert body == plan.digest.encode()
    assert enter(ledger, plan) == accepted
    assert ledger.begin_steps(first.apply_uid, steps[1:], now_ms=2) == begun
    ledger.close()


def test_outcome_given_twice_counts_once(ledger: Ledger) -> None:
    """A result that is written again, because its reply was lost, submits nothing twice."""
    steps = [submit_step("a")]
    accepted = enter(ledger, plan_of(ledger, steps))
    for _ in range(2):
        ledger.finish_steps(accepted.apply_uid, steps, [StepOutcome(steps[0].key)], now_ms=1)
    assert len(ledger.read_book().runs) == 1


@pytest.mark.parametrize(
    ("predicate", "sentence"),
    [
        (absent("run", "a"), "run/a exists by now"),
        (Predicate("generation", run_key("a"), "7"), "generation 1, the plan was made for 7"),
        (Predicate("generation", run_key("b"), "1"), "run/b no longer exists"),
        (Predicate("run-not-started", run_key("a")), "run/a has started"),
        (Predicate("ledger", None, "other/1"), "the ledger is another one"),
        (Predicate("sunshine", run_key("a")), "no claim that this release knows"),
    ],
)
def test_stale_plan_names_what_changed(desk: Desk, predicate: Predicate, sentence: str) -> None:
    """A predicate that no longer holds refuses the plan, says why, and nothing is written."""
    desk.submit(submit_step("a"))
    desk.place("a")
    before = desk.ledger.read_live()
    with pytest.raises(StalePlan, match=sentence):
        enter(desk.ledger, plan_of(desk.ledger, [submit_step("c")], predicate))
    assert desk.ledger.read_live() == before


@pytest.mark.parametrize(
    "predicate",
    [
        absent("run", "b"),
        Predicate("generation", run_key("a"), "1"),
        Predicate("run-not-started", run_key("a")),
    ],
)
def test_predicates_that_hold(desk: Desk, predicate: Predicate) -> None:
    """A plan whose predicates hold is accepted."""
    desk.submit(submit_step("a"))
    assert enter(desk.ledger, plan_of(desk.ledger, [submit_step("b")], predicate)).state == "new"


def test_ledger_predicate(ledger: Ledger) -> None:
    """The claim `ledger` names its id and epoch."""
    live = ledger.read_live()
    claim = Predicate("ledger", None, f"{live.ledger_id}/{live.epoch}")
    assert enter(ledger, plan_of(ledger, [submit_step("a")], claim)).state == "new"


def test_plan_made_before_the_ledger(ledger: Ledger) -> None:
    """A plan that was made when there was no ledger yet is accepted by a new one."""
    plan = replace(plan_of(ledger, [submit_step("a")], absent("run", "a")), ledger_id="", epoch=0)
    assert enter(ledger, plan).state == "new"


def test_plan_of_another_ledger(ledger: Ledger) -> None:
    """A plan made with another ledger, or before the epoch was raised, is refused."""
    plan = plan_of(ledger, [submit_step("a")])
    for other in (replace(plan, ledger_id="f" * 32), replace(plan, epoch=2)):
        with pytest.raises(StalePlan, match="the plan was made with ledger"):
            enter(ledger, other)
    with pytest.raises(StalePlan, match="for environment"):
        enter(ledger, replace(plan, environment_uid="f" * 32))


def test_two_plans_for_one_resource(ledger: Ledger) -> None:
    """What an unfinished apply is about to change is not another plan's to change."""
    first = enter(ledger, plan_of(ledger, [submit_step("a")]))
    other = plan_of(ledger, [submit_step("a", priority=1)])
    with pytest.raises(StalePlan, match="run/a is being changed"):
        enter(ledger, other)
    ledger.finish_apply(first.apply_uid, state="interrupted", summary="", now_ms=1)
    assert enter(ledger, other).state == "new"


def test_operation_marks_its_resource(desk: Desk) -> None:
    """A resource bears its apply's uid from acceptance until the apply is over."""
    fleet = ResourceKey("fleet", "local")
    change = fleet_step("local", 2, "fleet.update")
    accepted = enter(desk.ledger, plan_of(desk.ledger, [change]))
    assert desk.ledger.read_live().resources[fleet].operation == accepted.apply_uid
    desk.ledger.finish_apply(accepted.apply_uid, state="failed", summary="", now_ms=1)
    assert not desk.ledger.read_live().resources[fleet].operation


def test_failed_plan_is_taken_up_again(ledger: Ledger) -> None:
    """What was done stays done when the same plan is applied after a failure."""
    steps = [submit_step("a"), fleet_step("f")]
    plan = plan_of(ledger, steps, absent("run", "a"), absent("fleet", "g"))
    accepted = enter(ledger, plan)
    ledger.begin_steps(accepted.apply_uid, steps[1:], now_ms=1)
    outcomes = [StepOutcome(steps[0].key), StepOutcome(steps[1].key, "no host answers")]
    ledger.finish_steps(accepted.apply_uid, steps, outcomes, now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="1 failed", now_ms=1)
    again = enter(ledger, plan)
    assert (again.state, again.done) == ("resumed", {steps[0].key})
    (record,) = ledger.read_applies()
    assert (record.state, record.who, record.commit) == ("running", "anna", "c0ffee")


def test_plan_bytes_are_kept(ledger: Ledger) -> None:
    """A plan is read back by its digest, byte for byte."""
    plan = plan_of(ledger, [submit_step("a")])
    ledger.accept(plan, b"\x00the plan", who="anna", now_ms=1)
    assert ledger.read_plan(plan.digest) == b"\x00the plan"
    assert ledger.read_plan("unknown") is None


def test_rules_last_applied(ledger: Ledger) -> None:
    """The rules in force are those of the last `rules.set`."""
    assert ledger.read_live().rules is None
    rules = {"allow_destroy": True, "delete_percent": 3, "delete_count": 1}
    carry_out(ledger, [step("rules.set", "test", rules=rules)])
    assert ledger.read_live().rules == Rules(True, 3, 1)


# -- fleets and volumes -------------------------------------------------------------------


def test_fleet_gets_instances_with_its_intent(ledger: Ledger) -> None:
    """Instances have rows and uids before anybody makes them, with what the fleet declares."""
    declared = {"local": {"cpu": 4000, "memory": GIB}, "sharing": "blocks", "blocks": 4}
    make = fleet_step("f", 2, **declared)
    accepted = enter(ledger, plan_of(ledger, [make]))
    begun = ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)
    live = ledger.read_live()
    assert [(one.name, one.number, one.state, one.parts) for one in live.instances] == [
        ("f-0", 0, InstanceState.PROVISIONING, 2),
        ("f-1", 1, InstanceState.PROVISIONING, 2),
    ]
    first = live.instances[0]
    assert (first.cpu_millicores, first.memory_bytes, first.sharing, first.blocks) == (
        (4000, GIB, "blocks", 4)
    )
    assert first.declared == declared["local"]
    assert live.resources[make.resource].uid == begun[make.key].resource_uid


def test_shrunk_fleet_is_drained(two_hosts: Desk) -> None:
    """The update of a fleet ends no work: who leaves takes no job more, and its jobs go on."""
    desk = two_hosts
    desk.submit(submit_step("a"), submit_step("b"))
    desk.place("a", desk.share(on=1))
    desk.say(desk.record("a", JobState.RUNNING), on=1)
    carry_out(desk.ledger, [fleet_step("local", 1, "fleet.update")])
    leaving = desk.ledger.read_live().instances[1]
    assert leaving.state is InstanceState.TERMINATING
    assert not desk.place("b", desk.share(on=1))
    desk.say(desk.record("a", JobState.FINISHED), on=1)
    (history,) = desk.ledger.read_runs(["a"])
    assert history.attempts[-1].jobs[0].cause is Cause.EXITED
    assert not desk.ledger.read_book().allocations


def test_retired_host_is_gone(two_hosts: Desk) -> None:
    """A host that was let go is gone for good: its place is another instance's afterwards."""
    desk, ledger = two_hosts, two_hosts.ledger
    desk.submit(submit_step("a"))
    desk.place("a", desk.share(on=1))
    desk.say(desk.record("a", JobState.RUNNING), on=1)
    carry_out(ledger, [fleet_step("local", 1, "fleet.update")])
    ledger.retire(desk.instances[1], fence=desk.fence, now_ms=2)
    assert [one.number for one in ledger.read_live().instances] == [0]
    (history,) = ledger.read_runs(["a"])
    assert history.host_names[desk.instances[1]] == "local-1"
    assert history.attempts[-1].jobs[0].cause is Cause.LOST
    carry_out(ledger, [fleet_step("local", 2, "fleet.update")])
    second = ledger.read_live().instances[1]
    assert second.number == 1
    assert second.uid not in desk.instances


def test_leaving_host_is_taken_back(two_hosts: Desk) -> None:
    """A fleet that grows again keeps the host that was leaving, which is then not retired."""
    desk = two_hosts
    carry_out(desk.ledger, [fleet_step("local", 1, "fleet.update")])
    carry_out(desk.ledger, [fleet_step("local", 2, "fleet.update")])
    desk.ledger.retire(desk.instances[1], fence=desk.fence, now_ms=2)
    back = desk.ledger.read_live().instances[1]
    assert (back.uid, back.state) == (desk.instances[1], InstanceState.PROVISIONING)
    desk.greet(back.uid)
    assert desk.ledger.read_live().instances[1].state is InstanceState.READY


def test_fleet_that_failed_is_planned_again(ledger: Ledger) -> None:
    """A fleet that could not be made keeps its instances, and differs from what is declared."""
    make = fleet_step("f")
    accepted = enter(ledger, plan_of(ledger, [make]))
    ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)
    ledger.finish_steps(accepted.apply_uid, [make], [StepOutcome(make.key, "no")], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="", now_ms=1)
    row = ledger.read_live().resources[make.resource]
    assert (row.digest, row.document) == ("", "{}")
    uid = ledger.read_live().instances[0].uid
    carry_out(ledger, [fleet_step("f", 1, "fleet.update")])
    assert ledger.read_live().instances[0].uid == uid
    assert ledger.read_live().resources[make.resource].digest == make.arguments["digest"]


def test_removed_fleet_loses_its_jobs(desk: Desk) -> None:
    """Hosts that were released run nothing any more: that is proof for what ran there."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    carry_out(desk.ledger, [step("fleet.remove", "local")])
    (history,) = desk.ledger.read_runs(["a"])
    assert history.attempts[-1].jobs[0].cause is Cause.LOST
    assert not desk.ledger.read_live().instances
    assert not desk.ledger.read_book().allocations


def test_volume_lives_and_is_forgotten(ledger: Ledger) -> None:
    """A volume has a uid from its intent on, changes in place, and is gone when forgotten."""
    document = {"type": "volume", "fleet": "f", "path": "data"}
    make = step("volume.make", "v", **written(document, fleet="f", path="data"))
    accepted = enter(ledger, plan_of(ledger, [make]))
    uid = ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)[make.key].resource_uid
    ledger.finish_steps(accepted.apply_uid, [make], [StepOutcome(make.key)], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=1)
    protect = written({**document, "protect": True}, fleet="f", path="data")
    carry_out(ledger, [step("volume.update", "v", **protect)])
    row = ledger.read_live().resources[make.resource]
    assert (row.uid, row.generation, row.protected) == (uid, 2, True)
    carry_out(ledger, [step("volume.forget", "v")])
    assert not ledger.read_live().resources


def test_book_says_where_volumes_lie(desk: Desk) -> None:
    """A run that mounts a volume must go to its fleet: the whole book tells which that is."""
    make = step("volume.make", "data", **written({"fleet": "local", "path": "d"}, type="volume"))
    accepted = enter(desk.ledger, plan_of(desk.ledger, [make]))
    desk.ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)
    assert desk.ledger.read_book().volume_fleets == {}
    desk.ledger.finish_steps(accepted.apply_uid, [make], [StepOutcome(make.key)], now_ms=1)
    assert desk.ledger.read_book().volume_fleets == {"data": "local"}
    assert desk.ledger.read_book(()).volume_fleets == {}


def test_volume_that_failed_leaves_no_row(ledger: Ledger) -> None:
    """A volume that was never made is made by the next plan, and not replaced."""
    make = step("volume.make", "v", **written({"fleet": "f", "path": "data"}))
    accepted = enter(ledger, plan_of(ledger, [make]))
    ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)
    ledger.finish_steps(accepted.apply_uid, [make], [StepOutcome(make.key, "no")], now_ms=1)
    assert not ledger.read_live().resources


# -- submitting and changing runs ---------------------------------------------------------


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


def test_resubmission_waits_for_the_earlier(desk: Desk) -> None:
    """Two runs of one name are never placed at once: the later waits until the earlier is over."""
    desk.submit(submit_step("a"))
    desk.place("a")
    (earlier,) = desk.ledger.read_book().runs
    desk.submit(submit_step("a", env={"A": "1"}))
    assert desk.run("a").after_uid == earlier
    assert not desk.place("a")
    desk.ledger.commit_verdicts(
        [(earlier, Finish(RunState.TERMINATED, "given-up", ""))], fence=desk.fence, now_ms=1
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
    assert desk.ledger.request_stop(["a"], who="bert", now_ms=1) == ("a",)
    assert desk.run("a").stop_requested == "removed"
    assert not desk.place("a")


def test_stop_of_a_sweep_is_of_its_elements(desk: Desk) -> None:
    """A sweep's name stands for all its elements that are not over."""
    desk.submit(*(submit_step(f"s[{n}]", parent="s", element=str(n)) for n in range(3)))
    desk.run_to_end("s[1]")
    assert desk.ledger.request_stop(["s"], who="bert", now_ms=1) == ("s[0]", "s[2]")
    assert desk.ledger.request_stop(["s[1]", "nobody"], who="bert", now_ms=1) == ()


def test_rerun_by_request(desk: Desk) -> None:
    """Finished runs run again with the same document; others and tombstones do not."""
    desk.submit(submit_step("a"), submit_step("b"), submit_step("c"))
    old = desk.run_to_end("a", exit_code=1)
    desk.run_to_end("c")
    desk.submit(step("run.archive", "c"))
    assert desk.ledger.request_rerun(["a", "b", "c"], who="bert", now_ms=5) == ("a",)
    new = desk.run("a")
    assert new.uid != old
    assert (new.state, new.template.commands) == (RunState.SUBMITTED, ("true",))
    assert desk.ledger.read_live().resources[run_key("a")].generation == 2


# -- placement ----------------------------------------------------------------------------


def test_single_job_passes_its_commit_point(desk: Desk) -> None:
    """A gang of one is starting as soon as it is reserved, with its generations raised."""
    desk.submit(submit_step("a"))
    before = desk.run("a")
    assert desk.place("a", desk.share(gpus=("GPU-0", "GPU-1"), memory_limited=True))
    run = desk.run("a")
    book = desk.ledger.read_book([run.uid])
    (job,) = book.attempts[run.uid].jobs
    assert book.attempts[run.uid].state is AttemptState.STARTING
    assert (job.state, job.gen, job.boot_id) == (JobState.STARTING, 2, "boot-1")
    assert (job.gpus, job.memory_limited) == (("GPU-0", "GPU-1"), True)
    assert run.generation == before.generation + 1
    (held,) = book.allocations
    assert (held.job_uid, held.cpu_millicores, held.gpus) == (job.uid, 1000, job.gpus)
    live = desk.ledger.read_live().resources[run_key("a")]
    assert live.run is not None
    assert live.run.gpus == 2


def test_gang_is_reserved_whole(two_hosts: Desk) -> None:
    """All ranks are reserved, and none is starting before all are prepared."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2))
    assert desk.place("g", desk.share(0, on=0), desk.share(1, on=1))
    attempt = desk.ledger.read_book().attempts[desk.run("g").uid]
    assert attempt.state is AttemptState.RESERVED
    assert [job.state for job in attempt.jobs] == [JobState.RESERVED] * 2
    assert [job.instance_uid for job in attempt.jobs] == list(desk.instances)


def test_gang_that_misses_leaves_nothing(two_hosts: Desk) -> None:
    """One rank that cannot be reserved leaves the whole gang as it was, and others go on."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2), submit_step("b"))
    wide = desk.share(1, on=1, cpu_millicores=9000)
    before = desk.run("g")
    assert desk.place_all(("g", [desk.share(0), wide]), ("b", [desk.share(0)])) == (False, True)
    assert desk.run("g") == before
    book = desk.ledger.read_book()
    assert len(book.allocations) == 1
    assert {job.state for job in book.attempts[before.uid].jobs} == {JobState.WAITING}


def test_ranks_of_a_gang_go_to_different_hosts(two_hosts: Desk) -> None:
    """Two ranks on one host are no placement, nor is a gang that lacks one."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2))
    assert not desk.place("g", desk.share(0), desk.share(1))
    assert not desk.place("g", desk.share(0))
    assert not desk.place("g", desk.share(0), desk.share(2, on=1))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"instance_generation": 99}, "generation"),
        ({"boot_id": "boot-0"}, "boot"),
        ({"cpu_millicores": 8001}, "cpu"),
        ({"memory_bytes": 65 * GIB}, "memory"),
        ({"disk_bytes": 101 * GIB}, "disk"),
        ({"gpus": ("GPU-9",)}, "unknown gpu"),
        ({"instance_uid": "nobody"}, "unknown instance"),
    ],
)
def test_placement_misses(desk: Desk, change: dict[str, object], why: str) -> None:
    """What the placement believes of its host must be so."""
    desk.submit(submit_step("a"))
    share = desk.share()
    fields = {name: getattr(share, name) for name in share.__slots__}
    assert not desk.place("a", type(share)(**{**fields, **change})), why


def test_units_are_allotted_once(desk: Desk) -> None:
    """A GPU that one job holds is given to another only when its end is proved."""
    desk.submit(submit_step("a"), submit_step("b"))
    share = desk.share(gpus=("GPU-0",))
    assert desk.place_all(("a", [share]), ("b", [share])) == (True, False)
    assert not desk.place("b", share)
    desk.say(desk.record("a", JobState.FINISHED))
    assert desk.place("b", share)


def test_capacity_adds_up_within_a_batch(desk: Desk) -> None:
    """Eight CPUs hold eight jobs of one CPU, however they are handed in."""
    names = [f"r{n}" for n in range(10)]
    desk.submit(*(submit_step(name) for name in names))
    held = desk.place_all(*((name, [desk.share()]) for name in names))
    assert held == (True,) * 8 + (False,) * 2


def test_disk_of_unknown_size_is_not_counted(ledger: Ledger) -> None:
    """A host that reports no size of its disk takes jobs that ask for some, as the scheduler does."""
    desk = Desk.of(ledger)
    seen = hello(desk.instances[0])
    blind = replace(seen, report=replace(seen.report, disk_bytes=0))
    ledger.commit_host(blind, fence=desk.fence, now_ms=desk.now_ms)
    desk.submit(submit_step("a"), submit_step("b"))
    wide = desk.share(disk_bytes=900 * GIB)
    assert desk.place_all(("a", [wide]), ("b", [wide])) == (True, True)


def test_whole_host_takes_one(ledger: Ledger) -> None:
    """On a fleet shared `whole` a second job misses, however small."""
    desk = Desk.of(ledger, sharing="whole")
    desk.submit(submit_step("a"), submit_step("b"))
    assert desk.place("a")
    assert not desk.place("b")


def test_blocks_are_counted(ledger: Ledger) -> None:
    """On a fleet of blocks jobs hold as many as they were given and no more than there are."""
    desk = Desk.of(ledger, sharing="blocks", blocks=4)
    desk.submit(*(submit_step(name) for name in "abc"))
    assert desk.place("a", desk.share(blocks=3))
    assert not desk.place("b", desk.share(blocks=2))
    assert desk.place("c", desk.share(blocks=1))


def test_placement_of_a_changed_run_misses(desk: Desk) -> None:
    """A run that changed since the scheduler saw it is decided anew."""
    desk.submit(submit_step("a"))
    seen = desk.run("a")
    desk.submit(step("run.update", "a", **written({"type": "task", "commands": ["false"]})))
    late = Placement(seen.uid, seen.generation, seen.attempt, (desk.share(),))
    held = desk.ledger.commit_placements([late, late], fence=desk.fence, now_ms=1)
    assert held == (False, False)


def test_leaving_host_takes_no_jobs(two_hosts: Desk) -> None:
    """A host that is to leave the fleet gets no more jobs from the intent on."""
    desk = two_hosts
    desk.submit(submit_step("a"))
    share = desk.share(on=1)
    shrink = fleet_step("local", 1, "fleet.update")
    accepted = enter(desk.ledger, plan_of(desk.ledger, [shrink]))
    desk.ledger.begin_steps(accepted.apply_uid, [shrink], now_ms=1)
    assert not desk.place("a", share)
    assert not desk.place("a", desk.share(on=1))


def test_fence_guards_every_effect(desk: Desk) -> None:
    """Who has been followed by another manager changes nothing any more."""
    desk.submit(submit_step("a"))
    record = desk.record("a", JobState.RUNNING)
    desk.ledger.take_fence(who="next", now_ms=1)
    before = desk.ledger.read_live()
    finish = Finish(RunState.DONE, "", "")
    for attempt in (
        lambda: desk.place("a"),
        lambda: desk.say(record),
        lambda: desk.decide("a", finish),
        lambda: desk.greet(desk.instances[0], boot="boot-2"),
    ):
        with pytest.raises(FenceLost, match="next holds 2"):
            attempt()
    assert desk.ledger.read_live() == before


# -- records ------------------------------------------------------------------------------


def test_job_is_followed_to_its_end(desk: Desk) -> None:
    """What the host says moves job, attempt and run; the end gives back the units."""
    desk.submit(submit_step("a"))
    desk.place("a")
    moved = desk.say(desk.record("a", JobState.RUNNING))
    run = desk.run("a")
    assert (run.state, run.started_at_ms) == (RunState.RUNNING, 9_500)
    assert moved[0].run_uid == run.uid
    assert desk.ledger.read_book().outcomes["a"].started
    desk.say(desk.record("a", JobState.CLEANING))
    assert desk.run("a").state is RunState.FINISHING
    desk.say(desk.record("a", JobState.FINISHED, exit_code=3, log_bytes=7, cpu_time_ms=5))
    book = desk.ledger.read_book()
    (job,) = book.attempts[run.uid].jobs
    assert (job.cause, job.exit_code, job.log_bytes, job.cpu_time_ms) == (Cause.EXITED, 3, 7, 5)
    assert not book.allocations
    desk.finish("a", RunState.FAILED)
    assert desk.ledger.read_book().lingering == (job,)
    desk.ledger.mark_forgotten([job.key])
    assert not desk.ledger.read_book().lingering


def test_records_only_move_forward(desk: Desk) -> None:
    """Late and doubled records change nothing, within a batch and between batches."""
    desk.submit(submit_step("a"))
    desk.place("a")
    running, done = desk.record("a", JobState.RUNNING), desk.record("a", JobState.FINISHED)
    assert len(desk.say(done, running, running)) == 1
    before = desk.ledger.read_live().serial
    assert desk.say(running, done) == ()
    assert desk.ledger.read_live().serial == before


def test_foreign_records_are_not_taken(two_hosts: Desk) -> None:
    """A record without a row, with another uid, or from another host moves nothing."""
    desk = two_hosts
    desk.submit(submit_step("a"))
    desk.place("a")
    own = desk.record("a", JobState.FINISHED)
    other_uid = JobRecord(own.key, "f" * 32, 9, "", JobState.FINISHED, Cause.EXITED, 0)
    unknown = JobRecord(own.key._replace(run_uid="f" * 32), own.job_uid, 9, "", JobState.RUNNING)
    assert desk.say(other_uid, unknown) == ()
    assert desk.say(own, on=1) == ()


def test_host_ahead_of_the_ledger(two_hosts: Desk) -> None:
    """A gang that runs although the ledger only reserved it is taken as it is."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2))
    desk.place("g", desk.share(0), desk.share(1, on=1))
    record = desk.record("g", JobState.RUNNING)
    ahead = JobRecord(record.key, record.job_uid, 7, "", JobState.RUNNING, started_at_ms=5)
    desk.say(ahead)
    attempt = desk.ledger.read_book().attempts[desk.run("g").uid]
    assert attempt.state is AttemptState.STARTING
    assert attempt.jobs[0].gen == 7


def test_cursor_and_rows_change_together(desk: Desk) -> None:
    """The cursor moves forward within a log; a snapshot sets it whatever it was."""

    def commit(cursor: Cursor, *, snapshot: bool = False) -> Cursor | None:
        desk.ledger.commit_records(
            desk.instances[0], (), cursor, snapshot=snapshot, fence=desk.fence, now_ms=1
        )
        return desk.ledger.read_book().instances[0].cursor

    assert commit(Cursor("a", 5)) == Cursor("a", 5)
    assert commit(Cursor("a", 3)) == Cursor("a", 5)
    assert commit(Cursor("a", 3), snapshot=True) == Cursor("a", 3)
    assert commit(Cursor("b", 1)) == Cursor("b", 1)


# -- verdicts -----------------------------------------------------------------------------


def prepared_gang(desk: Desk, name: str = "g") -> None:
    desk.submit(submit_step(name, nodes=2))
    assert desk.place(name, desk.share(0), desk.share(1, on=1))
    for rank in range(2):
        desk.say(desk.record(name, JobState.PREPARED, rank=rank), on=rank)


def test_gang_passes_its_commit_point(two_hosts: Desk) -> None:
    """With all ranks prepared the attempt is starting, and it runs once every rank does."""
    desk = two_hosts
    prepared_gang(desk)
    desk.decide("g", AllPrepared())
    uid = desk.run("g").uid
    attempt = desk.ledger.read_book().attempts[uid]
    assert attempt.state is AttemptState.STARTING
    assert [(job.state, job.gen) for job in attempt.jobs] == [(JobState.STARTING, 3)] * 2
    desk.say(desk.record("g", JobState.RUNNING))
    assert desk.ledger.read_book().attempts[uid].state is AttemptState.STARTING
    assert desk.run("g").state is RunState.RUNNING
    desk.say(desk.record("g", JobState.RUNNING, rank=1), on=1)
    assert desk.ledger.read_book().attempts[uid].state is AttemptState.RUNNING


def test_deadlines_count_from_reservation_and_commit_point(two_hosts: Desk) -> None:
    """An attempt knows when it was reserved and when it passed its commit point."""
    desk = two_hosts
    desk.submit(submit_step("one"))
    desk.place("one")
    (alone,) = desk.ledger.read_book().attempts.values()
    assert (alone.reserved_at_ms, alone.starting_at_ms) == (10_000, 10_000)
    prepared_gang(desk)
    uid = desk.run("g").uid
    reserved = desk.ledger.read_book().attempts[uid]
    assert (reserved.reserved_at_ms, reserved.starting_at_ms) == (10_000, None)
    desk.now_ms = 12_000
    desk.decide("g", AllPrepared())
    started = desk.ledger.read_book().attempts[uid]
    assert (started.reserved_at_ms, started.starting_at_ms) == (10_000, 12_000)


def test_commit_point_needs_all_prepared(two_hosts: Desk) -> None:
    """A verdict that is out of date does not start a gang."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2))
    desk.place("g", desk.share(0), desk.share(1, on=1))
    desk.say(desk.record("g", JobState.PREPARED))
    desk.decide("g", AllPrepared())
    assert desk.ledger.read_book().attempts[desk.run("g").uid].state is AttemptState.RESERVED


def test_commit_point_needs_unchanged_boots(two_hosts: Desk) -> None:
    """A host that was rebooted after it prepared keeps the gang from starting."""
    desk = two_hosts
    prepared_gang(desk)
    told = desk.record("g", JobState.PREPARED)
    desk.greet(desk.instances[0], boot="boot-2", records=(told,))
    desk.decide("g", AllPrepared())
    attempt = desk.ledger.read_book().attempts[desk.run("g").uid]
    assert attempt.state is AttemptState.RESERVED
    assert attempt.jobs[0].cause is Cause.NEVER_STARTED


def test_gang_is_taken_back_before_its_commit_point(two_hosts: Desk) -> None:
    """An attempt that is stopped early is aborting, and its hosts are told."""
    desk = two_hosts
    prepared_gang(desk)
    desk.decide("g", StopGang("prepare-failed", "host 1 has no space"))
    attempt = desk.ledger.read_book().attempts[desk.run("g").uid]
    assert (attempt.state, attempt.cause) == (AttemptState.ABORTING, "prepare-failed")
    assert [(job.stop_wanted, job.gen) for job in attempt.jobs] == [(True, 3)] * 2
    assert len(desk.ledger.read_book().allocations) == 2
    desk.decide("g", StopGang("another", ""))
    assert desk.ledger.read_book().attempts[desk.run("g").uid] == attempt


def test_stop_of_what_no_host_knows(desk: Desk) -> None:
    """Jobs that still wait end at once as never started, and need not be forgotten."""
    desk.submit(submit_step("a"))
    desk.decide("a", StopGang("stopped", "by bert"))
    book = desk.ledger.read_book()
    (job,) = book.attempts[desk.run("a").uid].jobs
    assert (job.state, job.cause, job.forgotten) == ((JobState.FINISHED, Cause.NEVER_STARTED, True))


def test_requeue_writes_the_next_attempt(desk: Desk) -> None:
    """The old attempt ends, the next waits with new jobs; what did not count is counted apart."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.FINISHED, cause=Cause.PREPARE_FAILED, exit_code=None))
    desk.decide("a", Requeue(99_000, "prepare-failed", "no space", counted=False))
    run = desk.run("a")
    assert (run.attempt, run.not_before_ms, run.uncounted) == (2, 99_000, 1)
    assert run.state is RunState.PENDING
    (history,) = desk.ledger.read_runs(["a"])
    first, second = history.attempts
    assert (first.state, first.cause) == (AttemptState.FINISHED, "prepare-failed")
    assert second.state is AttemptState.WAITING
    assert first.jobs[0].uid != second.jobs[0].uid
    assert desk.ledger.read_book().lingering == first.jobs
    assert not desk.place("a")
    desk.now_ms = 99_000
    assert desk.place("a")


def test_requeue_needs_proof_of_death(desk: Desk) -> None:
    """No second attempt is written while a job of the first may run."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    desk.decide("a", Requeue(0, "node-failure", ""))
    assert desk.run("a").attempt == 1


def test_finished_run_with_a_job_that_may_run(desk: Desk) -> None:
    """The run is over, and its job keeps the units and is to be stopped until it is dead."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    desk.finish("a", RunState.TERMINATED, "given-up")
    book = desk.ledger.read_book()
    assert not book.runs
    (job,) = book.lingering
    assert job.stop_wanted
    assert len(book.allocations) == 1
    moved = desk.say(desk.record("a", JobState.FINISHED, cause=Cause.STOPPED))
    assert moved == (job.key,)
    assert not desk.ledger.read_book().allocations


def test_verdict_on_what_is_over_is_dropped(desk: Desk) -> None:
    """A final run stays as it ended."""
    desk.submit(submit_step("a"))
    uid = desk.run_to_end("a")
    before = desk.run("a")
    for verdict in (
        Finish(RunState.FAILED, "x", ""), Requeue(0, "x", ""), StopGang("x", ""), AllPrepared()
    ):  # fmt: skip
        desk.ledger.commit_verdicts([(uid, verdict)], fence=desk.fence, now_ms=1)
    assert desk.run("a") == before


# -- hosts --------------------------------------------------------------------------------


def test_hello_brings_capacity(ledger: Ledger) -> None:
    """Capacity is what the fleet declares, else what the host reports."""
    desk = Desk.of(ledger, local={"cpu": 256_000})
    (instance,) = ledger.read_live().instances
    assert (instance.state, instance.cpu_millicores) == (InstanceState.READY, 256_000)
    assert (instance.memory_bytes, len(instance.gpus)) == (64 * GIB, 4)
    desk.greet(instance.uid)
    assert ledger.read_live().instances[0].generation == instance.generation
    desk.greet(instance.uid, gpus=3)
    assert ledger.read_live().instances[0].generation == instance.generation + 1


def test_reboot_proves_losses(two_hosts: Desk) -> None:
    """What was started under another boot is lost, what was only prepared never started."""
    desk = two_hosts
    desk.submit(submit_step("a"), submit_step("b"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    desk.place("b", desk.share(on=1))
    prepared_gang(desk)
    lost = desk.greet(desk.instances[0], boot="boot-2")
    assert {key.run_uid for key in lost} == {desk.run("a").uid, desk.run("g").uid}
    causes = {
        name: [job.cause for job in desk.ledger.read_runs([name])[0].attempts[0].jobs]
        for name in ("a", "b", "g")
    }
    assert causes == {
        "a": [Cause.LOST],
        "b": [None],
        "g": [Cause.NEVER_STARTED, None],
    }
    assert {one.run_uid for one in desk.ledger.read_book().allocations} == {
        desk.run("b").uid,
        desk.run("g").uid,
    }


def test_result_outlives_the_reboot(desk: Desk) -> None:
    """A job whose end the rebooted host remembers is not lost: the record tells how it ended."""
    desk.submit(submit_step("a"))
    desk.place("a")
    done = desk.record("a", JobState.FINISHED)
    assert desk.greet(desk.instances[0], boot="boot-2", records=(done,)) == ()
    assert desk.greet(desk.instances[0], boot="boot-3", records=None) == ()
    desk.say(done, snapshot=True)
    (history,) = desk.ledger.read_runs(["a"])
    assert history.attempts[0].jobs[0].cause is Cause.EXITED


def test_new_install_remembers_nothing(desk: Desk) -> None:
    """Under a new install id the old jobs are lost, also when the boot is the same."""
    desk.submit(submit_step("a"))
    desk.place("a")
    lost = desk.greet(desk.instances[0], boot="boot-2", install="install-2", records=None)
    assert [key.run_uid for key in lost] == [desk.run("a").uid]


def test_silence_moves_nothing(desk: Desk) -> None:
    """A silent host makes its runs unknown and nothing else; its answer undoes that."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    (uid,) = desk.instances
    desk.ledger.mark_instance(uid, state="unreachable", message="no route", now_ms=1)
    assert desk.run("a").state is RunState.UNKNOWN
    assert len(desk.ledger.read_book().allocations) == 1
    assert desk.ledger.read_live().notes == ("host local-0 is silent: no route",)
    desk.greet(uid)
    assert desk.run("a").state is RunState.RUNNING


def test_suspect_host_takes_no_jobs(desk: Desk) -> None:
    """A suspect host keeps its jobs and gets none, until it is pardoned or says hello again."""
    (host,) = desk.instances
    desk.submit(submit_step("a"), submit_step("b"), submit_step("c"))
    desk.place("a")
    for pardon in (
        lambda: desk.ledger.mark_instance(host, state="ready", message="", now_ms=2),
        lambda: desk.greet(host),
    ):
        desk.ledger.mark_instance(host, state="suspect", message="it fails", now_ms=1)
        (instance,) = desk.ledger.read_live().instances
        assert (instance.state, instance.message) == (InstanceState.SUSPECT, "it fails")
        assert not desk.place("b")
        assert len(desk.ledger.read_book().allocations) == 1
        pardon()
        (instance,) = desk.ledger.read_live().instances
        assert (instance.state, instance.message) == (InstanceState.READY, "")
    assert desk.place("b")


def test_silent_host_is_neither_suspect_nor_pardoned(desk: Desk) -> None:
    """Of a host that is silent only a hello tells that it is ready."""
    (host,) = desk.instances
    desk.ledger.mark_instance(host, state="unreachable", message="no answer", now_ms=1)
    for state in ("suspect", "ready"):
        desk.ledger.mark_instance(host, state=state, message="", now_ms=2)
        (instance,) = desk.ledger.read_live().instances
        assert (instance.state, instance.message) == (InstanceState.UNREACHABLE, "no answer")


def test_terminated_host_is_proof(desk: Desk) -> None:
    """A provider's word that the instance is gone ends its jobs."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.ledger.mark_instance(desk.instances[0], state="terminated", message="spot", now_ms=1)
    (history,) = desk.ledger.read_runs(["a"])
    assert history.attempts[0].jobs[0].cause is Cause.LOST
    assert desk.greet(desk.instances[0]) == ()


# -- reading ------------------------------------------------------------------------------


def test_partial_book(desk: Desk) -> None:
    """A book of some runs has these and no others; one that is over is missing."""
    desk.submit(submit_step("a"), submit_step("b"), submit_step("c"))
    desk.place("b")
    over = desk.run_to_end("a")
    uid = desk.run("b").uid
    part, whole = desk.ledger.read_book([over, uid]), desk.ledger.read_book()
    assert list(part.runs) == [uid]
    assert part.attempts == {uid: whole.attempts[uid]}
    assert part.allocations == whole.allocations
    assert part.lingering == whole.lingering
    assert set(part.outcomes) == {"a", "b"}
    assert part.instances == whole.instances
    nothing = desk.ledger.read_book(())
    assert (nothing.runs, nothing.outcomes, nothing.lingering) == ({}, {}, ())
    assert nothing.instances == whole.instances


def test_serial_counts_what_others_commit(reopen: Callable[[], Ledger]) -> None:
    """The serial to poll changes with another connection's commit and not with our own."""
    mine, other = reopen(), reopen()
    before = mine.serial()
    mine.take_fence(who="me", now_ms=1)
    assert mine.serial() == before
    other.take_fence(who="other", now_ms=1)
    assert mine.serial() != before
    mine.close()
    other.close()


def test_events_are_numbered_and_filtered(desk: Desk) -> None:
    """Events keep their order; a run's are read by its name, a sweep's with its elements'."""
    desk.submit(submit_step("s[1]", parent="s", element="1"), submit_step("sx"))
    said = LoggedEvent("note", 5, "Hello.", run_key("s[1]"), 2, 1, {"a": [1]})
    desk.ledger.append_events([said])
    events = desk.ledger.read_events(run="s")
    assert [event.kind for event in events] == ["run.submitted", "note"]
    assert (events[1].data, events[1].attempt, events[1].rank) == ({"a": [1]}, 2, 1)
    assert desk.ledger.read_events(after=events[0].number, run="s") == events[1:]
    numbers = [event.number for event in desk.ledger.read_events(limit=3)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 3


def test_history_is_for_sweeps_too(desk: Desk) -> None:
    """Runs are read by name, by their sweep's name, or all of them, in order of number."""
    desk.submit(*(submit_step(f"s[{n}]", parent="s", element=str(n)) for n in range(12)))
    desk.submit(submit_step("b"))
    assert [one.run.template.element for one in desk.ledger.read_runs(["s"])] == [
        str(n) for n in range(12)
    ]
    assert [one.run.name for one in desk.ledger.read_runs()][-1] == "b"
    assert desk.ledger.read_runs(["nobody"]) == ()
    assert desk.ledger.read_runs(["b"])[0].commit == "c0ffee"


# -- recovery -----------------------------------------------------------------------------


def test_recovering_ledger_starts_nothing(desk: Desk) -> None:
    """While it recovers, no plan is accepted and nothing is placed; then everything goes on."""
    desk.submit(submit_step("a"))
    desk.ledger.begin_recovery("host x remembers epoch 3")
    live = desk.ledger.read_live()
    assert (live.status, live.notes) == (LedgerStatus.RECOVERING, ("host x remembers epoch 3",))
    assert not desk.place("a")
    with pytest.raises(StalePlan, match="recovering: host x remembers"):
        enter(desk.ledger, plan_of(desk.ledger, [submit_step("b")]))
    assert desk.ledger.raise_epoch(above=3) == 4
    assert desk.ledger.raise_epoch() == 5
    desk.ledger.end_recovery()
    assert desk.ledger.read_live().status is LedgerStatus.READY
    assert desk.place("a")


def test_records_are_adopted_once(desk: Desk) -> None:
    """What a host remembers becomes runs that are over or unknown, and never waiting ones."""
    (host,) = desk.instances
    ended, cut, alive = ("a" * 32, "b" * 32, "c" * 32)
    records = [
        JobRecord(JobKey(*key, 0), f"{n}" * 32, 4, "", JobState.FINISHED, Cause.EXITED, code)
        for n, (key, code) in enumerate([((ended, 1), 1), ((ended, 2), 0), ((cut, 1), 3)])
    ]
    records.append(JobRecord(JobKey(alive, 1, 0), "9" * 32, 4, "", JobState.RUNNING))
    adopted = desk.ledger.adopt_records(host, records, names={ended: "train"}, now_ms=7)
    assert len(adopted) == 4
    assert desk.ledger.adopt_records(host, records, names={}, now_ms=8) == ()
    states = {one.run.name: one.run.state for one in desk.ledger.read_runs()}
    assert states == {
        "train": RunState.DONE,
        f"recovered-{cut[:12]}": RunState.FAILED,
        f"recovered-{alive[:12]}": RunState.UNKNOWN,
    }
    (unknown,) = desk.ledger.read_book().runs
    assert unknown == alive


def test_adoption_keeps_a_run_from_starting_twice(desk: Desk) -> None:
    """An older ledger's waiting job that a host already knows is the host's and waits no more."""
    desk.submit(submit_step("a"), submit_step("b"))
    known = {name: desk.ledger.read_runs([name])[0].attempts[0].jobs[0] for name in "ab"}
    host, later = desk.instances[0], JobKey(known["b"].key.run_uid, 2, 0)
    records = [
        JobRecord(known["a"].key, known["a"].uid, 5, "", JobState.RUNNING, started_at_ms=3),
        JobRecord(later, "9" * 32, 5, "", JobState.FINISHED, Cause.EXITED, 1),
    ]
    assert desk.ledger.adopt_records(host, records, names={}, now_ms=7) == (
        tuple(record.key for record in sorted(records, key=lambda one: one.key))
    )
    assert not desk.place("a")
    assert not desk.place("b")
    first, second = desk.run("a"), desk.run("b")
    assert (first.state, first.attempt) == (RunState.RUNNING, 1)
    assert (second.state, second.attempt) == (RunState.FINISHING, 2)
    desk.finish("b", RunState.FAILED)
    assert desk.run("b").state is RunState.FAILED


# -- snapshot -----------------------------------------------------------------------------


def test_snapshot_sees_what_is_committed(desk: Desk, tmp_path: Path) -> None:
    """The read path gives what the ledger gives, while the ledger is open for writing."""
    desk.submit(submit_step("a"), submit_step("b"))
    snapshot = open_snapshot(tmp_path / "ledger.db", ENVIRONMENT)
    before = snapshot.serial()
    desk.run_to_end("a")
    assert snapshot.serial() != before
    assert snapshot.read_live() == desk.ledger.read_live()
    assert snapshot.read_book() == desk.ledger.read_book()
    assert snapshot.read_runs() == desk.ledger.read_runs()
    assert snapshot.read_events() == desk.ledger.read_events()
    assert snapshot.read_applies() == desk.ledger.read_applies()
    snapshot.close()


def test_hello_of_nobody(desk: Desk) -> None:
    """A hello under a uid that has no row changes nothing."""
    before = desk.ledger.read_live()
    assert desk.ledger.commit_host(hello("f" * 32), fence=desk.fence, now_ms=1) == ()
    assert desk.ledger.read_live() == before
