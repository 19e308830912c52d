"""The judge of apply sees what it is for: each test breaks one thing and expects its sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetform.apply.execute import _Execution
from fleetform.checker import check
from fleetform.lifecycle.rollout import Place, next_moves
from fleetform.model.apply import Accepted, Begun
from fleetform.model.rollout import Exchange, Template
from fleetform.plan import planner
from fleetform.plan.blockers import dependency
from fleetform.plan.blockers.budget import hold_beyond_budget
from fleetform.plan.blockers.freeze import hold_in_window, hold_overridden
from fleetform.plan.blockers.protection import hold_destruction, hold_protected, hold_volumes_in_use
from fleetform.plan.drift import correct_drift
from fleetform.plan.kinds import run as runs
from fleetform.plan.reattach import take_back
from fleetform.spec.desired import Rules
from fleetform.store import fleets, overrides, placements, plans, steps, submissions
from fleetform.store import ledger as ledgers
from fleetform.store.database import Database
from simulation import seeds
from simulation.apply.faults import Faults
from simulation.apply.machine import Machine
from simulation.apply.process import Process
from simulation.apply.reach import Reach
from simulation.apply.rule import Rule
from simulation.seeds import play_apply_seed

SEEDS = range(600)

SEED_LIKELY = {
    Rule.ALONE: 17,
    Rule.APPLIED_ONCE: 15,
    Rule.BUDGET: 100,
    Rule.CONVERGED: 35,
    Rule.GIVES_WAY: 58,
    Rule.IN_USE: 46,
    Rule.OVERRIDDEN: 13,
    Rule.PERMITTED: 12,
    Rule.REASON: 83,
    Rule.RECOVERING: 17,
    Rule.RESTING: 29,
    Rule.SEEN: 18,
    Rule.STOPPED: 38,
    Rule.WINDOW: 48,
}
"""The seed that broke a rule when these were written: it is played before all others."""


def finds(rule: Rule) -> bool:
    """Play seeds until one breaks this rule."""
    return any(
        rule.value in sentence
        for seed in (SEED_LIKELY.get(rule, 0), *SEEDS)
        for sentence in play_apply_seed(seed).violations
    )


def without_pass(monkeypatch: pytest.MonkeyPatch, left_out: Callable[..., None]) -> None:
    """Let the planner forget one of its passes, and the second reader be asleep."""
    chain = tuple(one for one in planner._CHAIN if one is not left_out)
    assert len(chain) < len(planner._CHAIN)
    monkeypatch.setattr(planner, "_CHAIN", chain)
    monkeypatch.setattr("simulation.apply.actors.user.check", lambda *_: ())
    monkeypatch.setattr("simulation.apply.actors.user.check_saved", lambda *_: ())


def test_unbroken_there_is_nothing_to_see() -> None:
    """The same seeds are clean as the product is."""
    assert not [one for seed in range(40) for one in play_apply_seed(seed).violations]


def test_a_plan_that_the_second_reader_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that holds no destruction is told by the checker."""
    chain = tuple(one for one in planner._CHAIN if one is not hold_destruction)
    monkeypatch.setattr(planner, "_CHAIN", chain)
    assert check is not None
    assert finds(Rule.CHECKED)


def test_a_plan_of_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that compares no predicate takes in plans of what is there no more."""
    monkeypatch.setattr(plans, "_failure", lambda *_: "")
    monkeypatch.setattr("simulation.apply.actors.user.failing", lambda *_: ())
    monkeypatch.setattr("simulation.apply.actors.user.check_saved", lambda *_: ())
    assert finds(Rule.UNCHANGED)


def test_a_plan_that_is_applied_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that forgets what it carried out does it a second time."""
    real = plans.accept

    def forgetful(transaction: Any, plan: Any, body: bytes, **facts: Any) -> Accepted:
        accepted = real(transaction, plan, body, **facts)
        if accepted.state != "already-applied":
            return accepted
        who, now_ms, ids = facts["who"], facts["now_ms"], facts["ids"]
        return plans._enter(
            transaction, plan, body, who=who, owner=who, now_ms=now_ms, uid=ids.uid()
        )

    monkeypatch.setattr(ledgers, "accept", forgetful)
    monkeypatch.setattr("simulation.apply.actors.user.failing", lambda *_: ())
    monkeypatch.setattr("simulation.apply.actors.user.check_saved", lambda *_: ())
    assert finds(Rule.APPLIED_ONCE)


