"""Uploads over one connection: their credit is shared, and so is the end of the connection."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from fleetform.agents.client.blob_channels import BlobChannels
from fleetform.agents.client.errors import ConnectionLost
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.link import WINDOW_MIN_BYTES
from fleetform.agents.protocol.messages import Reply, Request


def test_an_upload_that_asks_for_room_after_the_end_does_not_wait() -> None:
    """It reads its file while another upload takes the credit and the connection ends."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        sent: list[Message] = []

        def submit(request: Request, priority: int) -> asyncio.Future[Reply]:
            sent.append(request)
            return loop.create_future()

        channels = BlobChannels(
            loop,
            next_id=itertools.count(1).__next__,
            next_channel=itertools.count(1).__next__,
            submit=submit,
            send=lambda message, _priority: sent.append(message),
        )
        first, _ = channels.open_blob({"sha256": "a"})
        second, _ = channels.open_blob({"sha256": "b"})
        window = await channels.await_room(first)
        while window.has_room:
            channels.put(first, bytes(WINDOW_MIN_BYTES), deflated=False)
        waiting = asyncio.ensure_future(channels.await_room(second))
        await asyncio.sleep(0)
        failure = ConnectionLost("the agent closed the connection")
        for room in channels.lose(failure):
            room.set_exception(failure)
        for late in (waiting, channels.await_room(second)):
            with pytest.raises(ConnectionLost):
                async with asyncio.timeout(10):
                    await late

    asyncio.run(story())
