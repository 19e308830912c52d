"""
Forwards local ports to ports of a running job, for as long as `attach` runs.

One connection to the job's host carries all ports. It is opened again with growing pauses when it is
lost, and to another host when another attempt runs there. Local ports stay open meanwhile: a program
that connects waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.app.exec_in_job import ExecProblem, watch_host
from fleetform.providers.contract.errors import PermanentError, ProviderError

if TYPE_CHECKING:
    from fleetform.model.instance import Instance
    from fleetform.model.run import Job, PortMapping
    from fleetform.providers.contract.job_streams import ForwardSession, JobAddress, JobStreams
__all__ = ["PortForwards", "Target"]

_LOCAL = "127.0.0.1"
_READ_BYTES = 64 << 10

_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 1.0, 30.0
"""Before the connection is tried again: at first, and at most; each time twice as long."""

_LOOK_SECONDS = 1.0
"""How often the ledger is asked where the job runs; an attempt elsewhere takes longer to begin."""


@dataclass(frozen=True, slots=True)
class Target:
    """A job that runs, and its host."""

    job: Job
    instance: Instance


class PortForwards:
    """
    Attributes:
        target: Where the job runs, or ran last; None until then.
        has_begun: Set when the job is first seen to run.

    Args:
        find: Returns where the job runs now; None while it does not run. Called in another thread.
        connect: Opens a connection to a host.
        say: Shows a line to the user.
    """

    def __init__(
        self,
        find: Callable[[], Target | None],
        connect: Callable[[Instance], Awaitable[JobStreams]],
        say: Callable[[str], None],
    ) -> None:
        self._find = find
        self._connect = connect
        self._say = say
        self._now: tuple[JobStreams, JobAddress] | None = None
        self._is_ready = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._refused: set[int] = set()
        self.target: Target | None = None
        self.has_begun = asyncio.Event()

    async def listen(self, mapping: PortMapping) -> int:
        """
        Open a local port; returns its number.

        Raises:
            OSError: It is taken, or this account may not open it.
        """
        server = await asyncio.start_server(
            lambda reader, writer: self._carry(reader, writer, mapping.port),
            _LOCAL,
            mapping.local_port or 0,
        )
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def run(self) -> None:
        """Keep the connection; ends when it is cancelled."""
        try:
            while True:
                target = await asyncio.to_thread(self._find)
                if target is None:
                    await asyncio.sleep(_LOOK_SECONDS)
                    continue
                self.target = target
                self.has_begun.set()
                streams = await self._connected(target)
                if streams is not None:
                    await self._keep(streams, target)
        finally:
            for server in self._servers:
                server.close()

    async def _connected(self, target: Target) -> JobStreams | None:
        """Connect, as often as it takes; None where the job does not run there any more."""
        pause = _PAUSE_SECONDS
        while True:
            try:
                return await self._connect(target.instance)
            except ExecProblem as problem:
                self._say(f"{problem.message}; connecting again in {pause:.0f} s")
            await asyncio.sleep(pause)
            pause = min(pause * 2, _PAUSE_SECONDS_MAX)
            if not await self._runs_still(target):
                return None

    async def _keep(self, streams: JobStreams, target: Target) -> None:
        from fleetform.providers.contract.job_streams import JobAddress

        self._now = streams, JobAddress(target.job.key, target.job.uid)
        self._is_ready.set()
        losing = asyncio.create_task(streams.lost())
        watching = asyncio.create_task(watch_host(streams, target.instance, self._say))
        try:
            while not (await asyncio.wait([losing], timeout=_LOOK_SECONDS))[0]:
                if not await self._runs_still(target):
                    return
            self._say(f"the connection to host {target.instance.name} is lost; connecting again")
        finally:
            self._is_ready.clear()
            self._now = None
            losing.cancel()
            watching.cancel()
            await streams.close()

    async def _runs_still(self, target: Target) -> bool:
        found = await asyncio.to_thread(self._find)
        return found is not None and found.job.uid == target.job.uid

    # -- one connection of a program of this machine ------------------------------------------------

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
    ) -> None:
        try:
            opened = await self._open(port)
            if opened is not None:
                await _join(reader, writer, opened)
        except (OSError, ProviderError):
            pass  # The program sees its connection end.
        except asyncio.CancelledError:
            # `attach` ends. asyncio's streams of Python 3.11 print a traceback of a handler that raises it.
            writer.transport.abort()
            return
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _open(self, port: int) -> ForwardSession | None:
        while True:
            await self._is_ready.wait()
            if self._now is None:
                continue
            streams, job = self._now
            try:
                opened = await streams.open_forward(job, port)
            except PermanentError as error:
                if port not in self._refused:
                    self._refused.add(port)
                    self._say(str(error))
                return None
            except ProviderError:
                # Lost: the next connection will have it.
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                self._refused.discard(port)
                return opened


async def _join(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, opened: ForwardSession
) -> None:
    """Carry bytes both ways until both directions have ended."""

    async def feed() -> None:
        with contextlib.suppress(OSError, ProviderError):
            while data := await reader.read(_READ_BYTES):
                await opened.write(data)
            opened.end_input()

    feeding = asyncio.create_task(feed())
    try:
        while data := await opened.read():
            writer.write(data)
            await writer.drain()
        writer.write_eof()
        await feeding
    finally:
        feeding.cancel()
        await opened.close()
