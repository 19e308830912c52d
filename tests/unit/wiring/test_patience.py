"""Whoever waits for runs is told what they wait for, and let go where that may never come."""

from __future__ import annotations

from fleetform.controllers.mirror import Mirror
from fleetform.model.plan import Plan
from fleetform.model.run import RunState
from fleetform.plan.exit import exit_code_after
from fleetform.simulate.scenario import make_desired
from fleetform.wiring.patience import SILENCE_MS, Patience
from unit.controllers.rig import Rig, pool, task
from unit.plan.trees import fleet, ledger, planned, row, tree
from unit.plan.trees import task as declared

LOCAL, ONE = fleet("local"), declared("one")
MAKES_HOSTS = planned(tree(LOCAL, ONE), ledger())
RUNS_ONLY = planned(tree(LOCAL, ONE), ledger(row(LOCAL)))
NOTHING = Mirror()


class Waiting:
    """Somebody who waits, by a clock that a test sets."""

    def __init__(self, plan: Plan) -> None:
        self.at_ms = 0
        self.notices: list[str] = []
        self.patience = Patience(plan, ending=(), clock=self, notice=self.notices.append)

    def boot_ms(self) -> int:
        return self.at_ms

    def now_ms(self) -> int:
        raise AssertionError("a clock that can be set has nothing to say of how long it was")


def test_a_moment_of_silence_ends_no_apply() -> None:
    """An agent that is started again is back within a second; only long silence is an end."""
    waiting = Waiting(MAKES_HOSTS)
    is_over = waiting.patience.is_over
    assert is_over({"a": RunState.DONE, "b": None}, NOTHING)
    assert not is_over({"a": RunState.DONE, "b": RunState.UNKNOWN}, NOTHING)
    waiting.at_ms = SILENCE_MS
    assert waiting.patience.has_run_out()
    assert is_over({"a": RunState.UNKNOWN}, NOTHING)
    # Whoever was heard of meanwhile is waited for anew.
    assert not is_over({"a": RunState.RUNNING}, NOTHING)
    assert not is_over({"a": RunState.UNKNOWN}, NOTHING)


def test_a_run_without_any_host_is_not_waited_for() -> None:
    """Nothing can start where there is no fleet: said once, and it is over after a while."""
    waiting = Waiting(RUNS_ONLY)
    states = {"a": RunState.SUBMITTED, "b": RunState.PENDING}
    assert not waiting.patience.is_over(states, NOTHING)
    assert not waiting.patience.is_over(states, NOTHING)
    waiting.at_ms = SILENCE_MS
    assert waiting.patience.is_over(states, NOTHING)
    assert waiting.notices == ["no fleet has a host, and a and 1 more wait for one"]
    (message,) = waiting.patience.left_waiting()
    assert "`fleetform plan`" in message


def test_hosts_that_this_plan_makes_are_on_their_way() -> None:
    """That none is there yet says nothing."""
    waiting = Waiting(MAKES_HOSTS)
    for waiting.at_ms in (0, SILENCE_MS):
        assert not waiting.patience.is_over({"a": RunState.SUBMITTED}, NOTHING)
    assert waiting.notices == []


def test_a_silent_host_is_named_and_not_waited_for() -> None:
    """What waits for it, and what depends on that, counts as settled after a while; others not."""
    rig = Rig({"one": 60})
    desired = make_desired(
        pool(1), {"one": task(), "next": task(depends_on={"runs": [{"run": "one"}]})}
    )

    async def story() -> None:
        await rig.apply(desired)
        await rig.until(lambda: rig.state("one") is RunState.RUNNING)
        (instance,) = rig.ledger.read_live().instances
        rig.ledger.mark_instance(instance.uid, state="unreachable", message="off", now_ms=1)
        book = rig.ledger.read_book()
        waiting = Waiting(RUNS_ONLY)
        states = {name: book.outcomes[name].state for name in ("one", "next")}
        assert not waiting.patience.is_over(states, book)
        waiting.at_ms = SILENCE_MS
        assert waiting.patience.is_over(states, book)
        assert waiting.notices == [f"host {instance.name} is silent, and 2 runs wait for an answer"]
        (message,) = waiting.patience.left_waiting()
        assert instance.name in message
        runs = rig.ledger.read_runs()
        assert exit_code_after(rig.plan(desired), (), runs, detached=False) == 4

    rig.play(story())