def test_a_call_without_its_intent(monkeypatch: pytest.MonkeyPatch) -> None:
    """An apply that asks the world before it has written that it will is caught."""

    async def hasty(self: Any, ready: Any, graph: Any) -> int:
        for step in ready:
            if step.verb == "volume.make":
                begun = Begun("0" * 32, "1" * 32)
                await self._try(step, begun)
        return await launch(self, ready, graph)

    launch = _Execution._launch
    monkeypatch.setattr(_Execution, "_launch", hasty)
    assert finds(Rule.INTENDED)


def test_a_call_that_is_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that forgets whose a directory is makes it again for the same operation."""
    real = Machine.make_volume

    def again(self: Machine, operation_uid: str, volume_uid: str, *rest: str) -> None:
        if self.volumes.get(rest[1]) is not None:
            del self.volumes[rest[1]]
        real(self, operation_uid, volume_uid, *rest)

    monkeypatch.setattr(Machine, "make_volume", again)
    assert finds(Rule.ONCE)


def test_a_ledger_that_nobody_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hosts are not asked, one that was put back makes again what there is."""
    monkeypatch.setattr(seeds, "outgrown_by", lambda *_: "")
    assert finds(Rule.RECOVERING)
    assert finds(Rule.ALONE)


def test_what_is_protected_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that does not look at protection is caught by what was applied."""
    without_pass(monkeypatch, hold_protected)
    assert finds(Rule.PROTECTED)


def test_what_was_let_go_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that remembers nothing of what was let go makes a volume where data lies."""
    without_pass(monkeypatch, take_back)
    assert finds(Rule.KEPT)


def test_a_host_that_makes_room_ends_what_runs_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody waits for what is at work on a host that gives way, it is told."""

    def at_once(template: Template, hosts: Iterable[Place]) -> tuple[Exchange, ...]:
        return next_moves(replace(template, strategy="recreate"), hosts)

    monkeypatch.setattr("simulation.apply.exchanges.next_moves", at_once)
    assert finds(Rule.GIVES_WAY)


def test_what_nobody_has_permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that asks nobody is caught by the rules last applied."""
    without_pass(monkeypatch, hold_destruction)
    assert finds(Rule.PERMITTED)


def test_more_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that does not count is caught by the rules last applied."""
    without_pass(monkeypatch, hold_beyond_budget)
    tight = Rules(allow_destroy=True, delete_percent=0, delete_count=0)
    monkeypatch.setattr("simulation.apply.tree._draw_rules", lambda _: tight)
    assert finds(Rule.BUDGET)


def test_a_finished_run_that_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that takes an inherited change for the run's own is caught by what ran."""
    real = runs._re_executed

    def anew(case: Any) -> Any:
        if case.phase is runs.Phase.FINISHED:
            return runs._submitted(case, runs.reasons_of(case.changed))
        return real(case)

    monkeypatch.setattr(runs, "_re_executed", anew)
    monkeypatch.setattr("simulation.apply.actors.user.check", lambda *_: ())
    assert finds(Rule.REASON)


def restless(source: Any, tell: Any) -> Faults:
    """Nothing goes wrong but that processes stand still."""
    return Faults(source, tell, paused=0.2)


def test_whoever_was_taken_over_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a fence in the ledger and a look at the lease, two managers act."""
    real = Database.write
    monkeypatch.setattr(Database, "write", lambda self, **_: real(self))
    monkeypatch.setattr(Process, "require", lambda _: None)
    monkeypatch.setattr("simulation.apply.play.draw_faults", restless)
    assert finds(Rule.FENCED)


def test_what_is_kept_from_beginning_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that looks at no override when it reserves places starts what is stopped."""
    monkeypatch.setattr(placements._Keeper, "of", lambda *_: None)
    assert finds(Rule.OVERRIDDEN)


