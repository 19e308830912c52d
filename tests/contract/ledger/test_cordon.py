"""Hosts that somebody has agreed to end take nothing more, whoever decided on it and when."""

from __future__ import annotations

import pytest

from contract.ledgers import (
    Desk,
    carry_out,
    enter,
    fleet_step,
    move_step,
    plan_of,
    step,
    submit_step,
)
from fleetform.model.apply import StepOutcome
from fleetform.model.plan import Step
from fleetform.model.ports import Ledger
from fleetform.model.rollout import LEAVING, RESTING


def wanted(template: str, name: str = "local", strategy: str = "recreate", **more: object) -> Step:
    """The step that makes the fleet of two hosts so."""
    update = {"strategy": strategy, "max_unavailable": 1}
    made = fleet_step(name, 2, "fleet.update", sharing="blocks", update=update, **more)
    made.arguments["template"] = template
    return made


@pytest.fixture
def opened(ledger: Ledger) -> Desk:
    """A fleet of two hosts that answer, of template `one`; `aa` waits."""
    first = fleet_step("local", 2, sharing="blocks", blocks=2)
    first.arguments["template"] = "one"
    carry_out(ledger, [first])
    desk = Desk(ledger, ledger.take_fence(who="test", now_ms=1))
    desk.instances = tuple(one.uid for one in ledger.read_live().instances)
    for uid in desk.instances:
        desk.greet(uid, cpus=8)
    desk.submit(submit_step("aa"))
    return desk


def drained(ledger: Ledger) -> dict[str, str]:
    """Why hosts take nothing, as the scheduler is told."""
    return {one.name: one.drained for one in ledger.read_book().instances if one.drained}


def test_a_host_that_is_to_end_takes_nothing(opened: Desk) -> None:
    """From the entry of the plan, through its step, until the host has gone."""
    ledger, step_ = opened.ledger, wanted("two")
    both = {"local-0": RESTING, "local-1": RESTING}
    accepted = enter(ledger, plan_of(ledger, [step_]))
    assert drained(ledger) == both
    assert not opened.place("aa", opened.share(on=1))
    ledger.begin_steps(accepted.apply_uid, [step_], now_ms=2)
    assert drained(ledger) == both
    assert not opened.place("aa", opened.share(on=1))
    ledger.finish_steps(accepted.apply_uid, [step_], [StepOutcome(step_.key)], now_ms=3)
    ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=3)
    assert drained(ledger) == both
    assert not opened.place("aa", opened.share(on=1))


def test_a_host_of_the_new_template_takes_it(opened: Desk) -> None:
    """The other one is still to go, and this one is what it goes for."""
    ledger = opened.ledger
    carry_out(ledger, [wanted("two")])
    carry_out(ledger, [wanted("one")])
    assert drained(ledger) == {}
    asked = wanted("one")
    asked.arguments["exchange"] = ["local-1"]
    accepted = enter(ledger, plan_of(ledger, [asked]))
    assert drained(ledger) == {"local-1": RESTING}
    assert not opened.place("aa", opened.share(on=1))
    ledger.begin_steps(accepted.apply_uid, [asked], now_ms=2)
    ledger.finish_steps(accepted.apply_uid, [asked], [StepOutcome(asked.key)], now_ms=2)
    assert drained(ledger) == {"local-1": RESTING}
    assert not opened.place("aa", opened.share(on=1))
    assert opened.place("aa", opened.share(on=0))


def test_who_waits_for_work_goes_on_taking_it(opened: Desk) -> None:
    """A host that is exchanged once it is idle rests when its turn comes, and not before."""
    carry_out(opened.ledger, [wanted("two", strategy="drain")])
    assert drained(opened.ledger) == {}
    assert opened.place("aa", opened.share(on=1))


def test_a_plan_that_was_given_up_closes_nothing(opened: Desk) -> None:
    """What it had not done is dropped, and its hosts stay."""
    ledger = opened.ledger
    accepted = enter(ledger, plan_of(ledger, [wanted("two")]))
    ledger.finish_apply(accepted.apply_uid, state="interrupted", summary="", now_ms=2)
    assert drained(ledger) == {}
    assert opened.place("aa", opened.share(on=1))


@pytest.mark.parametrize("hosts", [[], ["main-1"]])
def test_a_fleet_that_is_renamed_first_is_closed_under_both_names(
    opened: Desk, hosts: list[str]
) -> None:
    """Until it is renamed its hosts are called as ever."""
    ledger = opened.ledger
    steps = [move_step("fleet", "local", "main"), wanted("one" if hosts else "two", "main")]
    steps[1].arguments["exchange"] = hosts
    accepted = enter(ledger, plan_of(ledger, steps))
    assert "local-1" in drained(ledger)
    assert not opened.place("aa", opened.share(on=1))
    ledger.finish_steps(accepted.apply_uid, steps[:1], [StepOutcome(steps[0].key)], now_ms=2)
    assert "main-1" in drained(ledger)
    assert not opened.place("aa", opened.share(on=1))


@pytest.mark.parametrize("verb", ["fleet.remove", "fleet.forget"])
def test_a_fleet_that_goes_says_so_to_who_waits(opened: Desk, verb: str) -> None:
    """No fleet would have a run that is placed on a released one."""
    ledger = opened.ledger
    accepted = enter(ledger, plan_of(ledger, [step(verb, "local")]))
    assert drained(ledger) == {"local-0": LEAVING, "local-1": LEAVING}
    assert not opened.place("aa", opened.share(on=1))
    ledger.finish_apply(accepted.apply_uid, state="interrupted", summary="", now_ms=2)
    assert opened.place("aa", opened.share(on=1))
