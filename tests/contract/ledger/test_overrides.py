"""What people put above the tree: in force with the commit, for placements and plans alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.ledgers import (
    Desk,
    absent,
    carry_out,
    enter,
    plan_of,
    prepared_gang,
    run_key,
    step,
    submit_step,
)
from fleetform.agents.protocol.states import JobState
from fleetform.model.override import OverrideKind, is_emergency_end
from fleetform.model.plan import Step
from fleetform.model.ports import Ledger
from fleetform.model.refusals import PolicyRefused

HOUR_MS = 3_600_000


def put(
    desk: Desk, kind: OverrideKind, *targets: str, until_ms: int | None = HOUR_MS
) -> tuple[str, ...]:
    """Put overrides in force; returns the runs whose end was asked for."""
    return desk.ledger.put_overrides(
        kind, targets, reason="smoke", who="ada@node1", now_ms=desk.now_ms, until_ms=until_ms
    ).ending


def test_an_override_is_read_until_it_is_lifted(desk: Desk) -> None:
    """Whoever reads the live state, the book or the overrides finds it; once lifted nobody does."""
    put(desk, OverrideKind.DRAIN, "fleet/a", "host/b")
    found = desk.ledger.read_overrides()
    assert [(one.number, one.target, one.who) for one in found] == [
        (1, "fleet/a", "ada@node1"),
        (2, "host/b", "ada@node1"),
    ]
    assert desk.ledger.read_live().overrides == found == desk.ledger.read_book().overrides
    lifted = desk.ledger.lift_overrides([1], who="bob", now_ms=desk.now_ms)
    assert [one.number for one in lifted] == [1]
    assert desk.ledger.read_overrides() == found[1:]
    past = desk.ledger.read_past_overrides()
    assert [(one.override.number, one.lifted_by) for one in past] == [(2, ""), (1, "bob")]
    assert desk.ledger.read_past_overrides(limit=1) == past[:1]


def test_all_overrides_can_be_read(desk: Desk) -> None:
    """One that is in force for a month is found, however many came and went since."""
    put(desk, OverrideKind.DRAIN, *(f"host/h{number}" for number in range(60)))
    assert len(desk.ledger.read_past_overrides(limit=None)) == 60
    assert len(desk.ledger.read_past_overrides()) == 50


def test_what_is_over_is_not_lifted(desk: Desk) -> None:
    """One whose time is up, or that was lifted, is no longer there to be lifted."""
    put(desk, OverrideKind.PAUSE, until_ms=desk.now_ms + 10)
    assert desk.ledger.lift_overrides(None, who="bob", now_ms=desk.now_ms + 10) == ()
    assert len(desk.ledger.lift_overrides(None, who="bob", now_ms=desk.now_ms)) == 1
    assert desk.ledger.lift_overrides(None, who="bob", now_ms=desk.now_ms) == ()


def test_both_ends_of_an_override_are_events(desk: Desk) -> None:
    """Who put it in force and who lifted it is in the history."""
    put(desk, OverrideKind.FREEZE)
    desk.ledger.lift_overrides(None, who="bob", now_ms=desk.now_ms)
    said = {one.kind: one.message for one in desk.ledger.read_events()}
    assert said["override.put"] == "emergency freeze by ada@node1: smoke"
    assert said["override.lifted"] == "bob lifted the emergency freeze by ada@node1"


def test_a_stop_ends_what_is_at_work_and_keeps_the_rest_waiting(desk: Desk) -> None:
    """A run that has begun is asked to end; one that waits loses nothing and is not placed."""
    desk.submit(submit_step("works"), submit_step("waits"), submit_step("other"))
    assert desk.place("works")
    assert put(desk, OverrideKind.STOP, "run/w*") == ("works",)
    assert is_emergency_end(desk.run("works").stop_requested)
    assert desk.run("waits").stop_requested == ""
    assert not desk.place("waits")
    assert desk.place("other")


def test_a_stop_of_a_gang_reaches_it_before_its_commit_point(two_hosts: Desk) -> None:
    """A gang that has only places is asked to end too, or it would start a moment later."""
    prepared_gang(two_hosts, "gang")
    assert put(two_hosts, OverrideKind.STOP, "run/gang") == ("gang",)


def test_what_is_no_address_is_refused(desk: Desk) -> None:
    """Whoever reads a row has to be able to tell what it means."""
    with pytest.raises(ValueError, match="run/"):
        put(desk, OverrideKind.STOP, "run/")
    assert desk.ledger.read_overrides() == ()


def test_a_sweep_is_stopped_by_its_name(desk: Desk) -> None:
    """The name of a sweep stands for all its elements, and brackets for themselves."""
    desk.submit(
        submit_step("sweep[lr=1]", parent="sweep", element="lr=1"),
        submit_step("sweep[lr=2]", parent="sweep", element="lr=2"),
    )
    put(desk, OverrideKind.STOP, "run/sweep[lr=1]")
    assert not desk.place("sweep[lr=1]")
    assert desk.place("sweep[lr=2]")
    assert put(desk, OverrideKind.STOP, "run/sweep") == ("sweep[lr=2]",)


@pytest.mark.parametrize("target", ["fleet/local", "host/local-0", "host/*-0"])
def test_a_drained_host_takes_no_placement(two_hosts: Desk, target: str) -> None:
    """A placement decided on before the drain misses, by fleet, by name and by pattern."""
    two_hosts.submit(submit_step("a"))
    put(two_hosts, OverrideKind.DRAIN, target)
    assert not two_hosts.place("a", two_hosts.share(on=0))
    assert two_hosts.place("a", two_hosts.share(on=1)) == (target != "fleet/local")


def test_a_pause_holds_until_its_time_is_up(desk: Desk) -> None:
    """Nothing is placed while it holds; afterwards the same placement goes through."""
    desk.submit(submit_step("a"))
    put(desk, OverrideKind.PAUSE, until_ms=desk.now_ms + 1000)
    assert not desk.place("a")
    desk.now_ms += 1000
    assert desk.place("a")


def test_what_runs_is_not_ended_by_a_pause(desk: Desk) -> None:
    """A pause and a drain end nothing: what a host says of its jobs is taken in as ever."""
    desk.submit(submit_step("a"))
    assert desk.place("a")
    assert put(desk, OverrideKind.PAUSE) == ()
    desk.say(desk.record("a", JobState.RUNNING))
    assert desk.run("a").stop_requested == ""


def test_a_freeze_refuses_every_plan(desk: Desk) -> None:
    """No plan is entered while it holds, and nothing of it is written; its author is named."""
    plan = plan_of(desk.ledger, [submit_step("a")], absent("run", "a"))
    put(desk, OverrideKind.FREEZE)
    with pytest.raises(PolicyRefused, match="emergency freeze by ada@node1: smoke"):
        enter(desk.ledger, plan, now_ms=desk.now_ms)
    assert run_key("a") not in desk.ledger.read_live().resources
    desk.ledger.lift_overrides(None, who="bob", now_ms=desk.now_ms)
    assert enter(desk.ledger, plan, now_ms=desk.now_ms).state == "new"


def test_an_apply_that_has_begun_goes_on_under_a_freeze(desk: Desk) -> None:
    """Half a plan would be worse than a whole one: what was entered before is seen through."""
    plan = plan_of(desk.ledger, [submit_step("a")], absent("run", "a"))
    enter(desk.ledger, plan)
    put(desk, OverrideKind.FREEZE)
    assert enter(desk.ledger, plan, now_ms=desk.now_ms).state == "resumed"


def rules_step(**rules: object) -> Step:
    return step("rules.set", "test", rules=rules)


def test_overrides_outlive_the_process(desk: Desk, reopen: object) -> None:
    """They are rows: another process that opens the ledger finds them."""
    put(desk, OverrideKind.PAUSE)
    other: Ledger = reopen()
    try:
        assert [one.kind for one in other.read_overrides()] == [OverrideKind.PAUSE]
    finally:
        other.close()


WINDOW = {"begin": 5, "end": 100, "reason": "holidays"}


def test_a_plan_is_refused_in_a_freeze_window(desk: Desk) -> None:
    """The windows last applied hold what was planned before they opened, and name themselves."""
    carry_out(desk.ledger, [rules_step(freeze=[WINDOW])])
    plan = plan_of(desk.ledger, [submit_step("a")], absent("run", "a"))
    with pytest.raises(PolicyRefused, match="freeze window: holidays; it is open until 1970"):
        enter(desk.ledger, plan, now_ms=99_999)
    assert enter(desk.ledger, plan, now_ms=100_000).state == "new"


def test_a_window_is_not_taken_away_while_it_is_open(desk: Desk) -> None:
    """What loosens a rule is refused in it, what tightens one is not, and a thaw opens it."""
    carry_out(desk.ledger, [rules_step(freeze=[WINDOW])])
    stricter = plan_of(desk.ledger, [rules_step(freeze=[WINDOW], delete_count=1)])
    without = plan_of(desk.ledger, [rules_step(freeze=[])])
    with pytest.raises(PolicyRefused):
        enter(desk.ledger, without, now_ms=10_000)
    accepted = enter(desk.ledger, stricter, now_ms=10_000)
    desk.ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=10_000)
    put(desk, OverrideKind.THAW)
    assert enter(desk.ledger, without, now_ms=10_000).state == "new"


def test_a_window_for_what_destroys_lets_the_rest_through(desk: Desk) -> None:
    """`only: destructive` refuses plans with a destructive change, and no others."""
    carry_out(desk.ledger, [rules_step(freeze=[{**WINDOW, "only": "destructive"}])])
    plan = plan_of(desk.ledger, [submit_step("a")], absent("run", "a"))
    loss = replace(plan, digest="d", changes=(replace(plan.changes[0], destructive=True),))
    with pytest.raises(PolicyRefused):
        enter(desk.ledger, loss, now_ms=10_000)
    assert enter(desk.ledger, plan, now_ms=10_000).state == "new"
