"""
The channels of one session over which files go to the agent, with the credit that they share.

All uploads share one credit, so that many small files do not take more of the line than one.
`blobs` decides what goes over a channel; `session` sends it.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any, Protocol

from fleetform.agents.client.errors import ConnectionLost, HelloRejected, RequestRefused
from fleetform.agents.protocol.channels import ChannelData, ChannelEnded, CloseChannel, OpenChannel
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.link import BLOBS, Window
from fleetform.agents.protocol.messages import Reply, Request


class Submit(Protocol):
    """Sends a request; the future gets the reply."""

    def __call__(self, request: Request, priority: int) -> asyncio.Future[Reply]: ...


class BlobChannels:
    """Those of one connection, as `blobs.upload` needs them."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        next_id: Callable[[], int],
        next_channel: Callable[[], int],
        submit: Submit,
        send: Callable[[Message, int], None],
    ) -> None:
        self._loop = loop
        self._next_id = next_id
        self._next_channel = next_channel
        self._submit = submit
        self._send = send
        self._window = Window()
        self._awaiting_room: list[asyncio.Future[None]] = []
        self._ended: dict[int, ChannelEnded] = {}
        self._failure: ConnectionLost | HelloRejected | None = None

    def open_blob(self, parameters: dict[str, Any]) -> tuple[int, asyncio.Future[Reply]]:
        number = self._next_channel()
        request = OpenChannel(self._next_id(), number, "blob", parameters)
        return number, self._submit(request, BLOBS)

    async def await_room(self, channel: int) -> Window:
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        while not self._window.has_room and channel not in self._ended:
            room = self._loop.create_future()
            self._awaiting_room.append(room)
            await room
        ended = self._ended.get(channel)
        if ended is not None:
            raise RequestRefused(Reply(0, False, ended.code, ended.message))
        return self._window

    def put(self, channel: int, data: bytes, *, deflated: bool) -> None:
        message = ChannelData(channel, base64.b64encode(data).decode("ascii"), deflated)
        self._window.send(len(message.data), self._loop.time())
        self._send(message, BLOBS)

    def close_channel(self, channel: int, outcome: str) -> asyncio.Future[Reply]:
        self._ended.pop(channel, None)
        # In the order of its data, which it must not overtake.
        return self._submit(CloseChannel(self._next_id(), channel, outcome), BLOBS)

    # -- what the agent says of them ----------------------------------------------------------

    def credit(self, size_bytes: int) -> None:
        self._window.take(size_bytes, self._loop.time())
        self._give_room()

    def end(self, ended: ChannelEnded) -> None:
        self._ended[ended.channel] = ended
        self._give_room()

    def lose(self, failure: ConnectionLost | HelloRejected) -> list[asyncio.Future[None]]:
        """Let no call wait for room any more; returns the futures of those that do."""
        self._failure = failure
        return self._take_waiting()

    def _take_waiting(self) -> list[asyncio.Future[None]]:
        waiting, self._awaiting_room = self._awaiting_room, []
        return waiting

    def _give_room(self) -> None:
        for room in self._take_waiting():
            if not room.done():
                room.set_result(None)
