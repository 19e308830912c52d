"""
The controller's end of one connection to an agent, over any stream of bytes.

A session begins with hello, welcome and a probe, and then carries requests side by side:
each has a number, and its caller waits for the reply of that number. What the agent says
unasked is handed out by `news`, in order. A session lives as long as its connection. When
that is lost every waiting call raises `ConnectionLost` and `news` ends; nothing is sent
again from here, because only whoever holds the ledger knows what is still wanted.

It uses no threads, and of asyncio only futures, timers and one task, whose order does not
depend on addresses: the simulation runs it as it is.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

from fleetform.agents.client import blobs
from fleetform.agents.client.blob_channels import BlobChannels
from fleetform.agents.client.channel import Channel
from fleetform.agents.client.errors import ConnectionLost, HelloRejected, RequestRefused
from fleetform.agents.client.heartbeats import Heartbeats
from fleetform.agents.client.outgoing import Outgoing
from fleetform.agents.protocol.channels import (
    ChannelData,
    ChannelEnded,
    CloseChannel,
    Credit,
    OpenChannel,
)
from fleetform.agents.protocol.frames import Decoder, FrameError, Message, encode, read_value
from fleetform.agents.protocol.host_report import HostReport
from fleetform.agents.protocol.link import (
    CONTROL,
    HEARTBEAT_SECONDS,
    LOG_CHANNEL,
    OWN_CHANNEL_FIRST,
    PRIORITY_OF_KIND,
    STREAMS,
)
from fleetform.agents.protocol.messages import (
    CAPABILITIES,
    PROTOCOL_NEWEST,
    PROTOCOL_OLDEST,
    Acknowledge,
    Cursor,
    Event,
    FollowLog,
    Forget,
    Heartbeat,
    Hello,
    JobKey,
    LogData,
    MakeVolume,
    MissingBlobs,
    MountDisk,
    MountFileSystem,
    Prepare,
    Probe,
    PutBlob,
    Rejected,
    RemoveVolume,
    Reply,
    Request,
    Shutdown,
    SnapshotVolume,
    Start,
    StartJob,
    Stop,
    Unknown,
    UnmountDisk,
    Welcome,
)
from fleetform.agents.protocol.states import Cause

REPLY_TIMEOUT_SECONDS = 60.0
"""Agents answer at once and report work later; a minute covers a host deep in swap."""

_READ_BYTES = 256 << 10
_NEWS_BYTES_MAX = 64 << 20
"""Beyond this the agent is left waiting: output may come faster than a disk takes it in."""

_OVERDUE_SECONDS = 5.0
"""How late a heartbeat may be: a host deep in swap sends it seconds after its time."""

_CLOSING_SECONDS = 5.0

_NO_CHANNEL = 0
"""No channel ever has this number."""

_log = logging.getLogger("fleetform.session")


class ByteReader(Protocol):
    async def read(self, n: int) -> bytes:
        """Return at most `n` bytes, at least one; none at the end of the stream."""


class ByteWriter(Protocol):
    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    async def wait_closed(self) -> None: ...


async def open_session(
    reader: ByteReader,
    writer: ByteWriter,
    hello: Hello,
    *,
    timeout_seconds: float = REPLY_TIMEOUT_SECONDS,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
) -> Session:
    """
    Say hello and ask what the host has; the stream belongs to the session from now on.

    Raises:
        HelloRejected: The agent does not take us.
        ConnectionLost: It did not answer in time, or not with sense.
    """
    session = Session(
        reader, writer, timeout_seconds=timeout_seconds, heartbeat_seconds=heartbeat_seconds
    )
    try:
        await session.greet(hello)
    except BaseException:
        await session.close()
        raise
    return session


class Session:
    """
    One connection that has been welcomed; `open_session` makes it.

    Attributes:
        welcome: What the agent answered to hello.
        report: What the host had when it was probed, right after.
    """

    welcome: Welcome
    report: HostReport

    def __init__(
        self,
        reader: ByteReader,
        writer: ByteWriter,
        *,
        timeout_seconds: float,
        heartbeat_seconds: float,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._timeout_seconds = timeout_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._heard_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._heartbeats = Heartbeats(
            self._loop,
            heartbeat_seconds,
            send=self._send,
            is_full=lambda: self._news_bytes > _NEWS_BYTES_MAX,
            silent=lambda: self._lose("the agent has been silent for too long"),
        )
        self._greeting: asyncio.Future[Welcome] = self._loop.create_future()
        self._replies: dict[int, asyncio.Future[Reply]] = {}
        self._last_id = 0
        self._outgoing = Outgoing(self._loop, self._write)
        self._last_channel = LOG_CHANNEL
        self._blobs = BlobChannels(
            self._loop,
            next_id=self._next_id,
            next_channel=self._next_channel,
            submit=self._submit,
            send=self._send,
        )
        self._channels: dict[int, Channel] = {}
        self._calls: collections.deque[tuple[OpenChannel, Channel]] = collections.deque()
        self._has_calls = asyncio.Event()
        self._news: list[Event | LogData] = []
        self._news_bytes = 0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._failure: ConnectionLost | HelloRejected | None = None
        self._task = self._loop.create_task(self._read())

    # -- the calls of contract.hosts.Host ---------------------------------------------------

    async def prepare(self, job: StartJob) -> Reply:
        return await self._ask(Prepare(self._next_id(), job))

    async def start(self, key: JobKey, gen: int, boot_id: str) -> Reply:
        return await self._ask(Start(self._next_id(), key, gen, boot_id))

    async def stop(
        self, key: JobKey, job_uid: str, gen: int, *, cause: Cause, grace_seconds: int | None
    ) -> Reply:
        return await self._ask(Stop(self._next_id(), key, job_uid, gen, cause, grace_seconds))

    async def forget(self, keys: Sequence[JobKey]) -> Reply:
        return await self._ask(Forget(self._next_id(), tuple(keys)))

    async def acknowledge(self, cursor: Cursor, commits: int = 0) -> None:
        self._send(Acknowledge(cursor))

    async def missing_blobs(self, digests: Sequence[str]) -> Sequence[str]:
        """Return those that the host lacks; raises RequestRefused when it cannot tell."""
        reply = _accepted(await self._ask(MissingBlobs(self._next_id(), tuple(digests))))
        missing = reply.body.get("missing")
        if not isinstance(missing, list) or any(digest not in digests for digest in missing):
            raise self._lose("the agent's answer about missing files is invalid")
        return missing

    async def put_blob(self, sha256: str, path: str) -> None:
        """
        Send the file at `path` in pieces, concurrently with requests, which overtake it.

        Raises:
            ContentChanged: Its content is not `sha256`; the host has kept nothing.
            RequestRefused: The host cannot store it.
        """
        if self.welcome.protocol >= 2:
            await blobs.upload(path, sha256, self._blobs)
        else:
            await blobs.send(path, sha256, self._submit_piece)

    async def make_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, *, take: str = "any"
    ) -> Reply:
        return await self._ask(
            MakeVolume(self._next_id(), operation_uid, volume_uid, name, path, take)
        )

    async def remove_volume(
        self, operation_uid: str, volume_uid: str, path: str, *, delete_data: bool
    ) -> Reply:
        return await self._ask(
            RemoveVolume(self._next_id(), operation_uid, volume_uid, path, delete_data)
        )

    async def snapshot_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, into: str
    ) -> Reply:
        return await self._ask(
            SnapshotVolume(self._next_id(), operation_uid, volume_uid, name, path, into)
        )

    async def mount_disk(
        self, volume_uid: str, name: str, disk: str, path: str, snapshot: str = ""
    ) -> Reply:
        return await self._ask(MountDisk(self._next_id(), volume_uid, name, disk, path, snapshot))

    async def mount_file_system(self, kind: str, source: str, path: str) -> Reply:
        return await self._ask(MountFileSystem(self._next_id(), kind, source, path))

    async def unmount_disk(self, path: str) -> Reply:
        return await self._ask(UnmountDisk(self._next_id(), path))

    async def follow_log(self, job_uid: str, offset: int) -> None:
        self._send(FollowLog(job_uid, offset))

    async def shutdown(self, *, force: bool) -> Reply:
        return await self._ask(Shutdown(self._next_id(), force))

    def answer_heartbeats(self, may: Callable[[], bool]) -> None:
        """
        Answer each heartbeat of the agent from now on, as long as `may` allows it.

        Jobs that end when their host hears no controller live by these answers, so only the process that
        decides on their death may give them.
        """
        if self._failure is None:
            self._heartbeats.answer(may)

    async def news(self) -> AsyncIterator[Sequence[Event | LogData]]:
        """Hand out all that has come, then wait for more; for one caller at a time."""
        while True:
            if self._news:
                batch, self._news, self._news_bytes = self._news, [], 0
                self._room.set()
                yield batch
                # Only now has it been taken in: until then the agent keeps the rest on its disk.
                self._credit_output(batch)
            elif self._failure is not None:
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    # -- channels with data both ways ---------------------------------------------------------

    async def open_channel(self, kind: str, parameters: dict[str, Any]) -> Channel:
        """
        Open a channel of a kind of `link.PRIORITY_OF_KIND` other than `blob`.

        Raises:
            RequestRefused: The agent does not have the kind, or refuses the parameters.
        """
        number, priority = self._next_channel(), PRIORITY_OF_KIND[kind]
        channel = Channel(number, lambda message: self._send(message, priority), self._loop.time)
        # At once: data may come in the same read as the reply.
        self._channels[number] = channel
        request = OpenChannel(self._next_id(), number, kind, parameters)
        try:
            _accepted(await self._submit(request, priority))
        except BaseException:
            self._channels.pop(number, None)
            raise
        return channel

    async def close_stream(self, channel: Channel) -> None:
        """
        End a channel of `open_channel`; nothing where it has ended.

        Raises:
            ConnectionLost: The connection has ended, and with it the channel.
        """
        if self._channels.pop(channel.number, None) is None:
            return
        # A reader that still waits gets the end.
        channel.end(ChannelEnded(channel.number))
        request = CloseChannel(self._next_id(), channel.number, "discard")
        # The reply may be a refusal, where the channel has ended at the same time.
        await self._submit(request, STREAMS)

    async def ping(self) -> None:
        """
        Return when the agent has answered a question.

        Raises:
            ConnectionLost: The connection has ended.
        """
        # What a connection that only looks may ask, and what costs the agent least: it refuses.
        await self._submit(CloseChannel(self._next_id(), _NO_CHANNEL, "discard"), STREAMS)

    # -- channels that the agent opens --------------------------------------------------------

    async def calls(self) -> AsyncIterator[tuple[OpenChannel, Channel]]:
        """Hand out channels that the agent opens, to be answered each; ends with the connection."""
        while self._failure is None:
            while self._calls:
                yield self._calls.popleft()
            self._has_calls.clear()
            if self._failure is None:
                await self._has_calls.wait()

    def answer_call(self, call: OpenChannel, problem: str = "") -> None:
        """Accept a channel, or refuse it with a reason."""
        if problem:
            self._channels.pop(call.channel, None)
        code = "not_found" if problem else ""
        self._send(Reply(call.id, not problem, code, problem), STREAMS)

    def end_call(self, call: OpenChannel, problem: str, body: dict[str, Any]) -> None:
        """End a channel that was accepted; nothing where the agent has ended it."""
        if self._channels.pop(call.channel, None) is not None:
            self._send(ChannelEnded(call.channel, "io" * bool(problem), problem, body), STREAMS)

    def _take_call(self, call: OpenChannel) -> None:
        if (
            call.kind != "rank"
            or call.channel < OWN_CHANNEL_FIRST
            or call.channel in self._channels
        ):
            problem = f"the controller does not have channels of the kind {call.kind!r}"
            self._send(Reply(call.id, False, "unsupported", problem), STREAMS)
            return
        channel = Channel(
            call.channel, lambda message: self._send(message, STREAMS), self._loop.time
        )
        self._channels[call.channel] = channel
        self._calls.append((call, channel))
        self._has_calls.set()

    def _credit_output(self, batch: Sequence[Event | LogData]) -> None:
        size = sum(len(item.data) for item in batch if isinstance(item, LogData))
        if size and self.welcome.protocol >= 2 and self._failure is None:
            self._send(Credit(LOG_CHANNEL, size))

    # -- the end of a session ---------------------------------------------------------------

    async def close(self) -> None:
        """End the connection; calls that still wait raise ConnectionLost."""
        self._outgoing.flush()
        self._lose("the session was closed")
        self._task.cancel()
        # Gathered, so that only the reading is cancelled and never whoever closes.
        await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._writer.wait_closed()

    # -- the beginning ----------------------------------------------------------------------

    async def greet(self, hello: Hello) -> None:
        """Fill `welcome` and `report`; once, as the first thing."""
        self._send(
            dataclasses.replace(
                hello,
                protocol_newest=PROTOCOL_NEWEST,
                capabilities=CAPABILITIES,
            )
        )
        timer = self._loop.call_later(
            self._timeout_seconds, self._lose, "the agent does not answer"
        )
        try:
            self.welcome = await self._greeting
        finally:
            timer.cancel()
        self.report = await self.probe()

    async def probe(self) -> HostReport:
        """Ask what the host has now."""
        reply = _accepted(await self._ask(Probe(self._next_id())))
        try:
            return read_value(HostReport, reply.body.get("host"))
        except FrameError as error:
            raise self._lose(f"the agent's report of its host is invalid: {error}") from error

    @property
    def silent_seconds(self) -> float:
        """For how long nothing has arrived from the agent."""
        return self._loop.time() - self._heard_at

    @property
    def is_overdue(self) -> bool:
        """Whether a heartbeat of the agent is missing."""
        # Version 1 of the protocol has no heartbeats, and a session that is full does not read them.
        if self.welcome.protocol < 2 or self._news_bytes > _NEWS_BYTES_MAX:
            return False
        return self.silent_seconds > self._heartbeat_seconds + _OVERDUE_SECONDS

    # -- out ----------------------------------------------------------------------------------

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _next_channel(self) -> int:
        self._last_channel += 1
        return self._last_channel

    async def _ask(self, request: Request) -> Reply:
        return await self._submit(request)

    def _submit_piece(self, sha256: str, offset: int, data: str, last: bool) -> asyncio.Future[Reply]:  # fmt: skip
        return self._submit(PutBlob(self._next_id(), sha256, offset, data, last))

    def _submit(self, request: Request, priority: int = CONTROL) -> asyncio.Future[Reply]:
        """Send now; the reply comes to the future, or ConnectionLost does."""
        self._send(request, priority)
        reply: asyncio.Future[Reply] = self._loop.create_future()
        self._replies[request.id] = reply
        # Somebody waits, and a reply may stand behind news: reading must go on.
        self._room.set()
        timer = self._loop.call_later(self._timeout_seconds, self._give_up, request)
        reply.add_done_callback(lambda _: timer.cancel())
        return reply

    def _give_up(self, request: Request) -> None:
        # An agent that lives and does not answer is stuck: nothing can be relied on any more.
        self._lose(f"the agent did not answer the request {type(request).__name__} in time")

    def _send(self, message: Message, priority: int = CONTROL) -> None:
        if self._failure is not None:
            # The same object is raised each time, and would drag all earlier tracebacks along.
            raise self._failure.with_traceback(None)
        self._outgoing.add(encode(message), priority)

    def _write(self, frames: bytes) -> None:
        if self._failure is not None:
            return
        try:
            self._writer.write(frames)
        except (OSError, RuntimeError) as error:
            # asyncio's transports raise RuntimeError once they are closed.
            self._lose(f"the connection to the agent cannot be written: {error}")

    # -- in -----------------------------------------------------------------------------------

    async def _read(self) -> None:
        decoder = Decoder()
        try:
            while data := await self._read_some():
                self._heartbeats.hear()
                self._heard_at = self._loop.time()
                for message in decoder.feed(data):
                    self._take(message)
                self._news_bytes += len(data) if self._news else 0
            self._lose("the agent closed the connection")
        except FrameError as error:
            self._lose(f"the agent does not follow the protocol: {error}")
        except (OSError, RuntimeError) as error:
            self._lose(f"the connection to the agent is broken: {error}")

    async def _read_some(self) -> bytes:
        while self._news_bytes > _NEWS_BYTES_MAX and not self._replies and self._failure is None:
            self._room.clear()
            await self._room.wait()
            # It may have said much that nobody has read.
            self._heartbeats.hear()
        return b"" if self._failure is not None else await self._reader.read(_READ_BYTES)

    def _take(self, message: Message | Unknown) -> None:
        if isinstance(message, Unknown):
            # Of a newer agent. What it knows of a job comes again with the records of a hello.
            _log.info("message.unknown %s", message.problem)
        elif isinstance(message, Reply):
            waiting = self._replies.pop(message.id, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif isinstance(message, (Event, LogData)):
            self._news.append(message)
            self._changed.set()
        elif isinstance(message, ChannelData):
            self._take_data(message)
        elif isinstance(message, Credit) and message.channel in self._channels:
            self._channels[message.channel].credit(message.size_bytes)
        elif isinstance(message, ChannelEnded) and message.channel in self._channels:
            self._channels.pop(message.channel).end(message)
        elif isinstance(message, Credit):
            self._blobs.credit(message.size_bytes)
        elif isinstance(message, ChannelEnded):
            self._blobs.end(message)
        elif isinstance(message, OpenChannel):
            self._take_call(message)
        elif isinstance(message, Heartbeat):
            self._heartbeats.take(message)
        elif isinstance(message, Welcome) and not self._greeting.done():
            self._take_welcome(message)
        elif isinstance(message, Rejected):
            # Also in the middle of a session, when somebody with a newer fence has come.
            self._end(HelloRejected(message))
        else:
            raise FrameError(f"the message {type(message).__name__} is unexpected")

    def _take_data(self, message: ChannelData) -> None:
        channel = self._channels.get(message.channel)
        if channel is None:
            return  # It was under way when its channel ended.
        try:
            channel.take(message)
        except ValueError as error:
            raise FrameError(str(error)) from error

    def _take_welcome(self, welcome: Welcome) -> None:
        if not PROTOCOL_OLDEST <= welcome.protocol <= PROTOCOL_NEWEST:
            raise FrameError(f"it answers in the unknown version {welcome.protocol}")
        self._greeting.set_result(welcome)
        if welcome.protocol >= 2:
            self._heartbeats.begin()

    # -- the end ------------------------------------------------------------------------------

    def _lose(self, reason: str) -> ConnectionLost | HelloRejected:
        """End the session, and return why it ended first."""
        return self._end(ConnectionLost(reason))

    def _end(self, failure: ConnectionLost | HelloRejected) -> ConnectionLost | HelloRejected:
        if self._failure is not None:
            return self._failure
        self._failure = failure
        self._heartbeats.end()
        waiting: list[asyncio.Future[Any]] = [
            self._greeting,
            *self._replies.values(),
            *self._blobs.lose(failure),
        ]
        self._replies.clear()
        for channel in self._channels.values():
            channel.lose(failure)
        self._has_calls.set()
        for future in waiting:
            if not future.done():
                future.set_exception(failure)
                # Nobody may be waiting any more; that is no reason for asyncio to complain.
                future.exception()
        self._changed.set()
        self._room.set()
        self._writer.close()
        return failure


def _accepted(reply: Reply) -> Reply:
    if not reply.ok:
        raise RequestRefused(reply)
    return reply
