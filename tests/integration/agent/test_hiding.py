"""
Jobs that hide from their agent: a process leaves its session and its directory, clears its
environment, and all who could know it are killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
import time
from collections.abc import Sequence

import pytest

from fleetform.agents.host import process_tag, processes
from fleetform.agents.protocol.messages import JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from integration.agent.rig import (
    Agent,
    Manager,
    await_true,
    is_alive,
    job,
    kill,
    managing,
    uid,
)

HIDE = "cd /; setsid env -i {} </dev/null >/dev/null 2>&1 & echo $!"
"""Nothing leads from what it starts to the job, but for its parents; its pid is the output."""

WAIT = "sleep 1000"


async def hide(agent: Agent, manager: Manager, pids: list[int], command: str = WAIT) -> list[int]:
    """Start job `a`, which hides a process; return its supervisor, the spawner and the agent."""
    reply = await manager.session.prepare(job("a", HIDE.format(command), WAIT))
    assert reply.ok, reply
    await manager.until(lambda: manager.output(uid("a")).endswith(b"\n"))
    pids.append(int(manager.output(uid("a"))))
    supervisor = agent.supervisor(uid("a"))
    spawner = processes.parent(supervisor)
    assert processes.parent(spawner) == agent.pid
    return [supervisor, spawner, agent.pid]


async def known(manager: Manager, state: JobState = JobState.FINISHED) -> JobRecord:
    """Wait for job `a` to be in this state, by what an agent that was just started has said."""

    def said() -> list[JobRecord]:
        records = [*(manager.session.welcome.records or ()), *(e.record for e in manager.events)]
        return [one for one in records if one.job_uid == uid("a") and one.state is state]

    await manager.until(said)
    return said()[0]


@pytest.mark.parametrize(
    "victims", [[0], [0, 1], [1, 0], [0, 2], [2, 0], [0, 1, 2], [2, 1, 0]], ids=str
)
def test_what_hides_is_ended(agent: Agent, hidden: list[int], victims: Sequence[int]) -> None:
    """Whichever of supervisor, spawner and agent are killed: once it is lost, nothing of it runs."""

    async def go() -> None:
        async with managing(agent) as manager:
            ours = await hide(agent, manager, hidden)
            for number in victims:
                with contextlib.suppress(ProcessLookupError):
                    kill(ours[number])
            if victims == [0]:
                assert (await manager.record(uid("a"))).cause is Cause.LOST
                assert not is_alive(hidden[0])
                return
        await asyncio.to_thread(await_true, lambda: not any(map(is_alive, ours)))
        agent.start()
        async with managing(agent) as manager:
            assert (await known(manager)).cause is Cause.LOST
            assert not is_alive(hidden[0])

    asyncio.run(go())


LOWER = (
    f"{sys.executable} -c 'import resource, time;"
    " resource.setrlimit(resource.RLIMIT_RTTIME, (10**6, 10**6)); time.sleep(1000)'"
)


def test_an_end_that_cannot_be_proven(agent: Agent, hidden: list[int]) -> None:
    """A process that sheds its tag too makes its job unknown, and lost only when it has ended."""

    async def go() -> None:
        async with managing(agent) as manager:
            ours = await hide(agent, manager, hidden, LOWER)
            await asyncio.to_thread(await_true, lambda: process_tag.read(hidden[0]) == 10**6)
            # By the clock since boot: by a date that was set back, the process would be older than its job.
            started = (agent.job(uid("a")) / "started").stat().st_mtime
            assert started < time.clock_gettime(time.CLOCK_BOOTTIME)
            kill(ours[2])
            await asyncio.to_thread(await_true, lambda: not is_alive(ours[1]))
            kill(ours[0])
        agent.start()
        async with managing(agent) as manager:
            record = await known(manager, JobState.UNKNOWN)
            assert f"other processes may belong to the job (pid {hidden[0]})" in record.message
            assert is_alive(hidden[0])
            reply = await manager.session.forget([record.key])
            assert (reply.ok, reply.code) == (False, "busy")
            spec = job("a", HIDE.format(LOWER), WAIT)
            again = await manager.session.prepare(spec)
            assert again.body["record"]["state"] == "unknown"
            agent.kill()
        agent.start()
        async with managing(agent) as manager:
            await known(manager, JobState.UNKNOWN)
            kill(hidden[0])
            assert (await manager.record(uid("a"))).cause is Cause.LOST

    asyncio.run(go())


def test_another_process_with_a_limit_is_no_suspect(agent: Agent, hidden: list[int]) -> None:
    """A program that was there before the job, or that another agent's job started, is none."""
    asyncio.run(_no_suspect(agent, hidden))


async def _no_suspect(agent: Agent, hidden: list[int]) -> None:
    earlier = await asyncio.create_subprocess_exec(*shlex.split(LOWER))
    hidden.append(earlier.pid)
    await asyncio.to_thread(await_true, lambda: process_tag.read(earlier.pid) == 10**6)
    await asyncio.to_thread(await_true, lambda: processes.age_seconds(earlier.pid) > 0.5)
    async with managing(agent) as manager:
        await manager.session.prepare(job("other", HIDE.format(WAIT), WAIT))
        await manager.until(lambda: manager.output(uid("other")).endswith(b"\n"))
        hidden.append(int(manager.output(uid("other"))))
        ours = await hide(agent, manager, hidden)
        kill(ours[2])
        await asyncio.to_thread(await_true, lambda: not is_alive(ours[1]))
        kill(ours[0])
    agent.start()
    async with managing(agent) as manager:
        assert (await known(manager)).cause is Cause.LOST
        assert is_alive(hidden[1])
        assert not is_alive(hidden[2])
    assert earlier.returncode is None
    earlier.kill()
    await earlier.wait()
