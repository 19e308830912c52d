"""A provider with a state of its own, and somebody who listens to its hosts."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import select
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

from fleetform.agents.protocol.messages import Cursor, Event, JobKey, JobRecord, LogData, StartJob
from fleetform.agents.protocol.states import JobState
from fleetform.providers.contract.hosts import Host, HostProvider, Identity, InstanceRequest
from fleetform.providers.contract.job_streams import ExecRequest, ExecSession
from fleetform.providers.local.hosts import LocalHosts

ENVIRONMENT = "e" * 32
WAIT_SECONDS = 30.0

_numbers = itertools.count()


class Site(Protocol):
    """What a provider's fixture gives to the suite."""

    provider: HostProvider
    folder: Path
    """On the hosts of this site, and empty: where a test may look and lay things."""

    def kill_agent(self, name: str) -> None:
        """End an instance's agent without warning; its jobs go on."""

    async def close(self) -> None:
        """End all that the site started."""


class LocalSite:
    def __init__(self, folder: Path) -> None:
        self.provider = LocalHosts(folder / "state", ENVIRONMENT, idle_exit_seconds=60)
        self.folder = folder / "site"
        self.folder.mkdir()
        self._roots = folder / "state" / "hosts" / ENVIRONMENT

    def kill_agent(self, name: str) -> None:
        descriptor = os.pidfd_open(int((self._roots / name / "agent.pid").read_text()))
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        # Its socket takes connections until it is really dead.
        select.select([descriptor], [], [])
        os.close(descriptor)

    async def close(self) -> None:
        for seen in await self.provider.inventory(ENVIRONMENT):
            await self.provider.release(InstanceRequest(seen.uid, seen.name, seen.fleet, {}))


def identity(*, ledger: str = "ledger", epoch: int = 1, fence: int = 1, environment: str = ENVIRONMENT) -> Identity:  # fmt: skip
    return Identity(environment, ledger, epoch, fence)


def request(name: str = "fleet-0") -> InstanceRequest:
    return InstanceRequest(uid=f"uid-of-{name}", name=name, fleet="fleet", declared={})


class Listener:
    """Takes in a session's news and remembers what each job said and became."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.events: list[Event] = []
        self.output: dict[str, list[LogData]] = {}
        self.order: list[Event | LogData] = []
        self.ended = False
        self._changed = asyncio.Condition()
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for batch in self.host.news():
            for message in batch:
                self.order.append(message)
                if isinstance(message, Event):
                    self.events.append(message)
                else:
                    self.output.setdefault(message.job_uid, []).append(message)
            async with self._changed:
                self._changed.notify_all()
        self.ended = True
        async with self._changed:
            self._changed.notify_all()

    async def until(self, claim: Callable[[], object]) -> None:
        """Wait for news that make the claim true."""
        async with self._changed:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._changed.wait_for(claim)

    async def ending(self, job: StartJob) -> JobRecord:
        """Wait for the record of a job's end, and for the output that it says there is."""
        await self.until(lambda: self.record(job, JobState.FINISHED))
        record = self.record(job, JobState.FINISHED)
        assert record is not None
        if record.log_bytes:
            with contextlib.suppress(TimeoutError):
                # None comes where this connection never asked for it.
                async with asyncio.timeout(2):
                    await self.until(lambda: job.job_uid in self.output)
                await self.until(lambda: self.output[job.job_uid][-1].complete)
        return record

    async def state(self, job: StartJob, state: JobState) -> None:
        await self.until(lambda: self.record(job, state))

    def record(self, job: StartJob, state: JobState) -> JobRecord | None:
        records = (event.record for event in self.events)
        return next((one for one in records if one.key == job.key and one.state is state), None)

    def text(self, job: StartJob) -> str:
        """Return what has come of a job's output; a jump of the offset is shown as `…`."""
        pieces, end = [], 0
        for piece in self.output.get(job.job_uid, ()):
            data = base64.b64decode(piece.data)
            pieces.append(("…" if piece.offset > end else "") + data.decode())
            end = piece.offset + len(data)
        return "".join(pieces)

    @property
    def cursor(self) -> Cursor:
        number = self.events[-1].number if self.events else self.host.seen.cursor.number
        return Cursor(self.host.seen.cursor.log_id, number)

    async def close(self) -> None:
        await self.host.close()
        await self._task


@contextlib.asynccontextmanager
async def connected(
    site: Site,
    instance: InstanceRequest | None = None,
    *,
    who: Identity | None = None,
    cursor: Cursor | None = None,
) -> AsyncIterator[Listener]:
    """Ensure an instance, say hello and listen, until the block ends."""
    instance = instance or request()
    await site.provider.ensure(instance)
    host = await site.provider.connect(instance, who or identity(), cursor)
    listener = Listener(host)
    try:
        yield listener
    finally:
        await listener.close()


def job_for(listener: Listener, *commands: str, go: bool = True, **more: object) -> StartJob:
    """Make a job of its own run for this host, and start it at once unless told otherwise."""
    number = next(_numbers)
    return StartJob(
        job_uid=uuid.uuid4().hex,
        key=JobKey(uuid.uuid4().hex, 1, 0),
        gen=1,
        boot_id=listener.host.seen.boot_id,
        run_name=f"run-{number}",
        commands=commands,
        go=go,
        **more,
    )


async def open_exec(
    provider: HostProvider, instance: InstanceRequest, command: ExecRequest
) -> ExecSession:
    """Start a command over a connection that ends with it."""
    streams = await provider.open_streams(instance)
    try:
        opened = await streams.open_exec(command)
    except BaseException:
        await streams.close()
        raise
    opened.close = streams.close
    return opened


def wait_until(claim: Callable[[], bool]) -> None:
    """Return once it holds, of what no message tells."""
    deadline = time.monotonic() + 20
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.01)
