"""Jobs that stop those who watch them, with SIGSTOP: limits and stops hold all the same."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from fleetform.agents.host import processes
from fleetform.agents.protocol.states import Cause
from integration.agent.rig import Agent, Manager, await_true, is_alive, job, managing, uid

FOREVER = "echo ready; while :; do sleep 1000; done"


async def begin(agent: Agent, manager: Manager, **fields: object) -> list[int]:
    """Start job `a`; return its supervisor, the spawner and the agent."""
    reply = await manager.session.prepare(job("a", FOREVER, stop_grace_seconds=1, **fields))
    assert reply.ok, reply
    await manager.until(lambda: manager.output(uid("a")))
    supervisor = agent.supervisor(uid("a"))
    return [supervisor, processes.parent(supervisor), agent.pid]


def stop(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


@pytest.mark.parametrize("victims", [[0], [1], [2], [0, 1], [0, 2]], ids=str)
def test_max_duration(agent: Agent, victims: list[int]) -> None:
    """It holds, whichever of supervisor, spawner and agent are stopped, and is reported."""

    async def go() -> None:
        async with managing(agent) as manager:
            ours = await begin(agent, manager, max_duration_seconds=4)
            stop([ours[number] for number in victims])
            record = await manager.record(uid("a"), seconds=20)
            assert record.cause is Cause.MAX_DURATION

    asyncio.run(go())


@pytest.mark.parametrize("victims", [[0], [1], [2], [0, 1], [0, 2]], ids=str)
def test_stop(agent: Agent, victims: list[int]) -> None:
    """A job that stops them is ended within seconds of the request."""

    async def go() -> None:
        async with managing(agent) as manager:
            ours = await begin(agent, manager)
            stop([ours[number] for number in victims])
            spec = job("a", FOREVER)
            reply = await manager.session.stop(
                spec.key, spec.job_uid, 2, cause=Cause.STOPPED, grace_seconds=1
            )
            assert reply.ok
            assert (await manager.record(uid("a"), seconds=20)).cause is Cause.STOPPED

    asyncio.run(go())


def test_supervisor_of_an_earlier_agent(agent: Agent) -> None:
    """No parent of it is left, and the next agent continues it."""

    async def go() -> None:
        async with managing(agent) as manager:
            ours = await begin(agent, manager, max_duration_seconds=4)
            agent.kill()
        await asyncio.to_thread(await_true, lambda: not is_alive(ours[1]))
        agent.start()
        stop(ours[:1])
        async with managing(agent) as manager:
            assert (await manager.record(uid("a"), seconds=20)).cause is Cause.MAX_DURATION

    asyncio.run(go())


def test_one_that_is_stopped_again_and_again(agent: Agent) -> None:
    """A job that stops its supervisor in a loop is ended, and its agent's log says why."""

    async def go() -> None:
        async with managing(agent) as manager:
            loop = "while kill -STOP $PPID; do :; done"
            await manager.session.prepare(job("a", loop))
            assert (await manager.record(uid("a"), seconds=20)).cause is Cause.LOST
            assert f"job {uid('a')} stopped its supervisor" in agent.log()

    asyncio.run(go())
