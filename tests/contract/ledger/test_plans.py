"""Plans: one is entered once, holds while its predicates do, and is resumed after a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from contract.ledgers import (
    Desk,
    absent,
    carry_out,
    enter,
    fleet_step,
    move_step,
    plan_of,
    run_key,
    step,
    submit_step,
    written,
)
from fleetform.agents.protocol.states import JobState
from fleetform.model.apply import StepOutcome
from fleetform.model.ledger import LedgerStatus
from fleetform.model.plan import ARCHIVED, Kept, Permissions, Plan, Predicate, Step
from fleetform.model.ports import Ledger, StalePlan
from fleetform.model.predicates import AtWork
from fleetform.plan.serialize import sealed
from fleetform.spec.canonical import canonical_json
from fleetform.spec.desired import ResourceKey, Rules


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


def test_a_plan_of_a_file_is_done_once(ledger: Ledger) -> None:
    """One that was kept is not done again, also not when what it did has been undone."""
    making = plan_of(ledger, [fleet_step("f")], absent("fleet", "f"))
    kept = sealed(replace(making, kept=Kept("1" * 32, 1, "me", Permissions())))
    first = enter(ledger, kept)
    assert first.state == "new"
    ledger.begin_steps(first.apply_uid, kept.steps, now_ms=1)
    ledger.finish_steps(first.apply_uid, kept.steps, [StepOutcome(kept.steps[0].key)], now_ms=1)
    ledger.finish_apply(first.apply_uid, state="done", summary="", now_ms=1)
    carry_out(ledger, [step("fleet.remove", "f")])
    again = enter(ledger, kept)
    assert (again.state, again.apply_uid) == ("already-applied", first.apply_uid)
    other = sealed(replace(making, kept=Kept("2" * 32, 1, "me", Permissions())))
    assert enter(ledger, other).state == "new"


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
        (absent("run", "a"), "run/a exists now"),
        (
            Predicate("generation", run_key("a"), "7"),
            "run/a was changed since the plan: its generation is 1, and was 7",
        ),
        (Predicate("generation", run_key("b"), "1"), "run/b no longer exists"),
        (Predicate("run-not-started", run_key("a")), "run/a has started"),
        (Predicate("ledger", None, "other/1"), "the plan was computed from another ledger"),
        (Predicate("sunshine", run_key("a")), "that this release does not know"),
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


def test_another_one_of_the_name_is_not_what_was_planned_for(ledger: Ledger) -> None:
    """A plan kept in a file removes no fleet that was made since, although its first row is alike."""
    carry_out(ledger, [fleet_step("f")])
    (row,) = ledger.read_live().resources.values()
    pin = Predicate("generation", row.key, str(row.generation))
    plan = plan_of(ledger, [step("fleet.remove", "f")], pin)
    plan = replace(plan, changes=(replace(plan.changes[0], uid=row.uid),))
    carry_out(ledger, [step("fleet.remove", "f")])
    carry_out(ledger, [fleet_step("f")])
    assert ledger.read_live().resources[row.key].generation == row.generation
    with pytest.raises(StalePlan, match="fleet/f was replaced by another one of the same name"):
        enter(ledger, plan)


def test_what_is_absent_with_a_result_is_not_run_again(desk: Desk) -> None:
    """A plan that creates a run was made when nobody knew of one: its tombstone speaks against it."""
    desk.submit(submit_step("a"))
    carry_out(desk.ledger, [step("run.archive", "a")])
    creating = plan_of(desk.ledger, [submit_step("a")], absent("run", "a"))
    with pytest.raises(StalePlan, match="run/a has a result now"):
        enter(desk.ledger, creating)
    renaming = Predicate("absent", run_key("a"), ARCHIVED)
    assert enter(desk.ledger, plan_of(desk.ledger, [submit_step("b")], renaming)).state == "new"


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
        with pytest.raises(StalePlan, match="the plan was computed from ledger"):
            enter(ledger, other)
    with pytest.raises(StalePlan, match="for another environment"):
        enter(ledger, replace(plan, environment_fingerprint="f" * 32))


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


@pytest.mark.parametrize(
    ("later", "says"),
    [
        (
            fleet_step("main", 3, "fleet.update"),
            "fleet/main was changed since the plan by apply",
        ),
        (step("fleet.remove", "main"), "fleet/main was changed since the plan by apply"),
        (move_step("fleet", "main", "other"), "fleet/other was renamed since by apply"),
        (submit_step("a"), ""),
    ],
    ids=lambda one: getattr(one, "verb", "") or "",
)
def test_a_half_that_others_went_on_from(ledger: Ledger, later: Step, says: str) -> None:
    """Its other half is refused once somebody has changed what the first half made."""
    carry_out(ledger, [fleet_step("local")])
    steps = [move_step("fleet", "local", "main"), fleet_step("main", 2, "fleet.update")]
    plan = plan_of(ledger, steps, absent("fleet", "main"))
    accepted = enter(ledger, plan)
    ledger.begin_steps(accepted.apply_uid, steps[:1], now_ms=1)
    ledger.finish_steps(accepted.apply_uid, steps[:1], [StepOutcome(steps[0].key)], now_ms=1)
    ledger.begin_steps(accepted.apply_uid, steps[1:], now_ms=1)
    away = [StepOutcome(steps[1].key, "no host answers")]
    ledger.finish_steps(accepted.apply_uid, steps[1:], away, now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="1 failed", now_ms=1)
    carry_out(ledger, [later], now_ms=2)
    if says:
        with pytest.raises(StalePlan, match=says):
            enter(ledger, plan)
    else:
        assert enter(ledger, plan).state == "resumed"


def test_plan_bytes_are_kept(ledger: Ledger) -> None:
    """A plan is read back by its digest, byte for byte."""
    plan = plan_of(ledger, [submit_step("a")])
    ledger.accept(plan, b"\x00the plan", who="anna", now_ms=1)
    assert ledger.read_plan(plan.digest) == b"\x00the plan"
    assert ledger.read_plan("unknown") is None


def test_rules_that_judged_a_plan_are_pinned(ledger: Ledger) -> None:
    """A plan that was judged by some rules is stale once others were applied."""
    judged = Predicate(
        "rules", ResourceKey("environment", "test"), canonical_json(Rules().document())
    )
    plan = plan_of(ledger, [fleet_step("f")], judged)
    carry_out(ledger, [step("rules.set", "test", rules={"delete_count": 0})])
    with pytest.raises(StalePlan, match="has other rules now"):
        enter(ledger, plan)
    carry_out(ledger, [step("rules.set", "test", rules={})])
    assert enter(ledger, plan).state == "new"


def test_rules_last_applied(ledger: Ledger) -> None:
    """The rules in force are those of the last `rules.set`."""
    assert ledger.read_live().rules is None
    rules = {"allow_destroy": True, "delete_percent": 3, "delete_count": 1}
    carry_out(ledger, [step("rules.set", "test", rules=rules)])
    assert ledger.read_live().rules == Rules(True, 3, 1)


@pytest.mark.parametrize("verb", ["fleet.remove", "fleet.forget"])
def test_new_work_on_a_fleet_that_goes(desk: Desk, verb: str) -> None:
    """Who was told of one run's end has agreed to no other's, however late the other began."""
    fleet = ResourceKey("fleet", "local")
    desk.submit(submit_step("a"), submit_step("b"), submit_step("c"))
    assert desk.place("a")
    told = Predicate("at-work", fleet, canonical_json(["a"]))
    plan = plan_of(desk.ledger, [step(verb, "local")], told)
    assert desk.place("b", desk.share())
    with pytest.raises(StalePlan, match="fleet/local has run/b running on it now"):
        enter(desk.ledger, plan)
    assert desk.place("c", desk.share())
    with pytest.raises(StalePlan, match="run/b and 1 more running on it now"):
        enter(desk.ledger, plan)
    all_told = Predicate("at-work", fleet, canonical_json(["a", "b", "c", "over"]))
    plan = plan_of(desk.ledger, [step(verb, "local")], all_told)
    assert enter(desk.ledger, plan).state == "new"


def test_new_work_beside_a_host_that_makes_room(desk: Desk) -> None:
    """Where a single host gives way to another, what begins on the rest of its fleet is free to."""
    desk.submit(submit_step("a"))
    assert desk.place("a")
    (host,) = {one.name for one in desk.ledger.read_live().instances}

    def exchange(of: str) -> Plan:
        nobody = AtWork(frozenset(), frozenset({of})).text
        update = step("fleet.update", "local", **written({}, instances=[], exchange=[of]))
        told = Predicate("at-work", ResourceKey("fleet", "local"), nobody)
        return plan_of(desk.ledger, [update], told)

    with pytest.raises(StalePlan, match="fleet/local has run/a running on it now"):
        enter(desk.ledger, exchange(host))
    assert enter(desk.ledger, exchange(f"{host}-beside")).state == "new"


@pytest.mark.parametrize("verb", ["volume.remove", "volume.snapshot", "volume.forget"])
def test_new_work_with_a_volume_that_goes(desk: Desk, verb: str) -> None:
    """Who begins to use it between plan and apply keeps it; whom the plan ends is no obstacle."""
    mounts = [{"name": "data", "path": "/d"}]
    desk.submit(submit_step("a", volumes=mounts), submit_step("b", volumes=mounts))
    desk.submit(submit_step("other", volumes=[{"name": "else", "path": "/d"}]))
    volume = ResourceKey("volume", "data")

    def removal(*told: str) -> Plan:
        pin = Predicate("unattached", volume, canonical_json(list(told)))
        return plan_of(desk.ledger, [step(verb, "data", path="/data", fleet="local")], pin)

    assert desk.place("other")
    assert desk.place("a", desk.share())
    with pytest.raises(StalePlan, match="volume/data is mounted by the running run/a now"):
        enter(desk.ledger, removal())
    assert desk.place("b", desk.share())
    with pytest.raises(
        StalePlan, match="volume/data is mounted by the running run/a and 1 more now"
    ):
        enter(desk.ledger, removal())
    with pytest.raises(StalePlan, match="volume/data is mounted by the running run/b now"):
        enter(desk.ledger, removal("a"))
    desk.say(desk.record("a", JobState.FINISHED), desk.record("b", JobState.FINISHED))
    desk.finish("a")
    assert enter(desk.ledger, removal("b")).state == "new"
