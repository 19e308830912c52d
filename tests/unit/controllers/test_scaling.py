"""Fleets that follow demand, through the real manager on simulated hosts that a simulated cloud creates."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fleetform.model.live import FleetOffers
from fleetform.model.plan import Permissions, Plan
from fleetform.model.run import RunState
from fleetform.plan.planner import plan
from fleetform.providers.contract.errors import NoCapacity
from fleetform.providers.contract.hosts import CreatedHost, InstanceRequest
from fleetform.providers.offers.catalogue import Offer
from fleetform.spec.desired import Desired
from simulation.controller import Lives, VirtualClock
from simulation.host import Host, Script
from simulation.provider import SimulatedHosts
from simulation.scenario import make_desired
from unit.controllers.rig import Rig, task

IDLE = 20
OFFER = Offer("aws", "us-east-1", "c5.large", False, 2, "x86", 1 << 34, 0, "", "", 0, 100_000)


def by_demand(least: int = 0, target: int = 0, most: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "nodes": {"min": least, "target": target, "max": most},
        "regions": ["us-east-1"],
        "idle_duration": IDLE,
        "aws": {"account": "123456789012", "ssh_from": ["203.0.113.7/32"]},
        **more,
    }


@dataclass(frozen=True)
class Bought:
    name: str
    uid: str
    at: float


class Cloud(SimulatedHosts):
    """Creates simulated hosts; each call is noted, and lasts `seconds` for the host of that name."""

    bought: list[Bought]
    seconds: dict[str, float]
    refused: set[str]
    released: list[str]

    async def create(self, request: InstanceRequest, _report: object) -> CreatedHost:
        now = asyncio.get_running_loop().time()
        if request.uid not in {one.uid for one in self.bought}:
            self.bought.append(Bought(request.name, request.uid, now))
        await asyncio.sleep(self.seconds.get(request.name, 1.0))
        if request.name in self.refused:
            refusal = NoCapacity(f"instance {request.name}: no capacity")
            refusal.reason = "no capacity"
            raise refusal
        return CreatedHost(f"i-{request.uid[-4:]}", "192.0.2.1")

    async def release(self, request: InstanceRequest) -> None:
        await super().release(request)
        self.released.append(request.name)

    async def secure(self, request: InstanceRequest, pin: object) -> None:
        """Keep the key: nothing listens to keys here."""

    async def preview_release(self, requests: object, created: object) -> tuple[()]:
        return ()

    async def preview(
        self, requests: object, replaced: int = 0, *, emptied: bool = False
    ) -> tuple[()]:
        return ()

    async def listed(self, environment_uid: str, request: object) -> tuple[()]:
        """List nothing: no instance here is unknown to the ledger."""
        return ()

    async def terminate(self, instance: object, report: object) -> None:
        raise AssertionError("an instance that the ledger knows is released")

    async def preview_shared(self, fleet: str, requests: object, shared: object) -> tuple[()]:
        return ()

    async def update_shared(
        self, fleet: str, requests: object, shared: object, report: object
    ) -> None:
        """Update nothing: hosts share nothing here."""

    async def forget_fleet(self, cloud: str, fleet: str) -> None:
        """Forget nothing: nothing is chosen once for a fleet here."""

    async def adopt(self, instances: object, report: object) -> tuple[()]:
        raise AssertionError("the ledger knows all instances")


class CloudRig(Rig):
    """A rig whose hosts are created by a cloud."""

    world: Cloud

    def __init__(self, seconds: Mapping[str, float], hosts: int = 3) -> None:
        super().__init__(seconds)
        machines = {
            f"pool-{number}": Host(
                f"pool-{number}",
                source=self.world._random,
                judge=self.judge,
                cpu_millicores=2000,
                script=lambda job: Script(seconds[job.run_name], 0),
            )
            for number in range(hosts)
        }
        self.world = Cloud(
            machines, source=self.world._random, judge=self.judge, faults=self.faults
        )
        self.world.bought, self.world.released = [], []
        self.world.seconds, self.world.refused = {}, set()
        self.lives = Lives(
            self.ledger, self.world, source=self.world._random, judge=self.judge,
            crash=lambda: self.crash, load_plan=self.lives._load_plan,
        )  # fmt: skip

    def plan(self, desired: Desired) -> Plan:
        live = replace(self.ledger.read_live(), offers={"pool": FleetOffers((OFFER,))})
        permissions = Permissions(allow_destroy=True)
        return plan(desired, live, permissions=permissions, now_ms=VirtualClock().now_ms())

    def names(self) -> list[str]:
        return sorted(self.hosts())


def test_a_burst_is_created_at_once_and_idle_hosts_leave():
    """Fifty runs have fifty hosts created within two seconds; each leaves a while after its job, and no busy one does."""
    runs = {f"r{number}": task() for number in range(50)}
    seconds = dict.fromkeys(runs, 5.0) | {"r0": 60.0}
    rig = CloudRig(seconds, hosts=50)

    async def story() -> None:
        await rig.apply(make_desired(by_demand(most=50), runs))
        applied = asyncio.get_running_loop().time()
        await rig.until(lambda: len(rig.world.bought) == 50)
        assert asyncio.get_running_loop().time() - applied < 2
        assert len({one.endpoint["stack"] for one in rig.ledger.read_book().instances}) == 1
        await rig.until(lambda: len(rig.world.released) == 49)
        assert IDLE < asyncio.get_running_loop().time() - applied < 3 * IDLE
        book = rig.ledger.read_book()
        (busy,) = book.allocations
        assert busy.instance_uid in {one.uid for one in book.instances}
        await rig.until(lambda: len(rig.world.released) == 50)
        assert {rig.state(name) for name in runs} == {RunState.DONE}

    rig.play(story())
    assert not rig.judge.violations
    assert len(rig.world.bought) == 50


def test_the_least_number_stays_and_is_reused():
    """A run that comes later takes the idle host; no other one is created."""
    rig = CloudRig({"a": 5.0, "b": 5.0})
    fleet = by_demand(1, 1, 3)

    async def story() -> None:
        await rig.apply(make_desired(fleet, {"a": task()}))
        await rig.until(lambda: rig.state("a") is RunState.DONE)
        await asyncio.sleep(3 * IDLE)
        assert rig.names() == ["pool-0"]
        await rig.apply(make_desired(fleet, {"a": task(), "b": task()}))
        await rig.until(lambda: rig.state("b") is RunState.DONE)

    rig.play(story())
    assert [one.name for one in rig.world.bought] == ["pool-0"]


def test_a_slow_create_delays_no_release():
    """While one host is being created for an hour, another one becomes idle and is gone."""
    rig = CloudRig({"a": 5.0, "b": 5.0})
    rig.world.seconds["pool-1"] = 3600.0

    async def story() -> None:
        began = asyncio.get_running_loop().time()
        await rig.apply(make_desired(by_demand(), {"a": task(), "b": task()}))
        await rig.until(lambda: len(rig.world.bought) == 2)
        await rig.until(lambda: {rig.state("a"), rig.state("b")} == {RunState.DONE})
        await rig.until(lambda: "pool-0" not in rig.hosts())
        assert asyncio.get_running_loop().time() - began < 300

    rig.play(story())


RETRY = {"retry": {"on": ["no-capacity"], "duration": 3600}}


@pytest.mark.parametrize("more", [{}, RETRY], ids=["once", "retry"])
def test_a_refused_host_is_not_bought_twice(more: Mapping[str, Any]):
    """The run waits and says why; the host is asked for again by the fleet itself if it retries, else by the next apply."""
    rig = CloudRig({"a": 5.0})
    rig.world.refused.add("pool-0")
    desired = make_desired(by_demand(**more), {"a": task()})

    async def story() -> None:
        await rig.apply(desired)
        await asyncio.sleep(30)
        assert rig.names() == ["pool-0"]
        (row,) = rig.ledger.read_book().instances
        assert "no capacity" in row.message
        rig.world.refused.clear()
        if more:
            assert rig.plan(desired).changes == ()
        else:
            await asyncio.sleep(3600)
            assert rig.state("a") is RunState.SUBMITTED
            await rig.apply(desired)
        await rig.until(lambda: rig.state("a") is RunState.DONE)

    rig.play(story())
    assert len(rig.world.bought) == 1


@pytest.mark.parametrize("kills", [1, 4])
def test_controllers_that_are_killed_buy_nothing_twice(kills):
    """However often the controller is killed, a place has one host, and all hosts leave in the end."""
    runs = {f"r{number}": task() for number in range(3)}
    rig = CloudRig(dict.fromkeys(runs, 30.0))

    async def story() -> None:
        await rig.apply(make_desired(by_demand(), runs))
        for _ in range(kills):
            await rig.kill_manager()
            await asyncio.sleep(7)
        await rig.until(lambda: all(rig.state(name) is RunState.DONE for name in runs))
        assert len(rig.world.bought) == 3
        for _ in range(kills):
            await rig.kill_manager()
            await asyncio.sleep(IDLE / 4)
        await rig.until(lambda: not rig.hosts())

    rig.play(story())
    assert not rig.judge.violations
    assert sorted(one.name for one in rig.world.bought) == ["pool-0", "pool-1", "pool-2"]
