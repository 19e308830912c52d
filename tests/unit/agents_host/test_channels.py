"""What an agent does with what arrives on channels, message by message."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fleetform.agents.host.blobs import BlobStore
from fleetform.agents.host.channels import Channels
from fleetform.agents.protocol.channels import (
    ChannelData,
    ChannelEnded,
    CloseChannel,
    Credit,
    OpenChannel,
)
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.messages import Reply

CONTENT = b"weights " * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Wire:
    """One connection's channels, and what the agent says on it."""

    def __init__(self, folder: Path) -> None:
        self.store = BlobStore(str(folder))
        self.said: list[Message] = []
        self.channels = Channels(self.store, self.said.append)

    def open(self, channel: int, *, resume: bool = True, digest: str = DIGEST) -> Reply:
        self.channels.open(OpenChannel(1, channel, "blob", {"sha256": digest, "resume": resume}))
        return self.last(Reply)

    def put(self, channel: int, piece: bytes) -> None:
        self.channels.take(ChannelData(channel, base64.b64encode(piece).decode()))

    def close(self, channel: int, outcome: str = "complete") -> Reply:
        return self.channels.close(CloseChannel(9, channel, outcome))()

    def last(self, kind: type) -> Message:
        return [message for message in self.said if isinstance(message, kind)][-1]


@pytest.fixture
def connect(tmp_path: Path) -> Callable[[], Wire]:
    """Connections to the same host, one after another."""
    return lambda: Wire(tmp_path)


def test_a_content_arrives(connect: Callable[[], Wire]) -> None:
    """Each piece is credited by what it had on the way, and the whole is checked at the end."""
    wire = connect()
    assert wire.open(5).body == {"offset": 0, "complete": False}
    wire.put(5, CONTENT[:3000])
    wire.channels.take(
        ChannelData(5, base64.b64encode(zlib.compress(CONTENT[3000:])).decode(), deflated=True)
    )
    credited = [message for message in wire.said if isinstance(message, Credit)]
    assert credited[0] == Credit(5, 4000)
    assert credited[1].size_bytes < 200
    assert wire.close(5) == Reply(9, True)
    assert Path(wire.store.path(DIGEST)).read_bytes() == CONTENT
    assert wire.open(6).body["complete"]


def test_the_next_connection_goes_on(connect: Callable[[], Wire]) -> None:
    """It learns how much has arrived; whoever does not ask begins again."""
    wire = connect()
    wire.open(5)
    wire.put(5, CONTENT[:3000])
    later = connect()
    assert later.open(5).body["offset"] == 3000
    later.put(5, CONTENT[3000:])
    assert later.close(5).ok
    other = hashlib.sha256(b"other").hexdigest()
    later.open(6, digest=other)
    later.put(6, b"wrong")
    assert later.close(6, "interrupted").ok
    later.open(7, digest=other, resume=False)
    later.put(7, b"other")
    assert later.close(7).ok


def test_an_empty_content(connect: Callable[[], Wire]) -> None:
    """No data is data enough."""
    wire = connect()
    wire.open(5, digest=hashlib.sha256(b"").hexdigest())
    assert wire.close(5).ok


def test_wrong_content_leaves_nothing(connect: Callable[[], Wire]) -> None:
    """Also what was resumed: the next upload begins at the beginning."""
    wire = connect()
    wire.open(5)
    wire.put(5, b"something else")
    refused = wire.close(5)
    assert (refused.code, refused.ok) == ("invalid", False)
    assert wire.open(6).body["offset"] == 0
    wire.put(6, b"half")
    assert wire.close(6, "discard").ok
    assert wire.open(7).body["offset"] == 0


@pytest.mark.parametrize(
    "data",
    [
        ChannelData(5, "no base64!"),
        ChannelData(5, base64.b64encode(b"no zlib").decode(), deflated=True),
        ChannelData(5, base64.b64encode(zlib.compress(CONTENT)[:-9]).decode(), deflated=True),
        ChannelData(5, base64.b64encode(zlib.compress(bytes(5 << 20))).decode(), deflated=True),
    ],
    ids=["no base64", "no zlib", "cut", "too large"],
)
def test_a_piece_that_cannot_be_read_ends_the_channel(
    connect: Callable[[], Wire], data: ChannelData
) -> None:
    """Once, with the reason; it is credited all the same, and its closing is refused alike."""
    wire = connect()
    wire.open(5)
    wire.channels.take(data)
    wire.channels.take(data)
    ended = [message for message in wire.said if isinstance(message, ChannelEnded)]
    assert [(one.channel, one.code) for one in ended] == [(5, "invalid")]
    assert wire.last(Credit) == Credit(5, len(data.data))
    assert wire.close(5).message == ended[0].message


def test_unknown_kinds_and_channels_are_refused(connect: Callable[[], Wire]) -> None:
    """By name, and without an end of anything else."""
    wire = connect()
    wire.channels.open(OpenChannel(1, 5, "metrics", {}))
    assert wire.last(Reply).code == "unsupported"
    assert "not 'metrics'" in wire.last(Reply).message
    wire.put(5, b"ls")
    assert wire.last(Credit) == Credit(5, 4)
    assert wire.close(5).code == "unsupported"
    assert wire.close(77).code == "not_found"
    assert wire.open(6, digest="../../etc/passwd").code == "invalid"
    assert wire.open(7).ok


def test_what_was_interrupted_expires(connect: Callable[[], Wire]) -> None:
    """After a day: nobody comes back for it, and the host needs the space."""
    wire = connect()
    wire.open(5)
    wire.put(5, CONTENT)
    now = Path(wire.store._incoming(DIGEST)).stat().st_mtime
    wire.store.expire(now + 3600)
    assert wire.open(6).body["offset"] == len(CONTENT)
    wire.store.expire(now + 25 * 3600)
    assert wire.open(7).body["offset"] == 0
