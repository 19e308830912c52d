"""Jobs that remove their own directory, where their supervisor keeps what it needs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fleetform.agents.protocol.states import Cause, JobState
from integration.agent.rig import Agent, await_true, is_alive, job, managing, uid

# The supervisor writes its files again within a second: `rm` may meet them, and removes them too.
REMOVE = 'until rm -rf "$(dirname "$PWD")" 2> /dev/null; do :; done'
EMPTY = "cd ..; rm -rf ./*"
WORK = 'rm -rf "$PWD"'
WAYS = pytest.mark.parametrize("way", [REMOVE, EMPTY, WORK], ids=["directory", "files", "work"])
"""`rm -rf .` is refused by rm itself."""


def wait_for(gate: Path) -> str:
    return f"until [ -e {gate} ]; do sleep 0.02; done"


@WAYS
def test_exit_code_and_output(agent: Agent, way: str) -> None:
    """They arrive as they are, also what was written before and afterwards."""

    async def go() -> None:
        async with managing(agent) as manager:
            record = await manager.run(job("a", "echo before", way, "echo after", "exit 7"))
            assert (record.cause, record.exit_code, record.message) == (Cause.EXITED, 7, "")
            await manager.until(lambda: manager.output(uid("a")) == b"before\nafter\n")
            # A host that reads it later finds it too.
            assert (agent.job(uid("a")) / "log").read_bytes() == b"before\nafter\n"
            assert (await manager.session.forget([record.key])).ok
            await asyncio.to_thread(await_true, lambda: not agent.job(uid("a")).exists())

    asyncio.run(go())


@WAYS
def test_stop(agent: Agent, way: str) -> None:
    """It is heard, although the file that it is written to was removed."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", way, "echo ready", "sleep 1000")
            await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")))
            await manager.session.stop(
                spec.key, spec.job_uid, 2, cause=Cause.STOPPED, grace_seconds=1
            )
            assert (await manager.record(uid("a"))).cause is Cause.STOPPED

    asyncio.run(go())


@WAYS
def test_agent_killed(agent: Agent, tmp_path: Path, way: str) -> None:
    """The next agent finds the job at work, with its output, and learns its exit code."""
    gate = tmp_path / "gate"

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "echo before", way, "echo ready", wait_for(gate), "echo after; exit 7")
            await manager.session.prepare(spec)
            await manager.until(lambda: b"ready" in manager.output(uid("a")))
            agent.kill()
        agent.start()
        async with managing(agent) as manager:
            (known,) = manager.session.welcome.records or ()
            assert known.state in {JobState.STARTING, JobState.RUNNING}
            await manager.session.follow_log(uid("a"), 0)
            await asyncio.to_thread(await_true, (agent.job(uid("a")) / "started").exists)
            gate.touch()
            record = await manager.record(uid("a"))
            assert (record.cause, record.exit_code) == (Cause.EXITED, 7)
            assert manager.output(uid("a")) == b"before\nready\nafter\n"

    asyncio.run(go())


@WAYS
def test_end_without_an_agent(agent: Agent, tmp_path: Path, way: str) -> None:
    """A job that ends while no agent is there has its exit code for the next one."""
    gate = tmp_path / "gate"

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", way, "echo ready", wait_for(gate), "exit 7")
            await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")))
            (supervisor,) = await asyncio.to_thread(supervisors, agent)
            agent.kill()
            gate.touch()
            await asyncio.to_thread(await_true, lambda: not is_alive(supervisor))
        agent.start()
        async with managing(agent) as manager:
            (known,) = manager.session.welcome.records or ()
            assert (known.state, known.exit_code) == (JobState.FINISHED, 7)

    asyncio.run(go())


def supervisors(agent: Agent) -> list[int]:
    """Find them as children of the spawner, the agent's only child."""
    (spawner,) = children(agent.pid)
    return children(spawner)


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(one) for one in text.split()]
