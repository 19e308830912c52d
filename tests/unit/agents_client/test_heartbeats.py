"""How long a half-open connection is taken for a live one, and which heartbeats are sent."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from fleetform.agents.client.errors import ConnectionLost
from fleetform.agents.protocol.messages import Heartbeat
from simulation.loop import VirtualLoop, run
from unit.agents_client.memory_stream import WELCOME, AgentEnd

WELCOME_2 = dataclasses.replace(WELCOME, protocol=2)


class TestHeartbeats:
    """How long a half-open connection is taken for a live one; hours pass in virtual time."""

    @pytest.mark.parametrize("lived_seconds", [0.0, 7.0, 14.9, 100.0])
    def test_a_half_open_connection_is_known_in_45_seconds(self, lived_seconds: float) -> None:
        """From the last byte on, whenever that came; a call that waits hears of it."""
        loop = VirtualLoop()

        async def go() -> None:
            agent = AgentEnd()
            session = await agent.greeted_by(welcome=WELCOME_2)
            while loop.time() < lived_seconds:
                await asyncio.sleep(min(15.0, lived_seconds - loop.time()))
                agent.say(Heartbeat())
            last = loop.time()
            assert [batch async for batch in session.news()] == []
            assert 30 <= loop.time() - last <= 45
            with pytest.raises(ConnectionLost, match="silent for too long"):
                await session.forget([])
            await session.close()

        run(go(), loop)

    def test_an_idle_connection_lives(self) -> None:
        """For an hour in which nothing is asked: both ends say that they are there."""
        loop = VirtualLoop()

        async def go() -> None:
            agent = AgentEnd()
            session = await agent.greeted_by(welcome=WELCOME_2)
            for _ in range(240):
                assert isinstance(await agent.hear(), Heartbeat)
                agent.say(Heartbeat())
            assert 3600 <= loop.time() < 3601
            await session.close()

        run(go(), loop)

    @pytest.mark.parametrize("lag_seconds", [0.0, 5.0, 14.9])
    def test_an_answered_heartbeat_is_one_of_the_controller(self, lag_seconds: float) -> None:
        """While each one of the agent is answered, once, no other is sent, and both ends hear enough."""
        loop = VirtualLoop()

        async def go() -> None:
            agent = AgentEnd()
            session = await agent.greeted_by(welcome=WELCOME_2)
            session.answer_heartbeats(lambda: True)
            await asyncio.sleep(lag_seconds)
            for number in range(1, 240):
                agent.say(Heartbeat(number))
                assert await agent.hear() == Heartbeat(number)
                await asyncio.sleep(15)
            await session.close()

        run(go(), loop)

    def test_a_heartbeat_that_may_not_be_answered_is_none(self) -> None:
        """A controller that is not the manager says that it lives, and answers nothing."""
        loop = VirtualLoop()

        async def go() -> None:
            agent = AgentEnd()
            session = await agent.greeted_by(welcome=WELCOME_2)
            session.answer_heartbeats(lambda: False)
            for number in range(1, 240):
                agent.say(Heartbeat(number))
                assert await agent.hear() == Heartbeat()
            assert 3585 <= loop.time() < 3586
            await session.close()

        run(go(), loop)

    def test_an_agent_whose_heartbeats_are_late_hears_the_controller(self) -> None:
        """When nothing was answered for a whole interval, a heartbeat says that the controller lives."""
        loop = VirtualLoop()

        async def go() -> None:
            agent = AgentEnd()
            session = await agent.greeted_by(welcome=WELCOME_2)
            session.answer_heartbeats(lambda: True)
            await asyncio.sleep(1)
            agent.say(Heartbeat(1))
            assert await agent.hear() == Heartbeat(1)
            assert await agent.hear() == Heartbeat()
            assert 29 <= loop.time() <= 31
            await session.close()

        run(go(), loop)

    def test_version_1_knows_no_heartbeats(self) -> None:
        """An agent of the release before hears none, and its silence means nothing."""
        loop = VirtualLoop()

        async def go() -> None:
            agent = AgentEnd()
            session = await agent.greeted_by(welcome=WELCOME)
            await asyncio.sleep(3600)
            assert not session.is_overdue
            await session.close()
            await agent.hear_end()

        run(go(), loop)

    def test_a_heartbeat_is_overdue_after_20_seconds(self) -> None:
        """Until anything is heard again; the connection lasts meanwhile."""

        async def go() -> None:
            agent = AgentEnd()
            session = await agent.greeted_by(welcome=WELCOME_2)
            await asyncio.sleep(19)
            assert not session.is_overdue
            await asyncio.sleep(2)
            assert session.is_overdue
            agent.say(Heartbeat())
            await asyncio.sleep(0.1)
            assert not session.is_overdue
            await session.close()

        run(go(), VirtualLoop())