def test_what_is_stopped_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """An emergency stop that asks for nobody's end is found while it holds."""
    monkeypatch.setattr(overrides, "_end_runs", lambda *_: ())
    assert finds(Rule.STOPPED)


def test_a_freeze_that_nobody_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner and a ledger that overlook a freeze enter plans while it holds."""
    without_pass(monkeypatch, hold_overridden)
    monkeypatch.setattr(plans, "require_permitted", lambda *_: None)
    assert finds(Rule.FROZEN)


def test_a_window_that_nobody_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner and a ledger that overlook windows enter plans while one is open."""
    without_pass(monkeypatch, hold_in_window)
    monkeypatch.setattr(plans, "require_permitted", lambda *_: None)
    assert finds(Rule.WINDOW)


def test_a_takeover_that_nobody_heeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no takeover is seen among the overrides, `serve` goes on beside whoever works by hand."""
    monkeypatch.setattr(seeds, "takeover", lambda *_: None)
    assert finds(Rule.RESTING)


def test_what_is_gone_and_nobody_cares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that is told what has drifted and does nothing about it is found."""
    without_pass(monkeypatch, correct_drift)
    assert finds(Rule.DRIFT)


def test_what_a_run_uses_is_taken_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody looks at runs that go on, a volume goes that one of them has mounted."""

    async def at_once(*_: Any) -> None:
        pass

    without_pass(monkeypatch, hold_volumes_in_use)
    monkeypatch.setattr(dependency, "hold_volumes_in_use", lambda _: None)
    monkeypatch.setattr(plans, "_attached", lambda *_: {})
    monkeypatch.setattr(Reach, "unmounted", at_once)
    assert finds(Rule.IN_USE)


def test_what_leaves_the_tree_runs_on_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked to end, and the name is archived all the same."""
    monkeypatch.setitem(steps._FINISH, "run.stop", lambda *_: None)
    assert finds(Rule.SEEN)


def test_an_apply_without_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """An apply that ends and does not say when is missing in the history."""

    def vague(transaction: Any, uid: str, **_: Any) -> None:
        transaction.execute("UPDATE applies SET state = 'done' WHERE uid = ?", (uid,))
        transaction.execute("UPDATE resources SET operation = '' WHERE operation = ?", (uid,))

    monkeypatch.setattr(ledgers, "finish_apply", vague)
    assert finds(Rule.HISTORY)


def test_a_plan_that_is_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that is not written down is planned again and again."""
    monkeypatch.setattr(submissions, "_write_resource", lambda *_: None)
    monkeypatch.setattr("simulation.apply.play.ROUNDS_MAX", 5)
    assert finds(Rule.CONVERGED)


def test_a_world_that_is_not_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is written off and never released is found."""

    def written_off(transaction: Any, fleet: str, numbers: Any) -> None:
        transaction.many(
            "UPDATE instances SET state = 'terminated' WHERE fleet = ? AND number = ?",
            ((fleet, number) for number in numbers),
        )

    monkeypatch.setattr(fleets, "_leave", written_off)
    # Or the first look at the hosts would have found it, and nothing would go on.
    monkeypatch.setattr(seeds, "outgrown_by", lambda *_: "")
    assert finds(Rule.WORLD)


def test_a_ledger_that_is_not_what_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that overlooks what has left the tree is found when all is said to be done."""
    real = planner.compare_resources

    def blind(draft: Any) -> None:
        draft.present = {key: row for key, row in draft.present.items() if key in draft.wanted}
        real(draft)

    chain = tuple(blind if one is real else one for one in planner._CHAIN)
    monkeypatch.setattr(planner, "_CHAIN", chain)
    monkeypatch.setattr("simulation.apply.actors.user.check", lambda *_: ())
    assert finds(Rule.TREE)


def test_every_rule_has_a_test_here() -> None:
    """A rule that nothing ever broke may be one that nothing can break."""
    text = Path(__file__).read_text(encoding="utf-8")
    assert [rule.name for rule in Rule if f"finds(Rule.{rule.name})" not in text] == []
