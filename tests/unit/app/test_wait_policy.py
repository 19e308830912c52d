"""Whoever waits for runs is told what they wait for, and let go where that may never come."""

from __future__ import annotations

from dataclasses import replace

from fleetform.app.wait_policy import SILENCE_MS, UNCREATED_MS, WaitPolicy
from fleetform.controllers.mirror import Mirror
from fleetform.lifecycle.progress import FIRST_BOOT_MS
from fleetform.model.instance import InstanceState
from fleetform.model.run import Run, RunState, RunUid, Template
from fleetform.plan.exit import apply_code
from simulation.scenario import make_desired
from unit.controllers.rig import Rig, pool, task
from unit.views.rows import instance

NOTHING = Mirror()
A_HOST = Mirror(instances=(instance(),))


class Waiting:
    """Somebody who waits, by a clock that a test sets."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.notices: list[str] = []
        self.patience = WaitPolicy(ending=(), clock=self, notice=self.notices.append)

    def boot_ms(self) -> int:
        return self.at_ms

    def now_ms(self) -> int:
        raise AssertionError("a clock that can be set has nothing to say of how long it was")


def test_a_moment_of_silence_ends_no_apply() -> None:
    """An agent that is started again is back within a second; only long silence is an end."""
    waiting = Waiting()
    is_over = waiting.patience.is_over
    assert is_over({"a": RunState.DONE, "b": None}, A_HOST)
    assert not is_over({"a": RunState.DONE, "b": RunState.UNKNOWN}, A_HOST)
    waiting.at_ms = SILENCE_MS
    assert waiting.patience.has_run_out()
    assert is_over({"a": RunState.UNKNOWN}, A_HOST)
    # Whoever was heard of meanwhile is waited for anew.
    assert not is_over({"a": RunState.RUNNING}, A_HOST)
    assert not is_over({"a": RunState.UNKNOWN}, A_HOST)


def test_a_run_without_any_host_is_not_waited_for() -> None:
    """Nothing can start where there is no fleet: said once, and it is over after a while."""
    waiting = Waiting()
    states = {"a": RunState.SUBMITTED, "b": RunState.PENDING}
    assert not waiting.patience.is_over(states, NOTHING)
    assert not waiting.patience.is_over(states, NOTHING)
    waiting.at_ms = SILENCE_MS
    assert waiting.patience.is_over(states, NOTHING)
    assert waiting.notices == ["no fleet has a host, and a and 1 more wait for one"]
    (message,) = waiting.patience.left_waiting()
    assert "`fleetform plan`" in message


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
        waiting = Waiting()
        states = {name: book.outcomes[name].state for name in ("one", "next")}
        assert not waiting.patience.is_over(states, book)
        waiting.at_ms = SILENCE_MS
        assert waiting.patience.is_over(states, book)
        assert waiting.notices == [
            f"host {instance.name} is unreachable, and 2 runs wait for an answer"
        ]
        (message,) = waiting.patience.left_waiting()
        assert instance.name in message
        runs = rig.ledger.read_runs()
        assert apply_code(rig.plan(desired), (), runs) == 3

    rig.play(story())


def test_a_run_that_has_left_the_tree_is_waited_for_by_its_row() -> None:
    """Its name has no outcome any more, and the work goes on all the same."""
    rig = Rig({"one": 60})

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {"one": task()}))
        await rig.until(lambda: rig.state("one") is RunState.RUNNING)
        # As it is right after its document was removed; hosts of this rig end work at once.
        book = replace(rig.ledger.read_book(), outcomes={})
        waiting = Waiting()
        assert not waiting.patience.is_over({"one": None}, book)
        await rig.apply(make_desired(pool(1), {}))
        await rig.until(lambda: not rig.ledger.read_book().runs)
        assert waiting.patience.is_over({"one": None}, rig.ledger.read_book())

    rig.play(story())


SUBMITTED = Run(RunUid("a"), "a", Template("a", "task", ("true",)), RunState.SUBMITTED, 1)
BOOTING = instance(state=InstanceState.PROVISIONING, provider="aws", endpoint={"id": "i-1"})


def test_an_instance_that_boots_is_waited_for_once() -> None:
    """For as long as a first boot takes, which is said before; the end says where its cause is."""
    waiting = Waiting()
    rows = Mirror(runs={SUBMITTED.uid: SUBMITTED}, instances=(BOOTING,))
    states = {"a": RunState.SUBMITTED}
    for waiting.at_ms in (0, FIRST_BOOT_MS - 1):
        assert not waiting.patience.is_over(states, rows)
    assert waiting.notices == [
        "host local-0 has not answered since its creation, and 1 run waits for an answer, for up to 20m00s"
    ]
    waiting.at_ms = FIRST_BOOT_MS
    assert waiting.patience.is_over(states, rows)
    (message,) = waiting.patience.left_waiting()
    assert "`fleetform fleet show local`" in message
    assert "console output of i-1" in message


def test_a_host_that_is_not_created_is_waited_for_until_it_failed_again() -> None:
    """Once it is created, it has the time of a first boot; after a step that failed, that is not waited for."""
    waiting = Waiting()
    failed = replace(BOOTING, endpoint={}, message="throttled")
    states = {"a": RunState.SUBMITTED}
    rows = Mirror(runs={SUBMITTED.uid: SUBMITTED}, instances=(failed,))
    for waiting.at_ms in (0, UNCREATED_MS - 1):
        assert not waiting.patience.is_over(states, rows)
    rows.instances = (BOOTING,)
    waiting.at_ms = UNCREATED_MS
    assert not waiting.patience.is_over(states, rows)
    rows.instances = (failed,)
    assert not waiting.patience.is_over(states, rows, has_failed=True)
    waiting.at_ms += SILENCE_MS
    assert waiting.patience.is_over(states, rows, has_failed=True)
    (message,) = waiting.patience.left_waiting()
    assert message.startswith("host local-0 is not created, and 1 run waits for an answer; ")
    assert "`fleetform why fleet/local`" in message
