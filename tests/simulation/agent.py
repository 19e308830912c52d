"""
One life of an agent on a simulated host: the real journal and recovery, between simulated wires.

What the daemon does with a disk, a spawner and sockets is done here with a `Host` and links;
every decision is the journal's own. A life ends at any effect that the seed picks.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Sequence
from typing import Any

from fleetform.agents.host import effects as effect
from fleetform.agents.host import memory
from fleetform.agents.host.journal import Command, Journal
from fleetform.agents.host.recovery import recover
from fleetform.agents.protocol.channels import Credit
from fleetform.agents.protocol.frames import Decoder, Message, encode
from fleetform.agents.protocol.host_report import HostReport
from fleetform.agents.protocol.link import HEARTBEAT_SECONDS
from fleetform.agents.protocol.messages import (
    Acknowledge,
    FollowLog,
    Forget,
    Heartbeat,
    Hello,
    MakeVolume,
    MissingBlobs,
    Prepare,
    Probe,
    RemoveVolume,
    Reply,
    Shutdown,
    SnapshotVolume,
    Start,
    Stop,
    Unknown,
    Welcome,
    to_json,
)
from simulation.host import Directory, Host
from simulation.judge import Judge
from simulation.network import End, Link


class Died(Exception):
    """The agent was killed between two effects."""


class Agent:
    """Alive from its construction until `kill`, a power cut, or a fault of its own."""

    def __init__(
        self, host: Host, *, source: random.Random, judge: Judge, faults: AgentFaults
    ) -> None:
        self.alive = True
        self._host = host
        self._random = source
        self._judge = judge
        self._faults = faults
        self._links: list[Link] = []
        self._manager: End | None = None
        self._tasks: list[asyncio.Task[None]] = []
        known = memory.restore(host.entries())
        if not known.install_id:
            known.install_id, known.machine_id = host.install_id, host.name
            self._persist([memory.of_identity(known)])
        log_id = f"{host.name}-log-{source.getrandbits(40):010x}"
        self._journal = Journal(known, boot_id=host.boot_id, log_id=log_id, version="simulated")
        host.on_end = self._supervisor_ended
        self._run(recover(self._journal, host.found(), boot_id=host.boot_id, now_ms=host.now_ms()))

    # -- lives and connections --------------------------------------------------------------------

    def accept(self, link: Link) -> None:
        self._links.append(link)
        self._start(self._serve(link))
        self._start(self._beat(link))

    def kill(self) -> None:
        """`kill -9`: connections end, tasks stop, what was appended stays on the disk."""
        self.alive = False
        self._host.on_end = None
        for link in self._links:
            link.reset()
        for task in self._tasks:
            task.cancel()

    def reset_connections(self) -> None:
        for link in self._links:
            link.reset()
        self._links.clear()

    def hold_connections(self, seconds: float) -> None:
        for link in self._links:
            link.hold(seconds)

    async def _beat(self, link: Link) -> None:
        while link.is_open:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            self._say(link.far, Heartbeat(self._host.boot_ms()))

    async def _serve(self, link: Link) -> None:
        decoder = Decoder()
        end = link.far
        while data := await end.read(1 << 20):
            for message in decoder.feed(data):
                assert not isinstance(message, Unknown), message
                # A message may be doubled by somebody who asks again; the answer must not differ.
                again = self._random.random() < self._faults.doubled
                for _ in range(2 if again and not isinstance(message, Hello) else 1):
                    try:
                        self._take(end, message)
                    except Died:
                        self.kill()
                        return

    def _take(self, end: End, message: Message) -> None:
        if isinstance(message, Hello):
            answer, effects = self._journal.hello(message)
            self._carry_out(effects, end)
            self._say(end, answer)
            if isinstance(answer, Welcome):
                self._say(end, Heartbeat(self._host.boot_ms()))
                if self._manager is not None and self._manager is not end:
                    self._manager.close()
                self._manager = end
                for event in self._journal.news_for(message):
                    self._say(end, event)
        elif isinstance(message, (Prepare, Start, Stop, Forget, Acknowledge)):
            self._command(end, message)
        elif isinstance(message, Probe):
            self._say(end, Reply(message.id, True, body={"host": to_json(self._report())}))
        elif isinstance(message, MissingBlobs):
            self._say(end, Reply(message.id, True, body={"missing": []}))
        elif isinstance(message, (MakeVolume, RemoveVolume, SnapshotVolume, Shutdown)):
            self._say(end, Reply(message.id, True))
        elif isinstance(message, Heartbeat):
            if end is self._manager and message.at_ms <= self._host.boot_ms():
                self._host.contact_ms = max(self._host.contact_ms, message.at_ms)
        else:
            assert isinstance(message, (FollowLog, Credit)), message

    def _command(self, end: End, command: Command) -> None:
        if end is not self._manager:
            return  # An old connection that delivers late: nobody listens to it any more.
        self._carry_out(self._journal.handle(command, self._host.now_ms()), end)

    def _say(self, end: End, message: Message) -> None:
        end.write(encode(message))

    # -- effects ------------------------------------------------------------------------------------

    def _run(self, effects: Sequence[effect.Effect]) -> None:
        """Carry out what an observation led to; the agent may die of it."""
        try:
            self._carry_out(effects, self._manager)
        except Died:
            self.kill()

    def _carry_out(self, effects: Sequence[effect.Effect], end: End | None) -> None:
        for one in effects:
            if self._random.random() < self._faults.crash:
                self._judge.fault(
                    self._host.now(),
                    "agent crash",
                    f"{self._host.name} before {type(one).__name__}",
                )
                raise Died
            if isinstance(one, effect.Persist):
                self._persist([one])
            elif isinstance(one, effect.Send):
                if end is not None:
                    self._say(end, one.reply)
            elif isinstance(one, effect.Announce):
                if self._manager is not None:
                    self._say(self._manager, one.event)
            elif isinstance(one, effect.StartPreparing):
                self._start(self._prepare(one))
            elif isinstance(one, effect.StartSupervisor):
                self._start_supervisor(one.job_uid)
            elif isinstance(one, effect.SignalStop):
                self._signal(one)
            elif isinstance(one, effect.KillLeftovers):
                self._start(self._clear(one.job_uid))
            elif isinstance(one, effect.RemoveJobDirectory):
                self._remove(one.job_uid)
            else:
                assert isinstance(one, effect.WatchSupervisor), one
                # `on_end` tells of every supervisor, whoever has started it.

    def _persist(self, entries: Sequence[effect.Persist]) -> None:
        for entry in entries:
            self._host.append(entry.entry, sync=entry.sync)

    async def _prepare(self, order: effect.StartPreparing) -> None:
        job = order.job
        directory = Directory(job, order.digest)
        self._host.directories[job.job_uid] = directory
        await asyncio.sleep(self._random.uniform(0, self._faults.prepare_seconds))
        if self._random.random() < self._faults.cannot_prepare:
            self._judge.fault(self._host.now(), "no space", str(job.key))
            self._run(
                self._journal.prepare_failed(
                    job.job_uid, "no space left on the host", self._host.now_ms()
                )
            )
            return
        directory.complete = True
        self._judge.prepared(job.key)
        self._run(self._journal.prepared(job.job_uid))

    def _start_supervisor(self, job_uid: str) -> None:
        if not self._host.start_supervisor(job_uid):
            message = "the job's directory is not there"
            self._run(self._journal.supervisor_refused(job_uid, message, self._host.now_ms()))
            return
        self._run(self._journal.supervisor_started(job_uid, self._host.now_ms()))

    def _signal(self, order: effect.SignalStop) -> None:
        directory = self._host.directories.get(order.job_uid)
        if directory is not None:
            directory.cause = order.cause
            directory.stop.set()

    async def _clear(self, job_uid: str) -> None:
        await asyncio.sleep(self._random.uniform(0, 0.1))
        self._run(self._journal.lost(job_uid, "its supervisor has died", 0, self._host.now_ms()))

    def _remove(self, job_uid: str) -> None:
        directory = self._host.directories.get(job_uid)
        assert directory is None or not directory.held, "a running job's directory is removed"
        self._host.directories.pop(job_uid, None)

    def _supervisor_ended(self, job_uid: str) -> None:
        directory = self._host.directories.get(job_uid)
        if not self.alive or directory is None or directory.held:
            return
        if directory.result is not None:
            self._run(self._journal.supervisor_ended(directory.result))
        else:
            self._run(self._journal.supervisor_vanished(job_uid))

    def _report(self) -> HostReport:
        return HostReport(
            hostname=self._host.name,
            cpu_millicores=self._host.cpu_millicores,
            memory_bytes=1 << 36,
            disk_bytes=1 << 40,
            disk_free_bytes=1 << 40,
            memory_free_bytes=1 << 36,
            load_1m_milli=0,
            gpus=self._host.gpus,
            python="",
            kernel="",
        )

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks.append(asyncio.create_task(work))


class AgentFaults:
    """How often what goes wrong, as shares of 1; all 0 once faults have ended."""

    def __init__(self) -> None:
        self.crash = 0.0
        self.doubled = 0.0
        self.cannot_prepare = 0.0
        self.prepare_seconds = 0.2

    def end(self) -> None:
        self.crash = self.doubled = self.cannot_prepare = 0.0
