"""What a job was told does not stay on its host when the job is over and forgotten."""

from __future__ import annotations

import asyncio
import contextlib
import os
import zlib
from pathlib import Path

from fleetform.agents.protocol.states import Cause, JobState
from integration.agent.rig import Agent, await_true, job, kill, managing, uid

SECRET = "planted-7d1f0c2e"
ENV = {"TOKEN": SECRET}


def found(agent: Agent) -> list[Path]:
    """Return the files of the agent's folder that hold the value."""
    holding = []
    # Without `rglob`: it fails when the agent empties its trash meanwhile.
    for folder, _, names in os.walk(agent.root):
        for path in (Path(folder, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and SECRET.encode() in path.read_bytes():
                    holding.append(path)
    return holding


def test_environment_of_a_forgotten_job(agent: Agent) -> None:
    """No file has it after the job was forgotten, however it ended, nor after the next start."""

    async def go() -> None:
        async with managing(agent) as manager:
            jobs = [
                job("done", 'test "$TOKEN" = planted-7d1f""0c2e', env=ENV),
                job("failed", "echo left > file; exit 3", env=ENV),
                job("stopped", "echo ready; sleep 1000", env=ENV),
                job("never", "true", env=ENV, go=False),
                job("lost", "echo ready; sleep 1000", env=ENV),
            ]
            for one in jobs:
                assert (await manager.session.prepare(one)).ok
            await manager.record(uid("never"), JobState.PREPARED)
            await manager.until(lambda: manager.output(uid("stopped")))
            await manager.until(lambda: manager.output(uid("lost")))
            assert (await manager.record(uid("done"))).exit_code == 0
            for one in jobs[2:4]:
                await manager.session.stop(
                    one.key, one.job_uid, 2, cause=Cause.STOPPED, grace_seconds=0
                )
            kill(agent.supervisor(uid("lost")))
            for one in jobs:
                record = await manager.record(one.job_uid)
                assert (await manager.session.forget([record.key])).ok
            await asyncio.to_thread(await_true, lambda: not found(agent))
            agent.kill()
        agent.start()
        assert not found(agent)

    asyncio.run(go())


def test_environment_in_the_journal(agent: Agent) -> None:
    """It is never there, not even of a job that waits for its start: its directory has it."""

    async def go() -> None:
        async with managing(agent) as manager:
            assert (await manager.session.prepare(job("a", "true", env=ENV, go=False))).ok
            await manager.record(uid("a"), JobState.PREPARED)
            assert found(agent) == [agent.job(uid("a")) / "launch"]
            agent.kill()
        agent.start()
        assert found(agent) == [agent.job(uid("a")) / "launch"]

    asyncio.run(go())


def test_journal_of_an_earlier_release(agent: Agent) -> None:
    """What such an agent has written down of its jobs is taken out at the next start."""
    agent.kill()
    journal = agent.root / "journal"
    line = (
        b'{"kind":"job","record":{"key":["a",1,0],"job_uid":"a","gen":1,"digest":"d","state":'
        b'"finished","cause":"exited","exit_code":0},"boot_id":"b","job":{"env":{"TOKEN":"%s"}}}'
    ) % SECRET.encode()
    journal.write_bytes(journal.read_bytes() + b"%08x %s\n" % (zlib.crc32(line), line))
    assert found(agent) == [journal]
    agent.start()
    assert not found(agent)
