"""Two ends of a connection joined in memory, and an agent's end that a test speaks for."""

from __future__ import annotations

import asyncio

from fleetform.agents.client.session import Session, open_session
from fleetform.agents.protocol.frames import Decoder, Message, encode
from fleetform.agents.protocol.host_report import HostReport
from fleetform.agents.protocol.messages import Hello, Probe, Reply, Welcome, to_json

HELLO = Hello("env", "ledger", 1, 1)
WELCOME = Welcome("env", "ledger", 1, "install", "boot", "machine", "log", 1, 0, (), "0.1")
"""That of an agent which speaks version 1: it says nothing unasked while it is idle."""

REPORT = HostReport("h", 4000, 8, 9, 9, 8, 0, (), "3.9", "6.1")


class Pipe:
    """One direction: what is written here is read there; fills both small interfaces."""

    def __init__(self) -> None:
        self._stream = asyncio.StreamReader()
        self.writes = 0
        self.closed = False
        self.broken: OSError | None = None

    async def read(self, n: int) -> bytes:
        return await self._stream.read(n)

    def write(self, data: bytes) -> None:
        if self.broken is not None:
            raise self.broken
        self.writes += 1
        self._stream.feed_data(data)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._stream.feed_eof()

    async def wait_closed(self) -> None:
        """Nothing of a pipe outlives its closing."""

    def fail(self, error: OSError) -> None:
        self._stream.set_exception(error)


class AgentEnd:
    """What an agent would do, step by step, as the test says."""

    def __init__(self) -> None:
        self.heard, self.said = Pipe(), Pipe()
        self._decoder = Decoder()
        self._messages: list[Message] = []

    async def hear(self) -> Message:
        """Wait for the next message of the controller."""
        while not self._messages:
            data = await self.heard.read(1 << 20)
            assert data, "the controller has ended the connection"
            self._messages += self._decoder.feed(data)
        return self._messages.pop(0)

    async def hear_end(self) -> None:
        """Wait for the controller's end of file, and for nothing before it."""
        assert not self._messages
        assert await self.heard.read(1) == b""

    def say(self, *messages: Message) -> None:
        self.said.write(b"".join(map(encode, messages)))

    async def welcome(self, welcome: Welcome = WELCOME) -> None:
        """Answer hello and the probe that follows it."""
        assert isinstance(await self.hear(), Hello)
        self.say(welcome)
        probe = await self.hear()
        assert isinstance(probe, Probe)
        self.say(Reply(probe.id, ok=True, body={"host": to_json(REPORT)}))

    async def greeted_by(
        self, *, timeout_seconds: float = 60.0, welcome: Welcome = WELCOME
    ) -> Session:
        """Open a session of a controller with this agent."""
        answered = asyncio.create_task(self.welcome(welcome))
        session = await open_session(self.said, self.heard, HELLO, timeout_seconds=timeout_seconds)
        await answered
        return session
