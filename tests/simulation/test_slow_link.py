"""A session over a line of a given rate: requests pass uploads, and no upload ends the session."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fleetform.agents.client.errors import ConnectionLost
from fleetform.agents.client.session import Session, open_session
from fleetform.agents.host.blobs import BlobStore
from fleetform.agents.host.channels import Channels
from fleetform.agents.protocol.channels import ChannelData, CloseChannel, OpenChannel
from fleetform.agents.protocol.frames import Decoder, Message, encode
from fleetform.agents.protocol.host_report import HostReport
from fleetform.agents.protocol.link import HEARTBEAT_SECONDS
from fleetform.agents.protocol.messages import (
    Heartbeat,
    Hello,
    JobKey,
    MissingBlobs,
    Probe,
    Reply,
    Stop,
    Unknown,
    Welcome,
    to_json,
)
from fleetform.agents.protocol.states import Cause
from simulation.loop import VirtualLoop, run

SLICE_BYTES = 1400
HELLO = Hello("env", "ledger", 1, 1)
WELCOME = Welcome("env", "ledger", 1, "i", "boot", "m", "log", 1, 0, (), "0.1", protocol=2)
REPORT = HostReport("h", 4000, 8, 9, 9, 8, 0, (), "3.9", "6.1")
MBIT = 125_000


class SlowPipe:
    """One direction: what is written waits its turn, and nothing pushes back."""

    def __init__(self, rate: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._rate = rate
        self._free_at = 0.0
        self._arrived = asyncio.StreamReader()
        self.passed_bytes = 0
        self.cut = False

    async def read(self, n: int) -> bytes:
        return await self._arrived.read(n)

    def write(self, data: bytes) -> None:
        for begin in range(0, len(data), SLICE_BYTES):
            piece = data[begin : begin + SLICE_BYTES]
            self._free_at = max(self._free_at, self._loop.time()) + len(piece) / self._rate
            self._loop.call_at(self._free_at + 0.02, self._arrive, piece)

    def _arrive(self, piece: bytes) -> None:
        if not self.cut:
            self.passed_bytes += len(piece)
            self._arrived.feed_data(piece)

    def close(self) -> None:
        if not self.cut:
            self.cut = True
            self._arrived.feed_eof()

    async def wait_closed(self) -> None:
        """Nothing to wait for."""


class Agent:
    """The real channels and contents of an agent behind a slow line, and a stub of the rest."""

    def __init__(self, folder: Path, rate: float) -> None:
        self.there, self.back = SlowPipe(rate), SlowPipe(rate)
        self.store = BlobStore(str(folder))
        self.opened = 0
        self._channels = Channels(self.store, self.say)
        self._serving = asyncio.create_task(self._serve())

    def say(self, message: Message) -> None:
        self.back.write(encode(message))

    async def connect(self) -> Session:
        return await open_session(self.back, self.there, HELLO)

    async def end(self) -> None:
        self.there.close()
        self.back.close()
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)

    async def _serve(self) -> None:
        decoder = Decoder()
        beats = asyncio.get_running_loop().create_task(self._beat())
        try:
            while data := await self.there.read(1 << 20):
                for message in decoder.feed(data):
                    self._take(message)
        finally:
            beats.cancel()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            self.say(Heartbeat())

    def _take(self, message: Message | Unknown) -> None:
        if isinstance(message, Hello):
            self.say(WELCOME)
        elif isinstance(message, Probe):
            self.say(Reply(message.id, True, body={"host": to_json(REPORT)}))
        elif isinstance(message, MissingBlobs):
            missing = self.store.missing(message.digests)
            self.say(Reply(message.id, True, body={"missing": missing}))
        elif isinstance(message, OpenChannel):
            self.opened += 1
            self._channels.open(message)
        elif isinstance(message, ChannelData):
            self._channels.take(message)
        elif isinstance(message, CloseChannel):
            self.say(self._channels.close(message)())
        elif isinstance(message, Stop):
            self.say(Reply(message.id, True))


def content(folder: Path, size: int) -> tuple[str, str]:
    data = random.Random(7).randbytes(size)
    path = folder / "content"
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest(), str(path)


def over(folder: Path, rate: float, story: Callable[[Agent, Session], Awaitable[None]]) -> None:
    loop = VirtualLoop()

    async def go() -> None:
        agent = Agent(folder / "blobs", rate)
        session = await agent.connect()
        await story(agent, session)
        await session.close()
        await agent.end()

    run(go(), loop)
    assert loop.problems == []


async def stop(session: Session) -> None:
    reply = await session.stop(JobKey("r", 1, 0), "u", 2, cause=Cause.STOPPED, grace_seconds=None)
    assert reply.ok


def test_a_stop_overtakes_an_upload(tmp_path: Path) -> None:
    """At 1 Mbit/s behind 4 MB it is answered within a second, at any moment of the upload."""
    digest, path = content(tmp_path, 4 << 20)

    async def story(agent: Agent, session: Session) -> None:
        loop = asyncio.get_running_loop()
        upload = asyncio.create_task(session.put_blob(digest, path))
        waited = []
        while not upload.done():
            await asyncio.sleep(1.3)
            begun = loop.time()
            await stop(session)
            waited.append(loop.time() - begun)
        await upload
        assert len(waited) > 10
        assert max(waited) < 1.0
        # Base64 makes a third more of it, and the line is kept busy.
        assert loop.time() < (4 << 20) * 4 / 3 / MBIT * 1.25
        assert await session.missing_blobs([digest]) == []

    over(tmp_path, MBIT, story)


def test_a_session_survives_a_large_upload(tmp_path: Path) -> None:
    """16 MB at 0.6 Mbit/s take five minutes, far more than any request may."""
    digest, path = content(tmp_path, 16 << 20)

    async def story(agent: Agent, session: Session) -> None:
        await session.put_blob(digest, path)
        assert asyncio.get_running_loop().time() > 240
        assert agent.opened == 1
        await stop(session)

    over(tmp_path, 0.6 * MBIT, story)


def test_many_uploads_share_one_credit(tmp_path: Path) -> None:
    """Fifty contents at once leave a stop no less of the line than one does."""
    paths = []
    for number in range(50):
        data = random.Random(number).randbytes(30_000)
        (tmp_path / str(number)).write_bytes(data)
        paths.append((hashlib.sha256(data).hexdigest(), str(tmp_path / str(number))))

    async def story(agent: Agent, session: Session) -> None:
        uploads = [asyncio.create_task(session.put_blob(*one)) for one in paths]
        loop = asyncio.get_running_loop()
        for _ in range(5):
            await asyncio.sleep(1.0)
            begun = loop.time()
            await stop(session)
            assert loop.time() - begun < 1.0
        await asyncio.gather(*uploads)
        assert await session.missing_blobs([digest for digest, _ in paths]) == []

    over(tmp_path, MBIT, story)


def test_text_is_compressed(tmp_path: Path) -> None:
    """A slow line carries a fraction of it."""
    data = b"".join(b"step %d loss 0.%d\n" % (n, n * 7919 % 1000) for n in range(100_000))
    (tmp_path / "content").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()

    async def story(agent: Agent, session: Session) -> None:
        await session.put_blob(digest, str(tmp_path / "content"))
        assert agent.there.passed_bytes < len(data) / 2

    over(tmp_path, MBIT, story)


def test_an_upload_goes_on_after_a_reconnect(tmp_path: Path) -> None:
    """What had arrived is not sent again."""
    digest, path = content(tmp_path, 2 << 20)
    loop = VirtualLoop()

    async def go() -> None:
        first = Agent(tmp_path / "blobs", MBIT)
        session = await first.connect()
        upload = asyncio.create_task(session.put_blob(digest, path))
        await asyncio.sleep(15)
        await first.end()
        with pytest.raises(ConnectionLost):
            await upload
        await session.close()
        arrived = first.store.arrived_bytes(digest)
        assert arrived > 1_000_000
        second = Agent(tmp_path / "blobs", MBIT)
        session = await second.connect()
        await session.put_blob(digest, path)
        assert second.there.passed_bytes < ((2 << 20) - arrived) * 1.4 + 5000
        assert await session.missing_blobs([digest]) == []
        await session.close()
        await second.end()

    run(go(), loop)


def test_a_half_open_line_is_known_amid_an_upload(tmp_path: Path) -> None:
    """Bytes that nobody takes in are no sign of life."""
    digest, path = content(tmp_path, 4 << 20)

    async def story(agent: Agent, session: Session) -> None:
        loop = asyncio.get_running_loop()
        upload = asyncio.create_task(session.put_blob(digest, path))
        await asyncio.sleep(10)
        agent.there.cut = agent.back.cut = True
        with pytest.raises(ConnectionLost, match="silent for too long"):
            await upload
        assert loop.time() <= 56

    over(tmp_path, MBIT, story)
