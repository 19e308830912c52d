"""Jobs that end when their host hears no controller for a while, with an agent and without one."""

from __future__ import annotations

import asyncio

from fleetform.agents.host import contact
from fleetform.agents.protocol.messages import Heartbeat
from fleetform.agents.protocol.states import Cause, JobState
from integration.agent.rig import Agent, await_true, dial, is_alive, job, managing, uid

SILENCE = "its host heard no controller for {} s (`on_silence`)"


def at_ms(agent: Agent) -> int:
    """Return when the agent says that its controller answered last."""
    with (agent.root / "contact").open("rb") as file:
        known = contact.read(file.fileno())
    assert known is not None
    return known[1]


def test_a_job_ends_after_the_silence(agent: Agent) -> None:
    """The connection is there and says nothing more: the host ends the job, as the limit says."""

    async def go() -> None:
        async with managing(agent) as manager:
            manager.session.answer_heartbeats(lambda: True)
            await manager.session.probe()
            heard_ms = at_ms(agent)
            record = await manager.run(job("a", "sleep 300", silence_seconds=3))
            assert (record.cause, record.message) == (Cause.LOST, SILENCE.format(3))
            assert at_ms(agent) == heard_ms, (
                "a later heartbeat was answered: the machine is too slow"
            )
            assert contact.boot_ms() >= heard_ms + 3000

    asyncio.run(go())


def test_answers_keep_a_job(agent: Agent) -> None:
    """As long as the controller answers, a job outlives its limit many times; then it ends."""

    async def go() -> None:
        async with managing(agent) as manager:
            manager.session.answer_heartbeats(lambda: True)
            await manager.session.probe()
            await manager.session.prepare(job("a", "sleep 300", silence_seconds=4))
            until_ms = contact.boot_ms() + 9000
            while contact.boot_ms() < until_ms:
                manager.session._send(Heartbeat(contact.boot_ms()))
                await asyncio.sleep(0.2)
            assert not manager.events or manager.events[-1].record.state is JobState.RUNNING
            assert (await manager.record(uid("a"))).cause is Cause.LOST

    asyncio.run(go())


def test_the_limit_holds_without_an_agent(agent: Agent) -> None:
    """The agent is killed: the job ends in time all the same, and the next agent says why."""

    async def begin() -> list[int]:
        async with managing(agent) as manager:
            manager.session.answer_heartbeats(lambda: True)
            spec = job("a", "trap '' TERM; sleep 300", silence_seconds=3, stop_grace_seconds=1)
            await manager.session.prepare(spec)
            await manager.record(uid("a"), JobState.RUNNING)
            return agent.processes(uid("a"), 1)

    pids = asyncio.run(begin())
    agent.kill()
    await_true(lambda: not any(map(is_alive, pids)))

    async def look() -> None:
        async with managing(agent) as manager:
            (record,) = manager.session.welcome.records or ()
            assert (record.cause, record.message) == (Cause.LOST, SILENCE.format(3))

    agent.start()
    asyncio.run(look())


def test_a_new_agent_remembers(agent: Agent) -> None:
    """An agent that is started again has heard what the one before it heard."""

    async def begin() -> None:
        async with managing(agent) as manager:
            manager.session.answer_heartbeats(lambda: True)
            await manager.session.probe()

    asyncio.run(begin())
    heard_ms = at_ms(agent)
    assert heard_ms > 0
    agent.kill()
    agent.start()
    assert at_ms(agent) == heard_ms


def test_a_new_boot_begins_anew(agent: Agent) -> None:
    """After a reboot nothing has been heard: the clock has started again."""
    asyncio.run(_answer_once(agent))
    agent.kill()
    agent.environment["FLEETFORM_AGENT_BOOT_ID"] = "another"
    agent.start()
    assert at_ms(agent) == contact.NEVER


async def _answer_once(agent: Agent) -> None:
    async with managing(agent) as manager:
        manager.session.answer_heartbeats(lambda: True)
        await manager.session.probe()


def test_a_late_start_is_refused(agent: Agent) -> None:
    """A start that arrives after the silence executes nothing: another host may have the job."""

    async def go() -> None:
        async with managing(agent) as manager:
            # Nothing was answered on this connection.
            record = await manager.run(job("a", "echo on", silence_seconds=3600))
            assert (record.cause, record.message) == (Cause.PREPARE_FAILED, SILENCE.format(3600))
            assert record.log_bytes == 0

    asyncio.run(go())


def test_only_who_manages_is_heard(agent: Agent) -> None:
    """A connection that only looks answers in vain, and so does a manager that may not answer."""

    async def go() -> None:
        async with managing(agent) as manager:
            manager.session.answer_heartbeats(lambda: False)
            await manager.session.probe()
            looking = await dial(agent, look=True)
            looking.answer_heartbeats(lambda: True)
            # It says hello first here, and an answer is none before its end.
            await looking.probe()
            await looking.close()
            assert at_ms(agent) == contact.NEVER

    asyncio.run(go())


def test_an_old_answer_counts_from_its_question(agent: Agent) -> None:
    """An answer that is delivered late says nothing about the time in which it was under way."""

    async def go() -> None:
        async with managing(agent) as manager:
            asked_ms = contact.boot_ms()
            await asyncio.sleep(0.05)
            manager.session._send(Heartbeat(asked_ms))
            manager.session._send(Heartbeat(asked_ms - 20))
            manager.session._send(Heartbeat(contact.boot_ms() + 10**9))
            await manager.session.probe()
            assert at_ms(agent) == asked_ms

    asyncio.run(go())
