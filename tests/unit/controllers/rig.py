"""The real manager on simulated hosts, under a virtual clock, for tests that tell a story."""

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
from fleetform.model.run import Run, RunState
from fleetform.plan.planner import plan
from fleetform.plan.serialize import dump, load
from fleetform.spec.desired import Desired
from fleetform.store.opening import ledger_in_memory
from simulation.agent import AgentFaults
from simulation.controller import Lives, VirtualClock
from simulation.host import Host, Script
from simulation.judge import Judge
from simulation.loop import VirtualLoop, run
from simulation.provider import SimulatedHosts
from simulation.scenario import ENVIRONMENT_UID


def pool(nodes: int) -> dict[str, Any]:
    return {
        "nodes": {"min": nodes, "target": nodes, "max": nodes},
        "local": {"cpu": 2000, "memory": 1 << 34},
    }


def machines(count: int) -> dict[str, Any]:
    """A fleet of other machines, with the same hosts as a pool."""
    return {"ssh_config": {"hosts": [{"hostname": f"pool-{number}"} for number in range(count)]}}


def task(**more: Any) -> dict[str, Any]:
    """A run that fills a host."""
    resources = {"cpu": {"min": 2000, "max": 2000}}
    return {"type": "task", "commands": ["true"], "resources": resources, **more}


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
        self.faults = AgentFaults()
        self.world = SimulatedHosts(hosts, source=source, judge=self.judge, faults=self.faults)
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

            async with asyncio.timeout(2 * 3600):
                await self.lives.live(is_over)
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

    def run(self, name: str) -> Run:
        (history,) = self.ledger.read_runs([name])
        return history.run

    def state(self, name: str) -> RunState:
        return self.run(name).state

    def causes(self, name: str) -> list[Cause | None]:
        (history,) = self.ledger.read_runs([name])
        return [job.cause for attempt in history.attempts for job in attempt.jobs]

    def hosts(self) -> dict[str, InstanceState]:
        return {one.name: one.state for one in self.ledger.read_live().instances}
