"""Hosts that are exchanged: what is left to do is in the rows, whoever reads them."""

from __future__ import annotations

import pytest

from contract.ledgers import Desk, carry_out, enter, fleet_step, plan_of, submit_step
from fleetform.model.apply import StepOutcome
from fleetform.model.instance import InstanceState
from fleetform.model.override import OverrideKind
from fleetform.model.ports import Ledger
from fleetform.model.rollout import (
    ENDED_TEXTS,
    EXCHANGED_TEXTS,
    RESTING_TEXTS,
    SURGE,
    UNWANTED,
    Exchange,
    Move,
    Template,
)
from fleetform.model.rollout_status import RolloutStatus
from fleetform.store import rollouts


def template(name: str, digest: str, nodes: int = 2, **document: object):
    """The step that makes the fleet so, with the template that a plan gives it."""
    made = fleet_step(name, nodes, "fleet.update", sharing="blocks", **document)
    made.arguments["template"] = digest
    return made


TWO = Template("two", "drain", 2, (0, 1))
"""What the fleet of `opened` wants."""


def exchange(desk: Desk, *moves: Exchange, wanted: Template = TWO) -> None:
    desk.ledger.commit_exchanges("local", wanted, moves, fence=desk.fence, now_ms=desk.now_ms)


def opened(ledger: Ledger) -> Desk:
    """A fleet of two hosts that answer, whose template has changed since."""
    first = fleet_step("local", 2, sharing="blocks", blocks=2)
    first.arguments["template"] = "one"
    carry_out(ledger, [first])
    desk = Desk(ledger, ledger.take_fence(who="test", now_ms=1))
    desk.instances = tuple(one.uid for one in ledger.read_live().instances)
    for uid in desk.instances:
        desk.greet(uid, cpus=8)
    assert ledger.read_book().templates == {}
    carry_out(ledger, [template("local", "two", blocks=4, update={"max_unavailable": 2})])
    return desk


def test_an_outdated_host_keeps_how_it_is_divided(ledger: Ledger) -> None:
    """Jobs hold parts of it; what it has, and how many there are, changes at once."""
    opened(ledger)
    live = ledger.read_live()
    assert [(one.blocks, one.template_digest) for one in live.instances] == [(2, "one")] * 2
    assert live.exchanging == {"local": RolloutStatus(hosts=2, updated=0, waiting=2, busy=0)}
    (found,) = ledger.read_book().templates.values()
    assert found == TWO


def test_a_host_that_was_exchanged_leaves_its_place_behind(ledger: Ledger) -> None:
    """Between the two there is no host, and a controller that starts then knows what is missing."""
    desk = opened(ledger)
    exchange(desk, Exchange(Move.LEAVE, desk.instances[0]))
    ledger.retire(desk.instances[0], fence=desk.fence, now_ms=2)
    assert ledger.read_live().exchanging.keys() == {"local"}
    exchange(desk, Exchange(Move.MAKE, number=0), Exchange(Move.MAKE, number=0))
    made = ledger.read_live().instances[0]
    assert (made.name, made.blocks, made.template_digest) == ("local-0", 4, "two")
    assert made.state is InstanceState.PROVISIONING
    exchange(desk, Exchange(Move.LEAVE, desk.instances[1]))
    ledger.retire(desk.instances[1], fence=desk.fence, now_ms=2)
    exchange(desk, Exchange(Move.MAKE, number=1))
    for one in ledger.read_live().instances:
        desk.greet(one.uid, cpus=8)
    assert ledger.read_live().exchanging == {}
    assert ledger.read_book().templates == {}


def test_a_host_with_work_does_not_leave(ledger: Ledger) -> None:
    """Something was placed there since somebody looked; the one who ends work says so."""
    desk = opened(ledger)
    desk.submit(submit_step("aa"))
    desk.place("aa")
    (busy,) = {one.instance_uid for one in ledger.read_book().allocations}
    exchange(desk, Exchange(Move.LEAVE, busy))
    states = {one.uid: one.state for one in ledger.read_live().instances}
    assert states[busy] is InstanceState.READY
    exchange(desk, Exchange(Move.REST, busy))
    drained = {one.uid: one.drained for one in ledger.read_live().instances}
    assert drained[busy]
    exchange(desk, Exchange(Move.END, busy))
    states = {one.uid: one.state for one in ledger.read_live().instances}
    assert states[busy] is InstanceState.TERMINATING


