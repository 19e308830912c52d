from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from contract.ledgers import CountingIds
from fleetform.agents.protocol.states import Cause
from fleetform.controllers.manager import Manager
from fleetform.model.instance import InstanceState
from fleetform.model.plan import Permissions, Plan
from fleetform.model.run import RunState
from fleetform.plan.file import dump, load
from fleetform.plan.planner import plan
from fleetform.simulate.agent import AgentFaults
from fleetform.simulate.controller import Lives, VirtualClock
from fleetform.simulate.host import Host, Script
from fleetform.simulate.judge import Judge
from fleetform.simulate.loop import VirtualLoop, run
from fleetform.simulate.provider import SimulatedHosts
from fleetform.simulate.scenario import ENVIRONMENT_UID, make_desired
from fleetform.spec.desired import Desired, ResourceKey
from fleetform.store.opening import ledger_in_memory

POOL = ResourceKey("fleet", "pool")


def pool(nodes: int) -> dict[str, Any]:
    return {
        "nodes": {"min": nodes, "target": nodes, "max": nodes},
        "local": {"cpu": 2000, "memory": 1 << 34},
    }


def task(**more: Any) -> dict[str, Any]:
    """A run that fills a host."""
    resources = {"cpu": {"min": 2000, "max": 2000}}
    return {"type": "task", "commands": ["true"], "resources": resources, **more}


def without_fleet(desired: Desired) -> Desired:
    resources = {key: one for key, one in desired.resources.items() if key.kind != "fleet"}
    return Desired(desired.environment, resources)


class Rig:
    """The real manager on simulated hosts `pool-0` to `pool-2`; a run lasts as long as said."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        source = random.Random(7)
        self.crash = 0.0
        self.judge = Judge()
        self.ledger = ledger_in_memory(ENVIRONMENT_UID, CountingIds(), now_ms=0)
        hosts = {
            f"pool-{number}": Host(
                f"pool-{number}",
                source=source,
                judge=self.judge,
                cpu_millicores=2000,
                script=lambda job: Script(seconds[job.run_name], 0),
            )
            for number in range(3)
        }
        self.world = SimulatedHosts(hosts, source=source, judge=self.judge, faults=AgentFaults())
        self.lives = Lives(
            self.ledger,
            self.world,
            source=source,
            judge=self.judge,
            crash=lambda: self.crash,
            load_plan=load,
        )

    def play(self, story: Coroutine[Any, Any, None]) -> None:
        """Tell `story` while a manager lives; it must end, and with it all that was begun."""

        async def main() -> None:
            told = asyncio.create_task(story)

            def is_over(manager: Manager) -> bool:
                return told.done()

            await asyncio.wait_for(self.lives.live(is_over), 3600)
            await told

        run(main(), VirtualLoop())

    def plan(self, desired: Desired) -> Plan:
        return plan(
            desired,
            self.ledger.read_live(),
            permissions=Permissions(allow_destroy=True),
            now_ms=VirtualClock().now_ms(),
        )

    async def apply(self, desired: Desired) -> float:
        """Carry the tree out; returns after how many seconds the apply was done with it."""
        began = asyncio.get_running_loop().time()
        made = self.plan(desired)
        accepted = self.ledger.accept(made, dump(made), who="ada", now_ms=VirtualClock().now_ms())
        self.lives.written_elsewhere()
        await self.until(lambda: self.ledger.unfinished_apply() is None)
        (record, *_) = self.ledger.read_applies()
        assert (record.uid, record.state) == (accepted.apply_uid, "done"), record.summary
        return asyncio.get_running_loop().time() - began

    async def kill_manager(self) -> None:
        """Kill it at its next transaction; another is born."""
        lives, self.crash = self.lives.lives, 1.0
        await self.until(lambda: self.lives.manager is None)
        self.crash = 0.0
        await self.until(lambda: self.lives.lives > lives)

    async def until(self, happened: Callable[[], bool]) -> None:
        while not happened():  # noqa: ASYNC110 -- the ledger tells nobody that it has changed
            await asyncio.sleep(0.1)

    def state(self, name: str) -> RunState:
        (history,) = self.ledger.read_runs([name])
        return history.run.state

    def causes(self, name: str) -> list[Cause | None]:
        (history,) = self.ledger.read_runs([name])
        return [job.cause for attempt in history.attempts for job in attempt.jobs]

    def hosts(self) -> dict[str, InstanceState]:
        return {one.name: one.state for one in self.ledger.read_live().instances}


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
        await rig.until(lambda: rig.state("one") == rig.state("two") == RunState.TERMINATED)

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
