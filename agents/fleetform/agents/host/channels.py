"""
The agent's end of one connection's channels: what arrives on them, and who takes it in.

A kind of channel is one class here. Channels of a connection end with it; what an upload has
brought by then stays, and the next connection goes on from there.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

from fleetform.agents.host.blobs import BlobError, BlobStore
from fleetform.agents.host.requests import refusal
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.link import WINDOW_MAX_BYTES
from fleetform.agents.protocol.messages import (
    ChannelData,
    ChannelEnded,
    CloseChannel,
    Credit,
    OpenChannel,
    Reply,
)

_PIECE_BYTES_MAX = WINDOW_MAX_BYTES
"""Of one piece after it was inflated; a small one could otherwise fill the memory."""


class _Upload:
    """
    A content on its way here.

    Attributes:
        opened: What the reply to `OpenChannel` says.
    """

    def __init__(self, store: BlobStore, parameters: dict[str, Any]) -> None:
        self._store = store
        self._digest = str(parameters.get("sha256"))
        # Asked for first: it refuses what is no digest.
        complete = store.has(self._digest)
        self._offset = store.arrived_bytes(self._digest) if parameters.get("resume") else 0
        self.opened = {"offset": self._offset, "complete": complete}

    def take(self, piece: bytes) -> None:
        self._store.write(self._digest, self._offset, piece)
        self._offset += len(piece)

    def close(self, outcome: str) -> Callable[[], None]:
        """Returns what remains to be done, in any thread; that may raise as well."""
        if outcome == "complete":
            if self._offset == 0:
                self._store.write(self._digest, 0, b"")  # An empty content.
            return self._store.finish(self._digest)
        if outcome == "discard":
            self._store.discard(self._digest)
        return lambda: None


class Channels:
    """Those of one connection; `say` sends a message on it."""

    def __init__(self, store: BlobStore, say: Callable[[Message], None]) -> None:
        self._store = store
        self._say = say
        # A channel that has failed keeps its refusal for whoever closes it.
        self._open: dict[int, _Upload | Reply] = {}

    def open(self, message: OpenChannel) -> None:
        try:
            upload = self._opened(message)
        except (BlobError, OSError) as error:
            refused = refusal(message.id, error)
            self._open[message.channel] = refused
            self._say(refused)
        else:
            self._open[message.channel] = upload
            self._say(Reply(message.id, True, body=upload.opened))

    def _opened(self, message: OpenChannel) -> _Upload:
        if message.kind != "blob":
            raise BlobError(
                "unsupported",
                f"this agent supports channels of the kind 'blob' only, not {message.kind!r}",
            )
        return _Upload(self._store, message.parameters)

    def take(self, message: ChannelData) -> None:
        channel = self._open.get(message.channel)
        if isinstance(channel, _Upload):
            try:
                channel.take(_unpacked(message))
            except (BlobError, OSError) as error:
                refused = refusal(0, error)
                self._open[message.channel] = refused
                self._say(ChannelEnded(message.channel, refused.code, refused.message))
        # Also for what was dropped: the sender shares one credit among its contents.
        self._say(Credit(message.channel, len(message.data)))

    def close(self, message: CloseChannel) -> Callable[[], Reply]:
        """End a channel; what it returns makes the reply, in any thread."""
        channel = self._open.pop(message.channel, None)
        if channel is None:
            return lambda: Reply(message.id, False, "not_found", "this channel is not open")
        if isinstance(channel, Reply):
            refused = dataclasses.replace(channel, id=message.id)
            return lambda: refused
        try:
            rest = channel.close(message.outcome)
        except (BlobError, OSError) as error:
            refused = refusal(message.id, error)
            return lambda: refused
        return lambda: _finish(message.id, rest)


def _finish(id_: int, work: Callable[[], None]) -> Reply:
    try:
        work()
    except (BlobError, OSError) as error:
        return refusal(id_, error)
    return Reply(id_, True)


def _unpacked(message: ChannelData) -> bytes:
    try:
        piece = base64.b64decode(message.data, validate=True)
        if not message.deflated:
            return piece
        inflater = zlib.decompressobj()
        piece = inflater.decompress(piece, _PIECE_BYTES_MAX)
    except (binascii.Error, zlib.error) as error:
        raise BlobError("invalid", f"a piece cannot be decoded: {error}") from error
    if inflater.unconsumed_tail or not inflater.eof:
        raise BlobError("invalid", f"a piece is cut, or larger than {_PIECE_BYTES_MAX} bytes")
    return piece