def test_who_comes_early_takes_the_place(ledger: Ledger) -> None:
    """Under a number of its own until the old one is gone, and not before."""
    desk = opened(ledger)
    exchange(desk, Exchange(Move.MAKE, number=SURGE))
    early = ledger.read_live().instances[-1]
    assert (early.name, early.number) == ("local-0-new", SURGE)
    exchange(desk, Exchange(Move.SETTLE, early.uid, 0))
    assert ledger.read_live().instances[-1].number == SURGE
    exchange(desk, Exchange(Move.LEAVE, desk.instances[0]))
    ledger.retire(desk.instances[0], fence=desk.fence, now_ms=2)
    exchange(desk, Exchange(Move.SETTLE, early.uid, 0))
    first = ledger.read_live().instances[0]
    assert (first.uid, first.name, first.number) == (early.uid, "local-0", 0)


def test_a_quarantine_follows_the_host_that_takes_the_place(ledger: Ledger) -> None:
    """The new host was quarantined before the old one was gone, under a name that it loses."""
    desk = opened(ledger)
    exchange(desk, Exchange(Move.MAKE, number=SURGE))
    early = next(one for one in ledger.read_live().instances if one.number == SURGE)
    ledger.put_overrides(
        OverrideKind.QUARANTINE,
        [f"host/{early.name}"],
        reason="it fails",
        who="x",
        now_ms=1,
        until_ms=None,
    )
    exchange(desk, Exchange(Move.LEAVE, desk.instances[0]))
    ledger.retire(desk.instances[0], fence=desk.fence, now_ms=2)
    exchange(desk, Exchange(Move.SETTLE, early.uid, 0))
    assert [one.target for one in ledger.read_overrides()] == ["host/local-0"]


def test_who_was_to_go_and_gets_the_place_rests_no_more(ledger: Ledger) -> None:
    """It came early for what was taken back, and then the other one had to go after all."""
    desk = opened(ledger)
    exchange(desk, Exchange(Move.MAKE, number=SURGE))
    early = next(one.uid for one in ledger.read_live().instances if one.number == SURGE)
    exchange(desk, Exchange(Move.REST, early), Exchange(Move.LEAVE, desk.instances[0]))
    ledger.retire(desk.instances[0], fence=desk.fence, now_ms=2)
    exchange(desk, Exchange(Move.SETTLE, early, 0))
    (settled,) = [one for one in ledger.read_live().instances if one.uid == early]
    assert (settled.number, settled.drained) == (0, "")


