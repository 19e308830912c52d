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
from fleetform.agents.host.exec_channel import Commands, ExecChannel
from fleetform.agents.host.forward_channel import ForwardChannel, Forwards
from fleetform.agents.host.requests import refusal
from fleetform.agents.protocol.channels import (
    ChannelData,
    ChannelEnded,
    CloseChannel,
    Credit,
    OpenChannel,
)
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.link import WINDOW_MAX_BYTES
from fleetform.agents.protocol.messages import Reply

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
    """
    Those of one connection; `say` sends a message on it.

    `commands` starts what `exec` asks for, and `forwards` connects to what `forward` asks for.
    """

    def __init__(
        self,
        store: BlobStore,
        say: Callable[[Message], None],
        commands: Commands | None = None,
        forwards: Forwards | None = None,
    ) -> None:
        self._store = store
        self._say = say
        self._commands = commands
        self._forwards = forwards
        # A channel that has failed keeps its refusal until it is closed.
        self._open: dict[int, _Upload | ExecChannel | ForwardChannel | Reply] = {}

    def open(self, message: OpenChannel, *, is_looking: bool = False) -> None:
        """
        Open a channel.

        A connection that only looks may run commands and reach ports, and change nothing else.
        """
        if message.channel in self._open:
            problem = f"channel {message.channel} is open already"
            self._say(Reply(message.id, False, "invalid", problem))
            return
        try:
            opened, body = self._opened(message, is_looking=is_looking)
        except (BlobError, OSError) as error:
            refused = refusal(message.id, error)
            self._open[message.channel] = refused
            self._say(refused)
        else:
            self._open[message.channel] = opened
            if body is not None:
                self._say(Reply(message.id, True, body=body))

    def _opened(
        self, message: OpenChannel, *, is_looking: bool
    ) -> tuple[_Upload | ExecChannel | ForwardChannel, dict[str, Any] | None]:
        """Return a channel and the body of the reply; None: the reply comes when it is connected."""
        if message.kind == "exec" and self._commands is not None:
            return self._commands.open(message.channel, message.parameters, self._say), {}
        if message.kind == "forward" and self._forwards is not None:
            return self._forwards.open(
                message.channel,
                message.parameters,
                self._say,
                lambda problem: self._answer_forward(message, problem),
            ), None
        if message.kind != "blob":
            raise BlobError(
                "unsupported",
                "this agent supports channels of the kinds 'blob', 'exec' and 'forward' only, not"
                f" {message.kind!r}",
            )
        if is_looking:
            raise BlobError("unsupported", "a connection that only looks cannot upload contents")
        upload = _Upload(self._store, message.parameters)
        return upload, upload.opened

    def _answer_forward(self, message: OpenChannel, problem: BlobError | None) -> None:
        if problem is None:
            self._say(Reply(message.id, True))
            return
        refused = refusal(message.id, problem)
        if isinstance(self._open.get(message.channel), ForwardChannel):
            self._open[message.channel] = refused
        self._say(refused)

    def take(self, message: ChannelData) -> None:
        channel = self._open.get(message.channel)
        size = len(message.data)
        try:
            if isinstance(channel, (ExecChannel, ForwardChannel)):
                # It credits what its command or program has taken.
                channel.take(_unpacked(message), size)
                return
            if isinstance(channel, _Upload):
                channel.take(_unpacked(message))
        except (BlobError, OSError, ValueError) as error:
            if isinstance(channel, (ExecChannel, ForwardChannel)):
                channel.hang_up()
            wrong = BlobError("invalid", str(error)) if isinstance(error, ValueError) else error
            refused = refusal(0, wrong)
            self._open[message.channel] = refused
            self._say(ChannelEnded(message.channel, refused.code, refused.message))
        # Also for what was dropped: the sender shares one credit among its contents.
        self._say(Credit(message.channel, size))

    def credit(self, message: Credit) -> None:
        channel = self._open.get(message.channel)
        if isinstance(channel, (ExecChannel, ForwardChannel)):
            channel.credit(message.size_bytes)

    def pause(self, *, paused: bool) -> None:
        """Hold output back while the connection does not keep up."""
        for channel in self._open.values():
            if isinstance(channel, (ExecChannel, ForwardChannel)):
                channel.pause(paused=paused)

    def hang_up(self) -> None:
        """The connection has ended, and with it its commands and forwards."""
        for channel in self._open.values():
            if isinstance(channel, (ExecChannel, ForwardChannel)):
                channel.hang_up()
        self._open.clear()

    def close(self, message: CloseChannel) -> Callable[[], Reply]:
        """End a channel; what it returns makes the reply, in any thread."""
        channel = self._open.pop(message.channel, None)
        if channel is None:
            return lambda: Reply(message.id, False, "not_found", "this channel is not open")
        if isinstance(channel, Reply):
            refused = dataclasses.replace(channel, id=message.id)
            return lambda: refused
        if isinstance(channel, (ExecChannel, ForwardChannel)):
            channel.hang_up()
            return lambda: Reply(message.id, True)
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
