"""
The controller's end of a channel that carries data both ways, such as that of a command.

What the agent sends is bounded by the credit that `read` gives for what its caller has taken in.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import collections
from collections.abc import Callable
from typing import Protocol

from fleetform.agents.client.errors import ConnectionLost, HelloRejected
from fleetform.agents.protocol.channels import ChannelData, ChannelEnded, Credit
from fleetform.agents.protocol.link import Window

PIECE_BYTES = 32 << 10
"""Of input at a time: a key that is pressed next does not wait for more than that."""


class Speaker(Protocol):
    """What says messages on the connection; raises ConnectionLost where it has ended."""

    def __call__(self, message: ChannelData | Credit) -> None: ...


class Channel:
    """
    One open channel; for one reader and one writer at a time.

    Attributes:
        number: Its number on the connection.
        ended: What the agent said at its end; None while it is open.
    """

    def __init__(self, number: int, say: Speaker, clock: Callable[[], float]) -> None:
        """`clock` is any that does not jump, in seconds."""
        self.number = number
        self.ended: ChannelEnded | None = None
        self._say = say
        self._clock = clock
        self._window = Window()
        self._incoming: collections.deque[tuple[bytes, int]] = collections.deque()
        self._owed = 0
        self._failure: ConnectionLost | HelloRejected | None = None
        self._has_news = asyncio.Event()
        self._has_room = asyncio.Event()

    async def read(self) -> bytes | None:
        """
        Return the next piece; None at the end, which `ended` then describes.

        Raises:
            ConnectionLost: The connection has ended before the channel.
        """
        if self._owed and self._failure is None and self.ended is None:
            self._say(Credit(self.number, self._owed))
        self._owed = 0
        while not self._incoming:
            if self.ended is not None:
                return None
            if self._failure is not None:
                raise self._failure
            self._has_news.clear()
            await self._has_news.wait()
        piece, self._owed = self._incoming.popleft()
        return piece

    async def write(self, piece: bytes) -> None:
        """Send a piece when there is credit for it; dropped where the channel has ended."""
        while not self._window.has_room and self.ended is None:
            if self._failure is not None:
                raise self._failure
            self._has_room.clear()
            await self._has_room.wait()
        self.write_now(piece)

    def write_now(self, piece: bytes) -> None:
        """Send a small piece that waits for no credit."""
        if self.ended is not None:
            return
        data = base64.b64encode(piece).decode("ascii")
        self._window.send(len(data), self._clock())
        self._say(ChannelData(self.number, data))

    # -- for the session --------------------------------------------------------------------------

    def take(self, message: ChannelData) -> None:
        """Take data in; raises ValueError where it cannot be decoded."""
        try:
            piece = base64.b64decode(message.data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"a piece cannot be decoded: {error}") from error
        self._incoming.append((piece, len(message.data)))
        self._has_news.set()

    def credit(self, size: int) -> None:
        self._window.take(size, self._clock())
        self._has_room.set()

    def end(self, message: ChannelEnded) -> None:
        self.ended = message
        self._wake()

    def lose(self, failure: ConnectionLost | HelloRejected) -> None:
        self._failure = failure
        self._wake()

    def _wake(self) -> None:
        self._has_news.set()
        self._has_room.set()
