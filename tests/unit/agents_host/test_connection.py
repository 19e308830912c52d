"""One connection of the agent: heartbeats, and the end of one that has gone silent."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from fleetform.agents.host.blobs import BlobStore
from fleetform.agents.host.connection import Connection
from fleetform.agents.protocol.frames import Decoder, Message, encode
from fleetform.agents.protocol.messages import Heartbeat, Probe, Unknown

BEAT_SECONDS = 0.05


class Listener:
    """Stands where the daemon does; speaks `protocol` from the beginning."""

    def __init__(self, protocol: int) -> None:
        self.protocol = protocol
        self.heard: list[Message | Unknown] = []
        self.gone = asyncio.Event()

    def connected(self, connection: Connection) -> None:
        self.connection = connection
        connection.speak(self.protocol)

    def received(self, connection: Connection, message: Message | Unknown) -> None:
        self.heard.append(message)

    def writable(self, connection: Connection) -> None:
        connection.outbox.flush()

    def settle(self) -> None:
        self.connection.outbox.flush()

    def disconnected(self, connection: Connection) -> None:
        self.gone.set()


async def connect(folder: Path, protocol: int) -> tuple[Listener, socket.socket]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    listener = Listener(protocol)
    await asyncio.get_running_loop().create_connection(
        lambda: Connection(
            listener, str(folder), BlobStore(str(folder)), heartbeat_seconds=BEAT_SECONDS
        ),
        sock=ours,
    )
    return listener, theirs


def test_a_silent_peer_is_given_up(tmp_path: Path) -> None:
    """Nothing is read there and nothing is said: the connection ends all the same."""

    async def go() -> None:
        listener, theirs = await connect(tmp_path, 2)
        async with asyncio.timeout(60):
            await listener.gone.wait()
        theirs.close()

    asyncio.run(go())


def test_a_peer_that_beats_is_kept(tmp_path: Path) -> None:
    """Heartbeats go both ways, and nobody above hears of them."""

    async def go() -> None:
        listener, theirs = await connect(tmp_path, 2)
        loop, decoder, beats = asyncio.get_running_loop(), Decoder(), 0
        async with asyncio.timeout(60):
            while beats < 8:
                await loop.sock_sendall(theirs, encode(Heartbeat()))
                beats += len(decoder.feed(await loop.sock_recv(theirs, 4096)))
        assert not listener.gone.is_set()
        assert listener.heard == []
        theirs.close()
        await listener.gone.wait()

    asyncio.run(go())


def test_version_1_knows_no_heartbeats(tmp_path: Path) -> None:
    """Such a controller would end the session at the first one; its silence means nothing."""

    async def go() -> None:
        listener, theirs = await connect(tmp_path, 1)
        await asyncio.sleep(BEAT_SECONDS * 6)
        assert not listener.gone.is_set()
        theirs.send(encode(Probe(1)))
        theirs.close()
        await listener.gone.wait()
        assert listener.heard == [Probe(1)]

    asyncio.run(go())