def test_a_rollout_that_an_earlier_release_began_continues(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its texts differ, and they still say whose place is to be filled and who rests no longer."""
    desk = opened(ledger)
    exchange(desk, Exchange(Move.MAKE, number=SURGE))
    early = next(one.uid for one in ledger.read_live().instances if one.number == SURGE)
    with monkeypatch.context() as earlier:
        earlier.setattr(rollouts, "RESTING", RESTING_TEXTS[-1])
        earlier.setattr(rollouts, "EXCHANGED", EXCHANGED_TEXTS[1])
        earlier.setattr(rollouts, "ENDED", ENDED_TEXTS[-1])
        exchange(desk, Exchange(Move.REST, early), Exchange(Move.LEAVE, desk.instances[0]))
        exchange(desk, Exchange(Move.END, desk.instances[1]))
    for uid in desk.instances:
        ledger.retire(uid, fence=desk.fence, now_ms=2)
    exchange(desk, Exchange(Move.SETTLE, early, 0))
    (settled,) = [one for one in ledger.read_live().instances if one.uid == early]
    assert (settled.number, settled.drained) == (0, "")
    desk.greet(early, cpus=8)
    assert ledger.read_live().exchanging.keys() == {"local"}, "the place of local-1 is to be filled"


def test_a_plan_does_not_send_away_who_came_early(ledger: Ledger) -> None:
    """Its number is in no plan; it stands in for one that is."""
    desk = opened(ledger)
    exchange(desk, Exchange(Move.MAKE, number=SURGE))
    carry_out(ledger, [template("local", "two", blocks=4)])
    assert ledger.read_live().instances[-1].state is InstanceState.PROVISIONING


def test_a_single_host_makes_room(ledger: Ledger) -> None:
    """Who was asked for is outdated from then on; the others are not, and the next update keeps it."""
    opened(ledger)
    carry_out(ledger, [template("local", "one", blocks=2)])
    assert ledger.read_book().templates == {}
    asked = template("local", "one", blocks=2)
    asked.arguments["exchange"] = ["local-1"]
    carry_out(ledger, [asked])
    assert ledger.read_book().templates.keys() == {"local"}
    carry_out(ledger, [template("local", "one", blocks=2)])
    by_name = {one.name: one.template_digest for one in ledger.read_live().instances}
    assert by_name == {"local-0": "one", "local-1": UNWANTED}


def test_a_host_leaves_only_once_its_fleets_step_is_done(ledger: Ledger) -> None:
    """The step waits for the hosts that are there: one that left meanwhile would never answer."""
    opened(ledger)
    carry_out(ledger, [template("local", "one", blocks=2)])
    asked = template("local", "one", blocks=2)
    asked.arguments["exchange"] = ["local-1"]
    accepted = enter(ledger, plan_of(ledger, [asked]))
    ledger.begin_steps(accepted.apply_uid, [asked], now_ms=1)
    assert ledger.read_book().templates == {}
    ledger.finish_steps(accepted.apply_uid, [asked], [StepOutcome(asked.key)], now_ms=1)
    assert ledger.read_book().templates.keys() == {"local"}


def test_no_host_is_exchanged_while_its_fleets_step_is_open(ledger: Ledger) -> None:
    """What the step makes has the new template, and the fleet not yet: it has not to go for that."""
    desk = opened(ledger)
    exchange(desk, Exchange(Move.LEAVE, desk.instances[0]))
    ledger.retire(desk.instances[0], fence=desk.fence, now_ms=2)
    other = template("local", "three", blocks=8)
    accepted = enter(ledger, plan_of(ledger, [other]))
    assert ledger.read_book(()).templates == {"local": TWO}
    ledger.begin_steps(accepted.apply_uid, [other], now_ms=3)
    made = ledger.read_live().instances[0]
    assert (made.name, made.template_digest) == ("local-0", "three")
    late = Exchange(Move.LEAVE, made.uid)
    assert ledger.read_book().templates == {}
    exchange(desk, late)
    ledger.finish_steps(accepted.apply_uid, [other], [StepOutcome(other.key)], now_ms=4)
    # Somebody has looked before the step began, and writes after its end.
    exchange(desk, late)
    assert ledger.read_live().instances[0].state is InstanceState.PROVISIONING
    wanted = ledger.read_book().templates["local"]
    exchange(desk, Exchange(Move.LEAVE, desk.instances[1]), wanted=wanted)
    assert ledger.read_live().instances[1].state is InstanceState.TERMINATING


def test_a_fleet_that_goes_gets_no_host(ledger: Ledger) -> None:
    """One was exchanged once, and its place is empty again while the fleet is removed."""
    desk = opened(ledger)
    exchange(desk, Exchange(Move.LEAVE, desk.instances[0]))
    ledger.retire(desk.instances[0], fence=desk.fence, now_ms=2)
    removal = fleet_step("local", 2, "fleet.remove")
    accepted = enter(ledger, plan_of(ledger, [removal]))
    for is_begun in (False, True):
        if is_begun:
            ledger.begin_steps(accepted.apply_uid, [removal], now_ms=3)
        assert ledger.read_book().templates == {}
        exchange(desk, Exchange(Move.MAKE, number=0))
        assert {one.uid for one in ledger.read_live().instances} == {desk.instances[1]}
    ledger.finish_steps(accepted.apply_uid, [removal], [StepOutcome(removal.key)], now_ms=4)
    assert ledger.read_live().instances == ()


def test_work_is_read_with_its_hosts(two_hosts: Desk) -> None:
    """One entry a run and fleet, with what it has on each host added up."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2), submit_step("a"))
    assert desk.place("g", desk.share(0, on=0), desk.share(1, on=1))
    assert desk.place("a", desk.share(on=1))
    work = {one.run: (one.jobs, one.hosts) for one in desk.ledger.read_live().work}
    assert work == {"g": (2, ("local-0", "local-1")), "a": (1, ("local-1",))}
