"""A channel with data both ways, from the controller's end, message by message."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable

import pytest

from fleetform.agents.client.channel import Channel
from fleetform.agents.client.errors import ConnectionLost, RequestRefused
from fleetform.agents.client.session import Session
from fleetform.agents.protocol.channels import ChannelData, ChannelEnded, Credit, OpenChannel
from fleetform.agents.protocol.link import WINDOW_MIN_BYTES
from fleetform.agents.protocol.messages import Reply
from unit.agents_client.memory_stream import AgentEnd


def packed(data: bytes) -> str:
    return base64.b64encode(data).decode()


def tell(story: Callable[[AgentEnd, Session, Channel], Awaitable[None]]) -> None:
    """Run a story with a channel that the agent has opened."""

    async def run() -> None:
        async with asyncio.timeout(20):
            agent = AgentEnd()
            session = await agent.greeted_by()
            opening = asyncio.create_task(session.open_channel("exec", {"argv": ["ls"]}))
            request = await agent.hear()
            assert isinstance(request, OpenChannel)
            assert (request.kind, request.parameters) == ("exec", {"argv": ["ls"]})
            agent.say(Reply(request.id, True))
            await story(agent, session, await opening)
            await session.close()

    asyncio.run(run())


def test_what_is_read_is_credited_when_more_is_wanted() -> None:
    """So the agent never has more under way than its credit, and the end comes after all data."""

    async def story(agent: AgentEnd, _session: Session, channel: Channel) -> None:
        agent.say(
            ChannelData(channel.number, packed(b"one")),
            ChannelData(channel.number, packed(b"three")),
            ChannelEnded(channel.number, body={"exit_code": 3}),
            ChannelData(channel.number, packed(b"late")),
        )
        assert await channel.read() == b"one"
        assert await channel.read() == b"three"
        assert await channel.read() is None
        assert channel.ended is not None
        assert channel.ended.body == {"exit_code": 3}
        channel.write_now(b"into nothing")
        await channel.write(b"into nothing")

    tell(story)


def test_credit_follows_each_read() -> None:
    """It counts what travelled, and is not given before the reader asks for more."""

    async def story(agent: AgentEnd, _session: Session, channel: Channel) -> None:
        agent.say(ChannelData(channel.number, packed(b"one")))
        assert await channel.read() == b"one"
        more = asyncio.create_task(channel.read())
        assert await agent.hear() == Credit(channel.number, 4)
        agent.say(ChannelData(channel.number, packed(b"two")))
        assert await more == b"two"

    tell(story)


def test_input_waits_for_credit_and_control_does_not() -> None:
    """A command that takes nothing holds its input up, and hears of signals all the same."""

    async def story(agent: AgentEnd, _session: Session, channel: Channel) -> None:
        piece = bytes(WINDOW_MIN_BYTES)
        await channel.write(piece)
        first = await agent.hear()
        assert isinstance(first, ChannelData)
        waiting = asyncio.create_task(channel.write(b"second"))
        channel.write_now(b"signal")
        assert await agent.hear() == ChannelData(channel.number, packed(b"signal"))
        assert not waiting.done()
        agent.say(Credit(channel.number, len(first.data)))
        await waiting
        assert await agent.hear() == ChannelData(channel.number, packed(b"second"))

    tell(story)


@pytest.mark.parametrize("data", [None, "no base64!"])
def test_a_lost_connection_ends_reading_and_writing(data: str | None) -> None:
    """Also one that is given up because what came is nonsense."""

    async def story(agent: AgentEnd, _session: Session, channel: Channel) -> None:
        await channel.write(bytes(WINDOW_MIN_BYTES))
        writing = asyncio.create_task(channel.write(b"second"))
        reading = asyncio.create_task(channel.read())
        await asyncio.sleep(0)
        if data is None:
            agent.said.close()
        else:
            agent.say(ChannelData(channel.number, data))
        for waiting in (reading, writing):
            with pytest.raises(ConnectionLost):
                await waiting

    tell(story)


def test_a_refusal_is_raised() -> None:
    """The number is not used again, and what still comes for it is dropped."""

    async def story(agent: AgentEnd, session: Session, channel: Channel) -> None:
        opening = asyncio.create_task(session.open_channel("exec", {}))
        request = await agent.hear()
        assert isinstance(request, OpenChannel)
        agent.say(Reply(request.id, False, "not_found", "the job does not run"))
        with pytest.raises(RequestRefused, match="the job does not run"):
            await opening
        agent.say(ChannelData(request.channel, packed(b"late")))
        agent.say(ChannelData(channel.number, packed(b"in time")))
        assert await channel.read() == b"in time"

    tell(story)
