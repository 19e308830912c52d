"""
The provider of simulated hosts: starts agents, connects to them, and drops the line.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from fleetform.agents.client.session import Session, open_session
from fleetform.agents.protocol.messages import Cursor, Hello
from fleetform.providers.contract.errors import PermanentError, TemporaryError
from fleetform.providers.contract.hosts import Host as HostSession
from fleetform.providers.contract.hosts import Identity, InstanceRequest
from fleetform.providers.contract.job_streams import ExecRequest, ExecSession, JobStreams
from fleetform.providers.contract.observed import (
    HostSeen,
    InstanceSeen,
    NeighbourSeen,
    PlaceSeen,
    VolumeSeen,
)
from fleetform.providers.session import SessionHost, translated
from simulation.agent import Agent, AgentFaults
from simulation.host import Host
from simulation.judge import Judge
from simulation.network import Link

DELAY_MAX_SECONDS = 0.05
REPLY_TIMEOUT_SECONDS = 10.0


class SimulatedHosts:
    """Fills `contract.hosts.HostProvider`. `hosts` is the world: no crash of ours touches it."""

    environment_variables: tuple[str, ...] = ()

    def __init__(
        self,
        hosts: dict[str, Host],
        *,
        source: random.Random,
        judge: Judge,
        faults: AgentFaults,
    ) -> None:
        self.hosts = hosts
        self.agents: dict[str, Agent] = {}
        self.powered: dict[str, bool] = dict.fromkeys(hosts, True)
        self.reachable: dict[str, bool] = dict.fromkeys(hosts, True)
        self._random = source
        self._judge = judge
        self._faults = faults

    async def ensure(self, request: InstanceRequest) -> tuple[()]:
        await asyncio.sleep(self._random.uniform(0, DELAY_MAX_SECONDS))
        self._require(request.name)
        agent = self.agents.get(request.name)
        if agent is None or not agent.alive:
            self.agents[request.name] = Agent(
                self.hosts[request.name],
                source=self._random,
                judge=self._judge,
                faults=self._faults,
            )
        return ()

    async def connect(
        self, request: InstanceRequest, identity: Identity, cursor: Cursor | None
    ) -> HostSession:
        hello = Hello(
            identity.environment_uid, identity.ledger_id, identity.epoch, identity.fence, cursor
        )
        session = await self._open(request.name, hello)
        return SessionHost(request.name, session, _seen(request.uid, session, cursor), "/volumes")

    async def look(self, instance: InstanceSeen) -> HostSeen:
        hello = Hello(instance.environment_uid, instance.ledger_id, instance.epoch, 0, look=True)
        session = await self._open(instance.name, hello)
        try:
            return _seen(instance.uid, session, None)
        finally:
            await session.close()

    async def _open(self, name: str, hello: Hello) -> Session:
        self._require(name)
        agent = self.agents.get(name)
        if agent is None or not agent.alive:
            raise TemporaryError(f"no agent on {name}")
        link = Link(self._random, DELAY_MAX_SECONDS)
        agent.accept(link)
        with translated(name):
            return await open_session(
                link.near, link.near, hello, timeout_seconds=REPLY_TIMEOUT_SECONDS
            )

    async def release(self, request: InstanceRequest) -> None:
        await asyncio.sleep(self._random.uniform(0, DELAY_MAX_SECONDS))
        self._require(request.name)
        agent = self.agents.pop(request.name, None)
        if agent is not None and agent.alive:
            agent.kill()
        host = self.hosts[request.name]
        self._judge.require(
            host.now(), not host.running(), f"{request.name} is released and runs {host.running()}"
        )
        host.wipe()

    def _require(self, name: str) -> None:
        if not self.powered[name]:
            raise TemporaryError(f"host {name} is off")
        if not self.reachable[name]:
            raise TemporaryError(f"no route to host {name}")

    async def inventory(self, environment_uid: str) -> Sequence[InstanceSeen]:
        return ()

    async def instances_on(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        return ()

    async def volume_at(self, environment_uid: str, path: str) -> VolumeSeen | None:
        return None  # Simulated hosts have no directories.

    async def observe(self, request: InstanceRequest) -> HostSeen | None:
        agent = self.agents.get(request.name)
        if agent is None or not agent.alive:
            return None
        return await self.look(
            InstanceSeen(request.uid, request.name, request.fleet, "", "", 0, True)
        )

    async def open_exec(self, request: InstanceRequest, command: ExecRequest) -> ExecSession:
        raise PermanentError("jobs of simulated hosts have no processes")

    async def open_streams(self, request: InstanceRequest) -> JobStreams:
        raise PermanentError("jobs of simulated hosts have no processes")

    async def place_at(self, environment_uid: str, path: str) -> PlaceSeen:
        return PlaceSeen(path, exists=False)

    async def volume_around(self, environment_uid: str, path: str) -> NeighbourSeen | None:
        return None

    async def volumes(self, environment_uid: str) -> Sequence[VolumeSeen]:
        return ()

    # -- what the world does to them ----------------------------------------------------------

    def kill_agent(self, name: str) -> None:
        agent = self.agents.get(name)
        if agent is not None and agent.alive:
            agent.kill()

    def cut_power(self, name: str) -> None:
        self.kill_agent(name)
        self.hosts[name].cut_power()

    async def isolate(self, name: str, seconds: float) -> None:
        """Let nothing through to a host for a while; what is on its way, and sent meanwhile, arrives then."""
        self.reachable[name] = False
        agent = self.agents.get(name)
        if agent is not None:
            agent.hold_connections(seconds)
        await asyncio.sleep(seconds)
        self.reachable[name] = True

    def reset_connections(self, name: str) -> None:
        agent = self.agents.get(name)
        if agent is not None:
            agent.reset_connections()


def _seen(instance_uid: str, session: Session, cursor: Cursor | None) -> HostSeen:
    welcome = session.welcome
    told = cursor if welcome.records is None else None
    return HostSeen(
        instance_uid=instance_uid,
        install_id=welcome.install_id,
        boot_id=welcome.boot_id,
        machine_id=welcome.machine_id,
        ledger_id=welcome.ledger_id,
        epoch=welcome.epoch,
        cursor=told or Cursor(welcome.log_id, welcome.newest),
        records=welcome.records,
        report=session.report,
        oldest=welcome.oldest,
        capabilities=welcome.capabilities,
    )
