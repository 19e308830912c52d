from __future__ import annotations

from fleetform.agents.protocol.states import Cause
from fleetform.model.instance import InstanceState
from fleetform.model.run import RunState
from fleetform.spec.desired import Desired, ResourceKey
from simulation.scenario import make_desired
from unit.controllers.rig import Rig, pool, task

POOL = ResourceKey("fleet", "pool")


def without_fleet(desired: Desired) -> Desired:
    resources = {key: one for key, one in desired.resources.items() if key.kind != "fleet"}
    return Desired(desired.environment, resources)


def test_a_fleet_that_shrinks_is_drained() -> None:
    """The apply does not wait for work in progress, which ends by itself; then its host goes."""
    rig = Rig({"one": 60, "two": 60, "three": 1})
    work = {"one": task(), "two": task()}
    fewer = make_desired(pool(1), {**work, "three": task()})

    async def story() -> None:
        await rig.apply(make_desired(pool(2), work))
        await rig.until(lambda: rig.state("one") == rig.state("two") == RunState.RUNNING)
        assert await rig.apply(fewer) < 10
        again = rig.plan(fewer)
        assert again.is_empty
        assert POOL in again.progressing
        assert rig.hosts() == {
            "pool-0": InstanceState.READY,
            "pool-1": InstanceState.TERMINATING,
        }
        assert (rig.state("one"), rig.state("two")) == (RunState.RUNNING, RunState.RUNNING)
        await rig.until(lambda: len(rig.hosts()) == 1)
        assert "pool-1" not in rig.world.agents
        await rig.until(lambda: rig.state("three") is RunState.DONE)
        assert not rig.plan(fewer).progressing

    rig.play(story())
    assert rig.causes("one") == rig.causes("two") == [Cause.EXITED]
    assert not rig.judge.violations


def test_an_idle_host_goes_before_the_manager_ends() -> None:
    """Whoever drives does not end with a host left behind that nothing runs on."""
    rig = Rig({"one": 1})

    async def story() -> None:
        await rig.apply(make_desired(pool(3), {}))
        await rig.apply(make_desired(pool(1), {}))

    rig.play(story())
    assert rig.hosts() == {"pool-0": InstanceState.READY}
    assert list(rig.world.agents) == ["pool-0"]


def test_the_next_manager_goes_on_draining() -> None:
    """A manager that finds a leaving host with work on it follows that work to its end."""
    rig = Rig({"one": 30, "two": 30})
    work = {"one": task(), "two": task()}

    async def story() -> None:
        await rig.apply(make_desired(pool(2), work))
        await rig.until(lambda: rig.state("one") == rig.state("two") == RunState.RUNNING)
        await rig.apply(make_desired(pool(1), work))
        await rig.kill_manager()
        await rig.until(lambda: len(rig.hosts()) == 1)

    rig.play(story())
    assert rig.causes("one") == rig.causes("two") == [Cause.EXITED]
    assert not rig.judge.violations


def test_a_fleet_that_grows_again_takes_its_host_back() -> None:
    """Work on a leaving host goes on when the host is wanted again, and new work comes to it."""
    rig = Rig({"one": 40, "two": 40, "three": 1})
    work = {"one": task(), "two": task()}

    async def story() -> None:
        await rig.apply(make_desired(pool(2), work))
        await rig.until(lambda: rig.state("one") == rig.state("two") == RunState.RUNNING)
        before = rig.ledger.read_live().instances
        await rig.apply(make_desired(pool(1), work))
        await rig.apply(make_desired(pool(2), {**work, "three": task()}))
        await rig.until(lambda: rig.state("three") is RunState.DONE)
        after = rig.ledger.read_live().instances
        assert [one.uid for one in after] == [one.uid for one in before]
        assert set(rig.hosts().values()) == {InstanceState.READY}

    rig.play(story())
    assert rig.causes("one") == rig.causes("two") == [Cause.EXITED]
    assert not rig.judge.violations


def test_the_removal_of_a_fleet_waits_for_the_ends_it_asked_for() -> None:
    """Runs that the plan stops end as stopped, and not as lost with their hosts."""
    rig = Rig({"one": 1000, "two": 1000})
    whole = make_desired(pool(2), {"one": task(), "two": task()})

    async def story() -> None:
        await rig.apply(whole)
        await rig.until(lambda: rig.state("one") == rig.state("two") == RunState.RUNNING)
        await rig.apply(Desired(whole.environment, {}))
        assert not rig.hosts()
        await rig.until(lambda: rig.state("one") == rig.state("two") == RunState.STOPPED)

    rig.play(story())
    assert rig.causes("one") == rig.causes("two") == [Cause.STOPPED]
    assert not rig.judge.violations


def test_the_removal_of_a_fleet_does_not_wait_for_what_nobody_ends() -> None:
    """A run that stays in the tree is lost with its host: the plan has said so and was allowed."""
    rig = Rig({"one": 1000})
    whole = make_desired(pool(1), {"one": task()})

    async def story() -> None:
        await rig.apply(whole)
        await rig.until(lambda: rig.state("one") is RunState.RUNNING)
        assert await rig.apply(without_fleet(whole)) < 10

    rig.play(story())
    assert rig.causes("one") == [Cause.LOST]


def test_a_host_that_cannot_be_released_is_tried_again() -> None:
    """A release that fails is said, and holds up nothing; it succeeds when the host allows it."""
    rig = Rig({"one": 1})

    async def story() -> None:
        await rig.apply(make_desired(pool(2), {}))
        rig.world.powered["pool-1"] = False
        await rig.apply(make_desired(pool(1), {"one": task()}))
        await rig.until(lambda: rig.state("one") is RunState.DONE)
        assert len(rig.hosts()) == 2
        rig.world.powered["pool-1"] = True
        await rig.until(lambda: len(rig.hosts()) == 1)

    rig.play(story())
