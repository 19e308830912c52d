"""
The world as one process reaches it: `apply.host_access.HostAccess`, and what a rebuild asks of a provider.

Each call may be lost on its way or on its way back, delivered twice, or late: after its caller has
given up, or died.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleetform.agents.protocol.messages import Reply
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.ports import Clock, Ledger
from fleetform.model.rollout import ENDED
from fleetform.model.volume import mounted_volumes
from fleetform.providers.contract.errors import PermanentError, ProviderError, TemporaryError
from fleetform.providers.contract.hosts import Identity, InstanceRequest
from fleetform.providers.contract.observed import HostSeen, InstanceSeen, PlaceSeen, VolumeSeen
from simulation.apply.machine import SimulatedHost
from simulation.apply.process import Process

__all__ = ["Reach", "Session"]

DELAY_SECONDS = 0.05
LATE_SECONDS = 5.0

ENDS_ROUNDS = 40
"""How often ends are looked after before a step gives up: what still goes on then may do so for long."""


@dataclass(slots=True)
class Session:
    """An open session with one host; the part of `providers.contract.hosts.Host` that apply uses."""

    seen: HostSeen
    reach: Reach
    host: SimulatedHost
    number: int

    def volume_path(self, path: str) -> str:
        return path

    async def make_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, *, take: str = "any"
    ) -> Reply:
        machine = self.reach.process.room.machine
        return await self._command(
            "volume.make",
            lambda: machine.make_volume(operation_uid, volume_uid, name, path, take),
        )

    async def remove_volume(
        self, operation_uid: str, volume_uid: str, path: str, *, delete_data: bool
    ) -> Reply:
        assert delete_data, "apply forgets what it does not delete"
        machine = self.reach.process.room.machine
        return await self._command(
            "volume.remove", lambda: machine.remove_volume(operation_uid, volume_uid, path)
        )

    async def snapshot_volume(
        self, operation_uid: str, volume_uid: str, _name: str, path: str, into: str
    ) -> Reply:
        machine = self.reach.process.room.machine
        return await self._command(
            "volume.snapshot",
            lambda: machine.snapshot_volume(operation_uid, volume_uid, path, into),
        )

    async def close(self) -> None:
        """Nothing is held open."""

    async def _command(self, name: str, effect: Callable[[], None]) -> Reply:
        try:
            await self.reach.call(name, effect, heard=self.is_heard)
        except PermanentError as refusal:
            return Reply(0, ok=False, code="conflict", message=str(refusal))
        return Reply(0, ok=True)

    def is_heard(self) -> bool:
        """An agent listens to its newest session only."""
        there = self.reach.process.room.machine.hosts.get(self.host.uid)
        return there is self.host and self.host.session == self.number


class Reach:
    """Implements `apply.host_access.HostAccess` for a process that has taken `identity.fence`."""

    def __init__(self, process: Process, ledger: Ledger, clock: Clock, identity: Identity) -> None:
        self.process = process
        self._ledger = ledger
        self._clock = clock
        self._identity = identity
        self.sessions: dict[str, Session] = {}
        self.before_departure: Callable[[], object] = lambda: None

    @property
    def fence(self) -> int:
        return self._identity.fence

    @property
    def environment_uid(self) -> str:
        return self._identity.environment_uid

    async def instances(self, fleet: str) -> Sequence[Instance]:
        return self.process.room.disk.instances(fleet)

    async def is_exchanging(self, fleet: str) -> bool:
        # Here hosts are exchanged between applies and not beside them.
        return False

    async def reach_some(self, instances: Sequence[Instance]) -> dict[str, object]:
        return {one.uid: await self.reach(one) for one in instances}

    async def reach(self, instance: Instance) -> Session:
        session = self.sessions.get(instance.uid)
        if session is not None and session.is_heard():
            return session
        machine = self.process.room.machine
        request = InstanceRequest(instance.uid, instance.name, instance.fleet, {})
        # Who makes instances is proved dead before another does, so nothing comes late.
        await self.call("instance.make", lambda: machine.ensure(request), heard=None)
        seen = await self.hello(instance.uid, self._identity)
        await self.process(
            lambda: self._ledger.commit_host(
                seen, fence=self._identity.fence, now_ms=self._clock.now_ms()
            )
        )
        return self.sessions[instance.uid]

    async def hello(self, uid: str, identity: Identity) -> HostSeen:
        machine = self.process.room.machine
        seen: list[HostSeen] = []
        await self.call("hello", lambda: seen.append(machine.hello(uid, identity)), heard=None)
        host = machine.hosts[uid]
        self.sessions[uid] = Session(seen[-1], self, host, host.session)
        return seen[-1]

    async def depart(self, instance: Instance) -> None:
        self.before_departure()
        machine = self.process.room.machine
        await self.call("instance.release", lambda: machine.release(instance.uid), heard=None)
        self.sessions.pop(instance.uid, None)
        await self.process(
            lambda: self._ledger.retire(
                instance.uid, fence=self._identity.fence, now_ms=self._clock.now_ms()
            )
        )

    async def unmounted(self, volume: str, fleet: str) -> None:
        """Bring ends about until nobody at work has it mounted."""
        for _ in range(ENDS_ROUNDS):
            self.before_departure()
            rows = self.process.room.disk.ask(
                "SELECT r.name, r.document, r.final = 1 OR r.stop_requested <> '' OR j.stop_wanted = 1"
                " OR j.attempt <> r.attempt FROM jobs j JOIN runs r ON r.uid = j.run_uid"
                " WHERE j.instance_uid <> '' AND j.state <> 'finished'"
            )
            users = [(name, ends) for name, text, ends in rows if volume in mounted_volumes(text)]
            if not users:
                return
            if on := [name for name, ends in users if not ends]:
                raise PermanentError(f"run/{on[0]} is at work with it mounted")
            await asyncio.sleep(DELAY_SECONDS)
        raise PermanentError("nobody can tell whether they have ended")

    def ends_asked(self) -> None:
        """Ends are brought about before hosts depart, and before volumes go."""

    async def let_leave(self) -> None:
        """Release what is leaving its fleet and has nothing on it any more."""
        disk = self.process.room.disk
        free = disk.ask(
            "SELECT i.uid, i.fleet FROM instances i WHERE i.state = 'terminating'"
            " AND (i.message = ? OR NOT EXISTS"
            " (SELECT 1 FROM allocations a WHERE a.instance_uid = i.uid) AND NOT EXISTS"
            " (SELECT 1 FROM jobs j WHERE j.instance_uid = i.uid AND j.state <> 'finished'))"
            " ORDER BY i.name",
            (ENDED,),
        )
        # A host that is gone ends whatever it had: its provider says so.
        inventory = self.process.room.machine.hosts
        gone = disk.ask("SELECT uid, fleet FROM instances WHERE state = 'terminating'")
        free = [*free, *(row for row in gone if row[0] not in inventory and row not in free)]
        for uid, fleet in free:
            for instance in disk.instances(fleet):
                if instance.uid == uid and instance.state is InstanceState.TERMINATING:
                    with contextlib.suppress(ProviderError):
                        await self.depart(instance)

    # -- what a rebuild asks ----------------------------------------------------------------

    async def inventory(self, environment_uid: str) -> Sequence[InstanceSeen]:
        return self.process.room.machine.inventory(environment_uid)

    async def look(self, instance: InstanceSeen) -> HostSeen:
        machine = self.process.room.machine
        return machine.see(machine.hosts[instance.uid])

    async def observe(self, request: InstanceRequest) -> HostSeen | None:
        """See a host, or hear nothing of it."""
        faults = self.process.room.faults
        await asyncio.sleep(faults.source.random() * DELAY_SECONDS)
        host = self.process.room.machine.hosts.get(request.uid)
        if host is None or faults.happens(faults.lost_requests):
            return None
        return self.process.room.machine.see(host)

    async def place_at(self, environment_uid: str, path: str) -> PlaceSeen:
        await asyncio.sleep(self.process.room.faults.source.random() * DELAY_SECONDS)
        return self.process.room.machine.place_at(environment_uid, path)

    async def volumes(self, environment_uid: str) -> Sequence[VolumeSeen]:
        return self.process.room.machine.marked_volumes()

    async def connect(
        self, request: InstanceRequest, identity: Identity, cursor: object
    ) -> Session:
        await self.hello(request.uid, identity)
        return self.sessions[request.uid]

    async def volume_at(self, environment_uid: str, path: str) -> VolumeSeen | None:
        return self.process.room.machine.volume_at(path)

    # -- the network ------------------------------------------------------------------------

    async def call(
        self, name: str, effect: Callable[[], object], *, heard: Callable[[], bool] | None
    ) -> None:
        """
        Have something done in the world.

        Args:
            name: Of the call, for whoever counts where processes die.
            effect: What the other side does, at one moment; it may raise `ProviderError`.
            heard: Whether the other side still listens to this caller. None: nothing comes late.
        """
        process = self.process
        faults, judge = process.room.faults, process.room.judge
        await process.stand_still()
        process.pass_point("before a call", name)
        process.require()
        await asyncio.sleep(faults.source.random() * DELAY_SECONDS)
        if heard is None:
            # Whoever makes or ends instances is proved dead before another one does.
            process.check_alive()
        if faults.happens(faults.lost_requests):
            judge.fault(judge.now, "request lost", process.name)
            raise TemporaryError("no answer")
        if heard is not None and faults.happens(faults.late):
            judge.fault(judge.now, "request late", process.name)
            loop = asyncio.get_running_loop()
            loop.call_later(faults.source.random() * LATE_SECONDS, _deliver_late, effect, heard)
            # The caller may die before it hears of the time it has waited for nothing.
            await asyncio.sleep(faults.source.random() * LATE_SECONDS)
            process.pass_point("after a call", name)
            raise TemporaryError("no answer in time")
        if faults.happens(faults.refused):
            judge.fault(judge.now, "refused", process.name)
            raise PermanentError("the host refuses")
        if heard is not None and not heard():
            raise TemporaryError("the session was closed")
        self._judge_fence()
        effect()
        if faults.happens(faults.doubled):
            judge.fault(judge.now, "doubled", process.name)
            effect()
        process.pass_point("after a call", name)
        if faults.happens(faults.lost_replies):
            judge.fault(judge.now, "reply lost", process.name)
            raise TemporaryError("no answer")

    def _judge_fence(self) -> None:
        """
        Whoever causes something is the newest manager; a successor has a higher fence.

        What a process had sent before it died is the host's to hear or not.
        """
        if self.fence and not self.process.dead:
            ((newest,),) = self.process.room.disk.ask("SELECT fence FROM meta")
            self.process.room.judge.managed(self.process.name, self.fence, newest)


def _deliver_late(effect: Callable[[], object], heard: Callable[[], bool]) -> None:
    # Nobody is left who would hear that it was refused.
    if heard():
        with contextlib.suppress(ProviderError):
            effect()
