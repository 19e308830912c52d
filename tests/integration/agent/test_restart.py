"""What survives the agent, its supervisors and the host, each killed while jobs run."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from fleetform.agents.client.errors import HelloRejected
from fleetform.agents.protocol.messages import Cursor
from fleetform.agents.protocol.states import Cause, JobState
from integration.agent.rig import (
    Agent,
    await_true,
    descendants,
    dial,
    is_alive,
    job,
    kill,
    managing,
    uid,
)


def test_agent_killed_while_a_job_runs(agent: Agent) -> None:
    """A job outlives its agent; the next one finds it, and its output and end are whole."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job(
                "a",
                "echo before",
                "while ! test -e go; do sleep 0.02; done",
                "echo after",
                "exit 6",
            )
            await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")) == b"before\n")
            agent.kill()
            await manager.until(lambda: manager.ended)
        agent.start()
        async with managing(agent) as manager:
            (known,) = manager.session.welcome.records or ()
            assert known.state is JobState.RUNNING
            await manager.session.follow_log(uid("a"), 7)
            (agent.job(uid("a")) / "work" / "go").touch()
            record = await manager.record(uid("a"))
            assert record.exit_code == 6
            assert manager.output(uid("a")) == b"after\n"
            assert manager.pieces(uid("a"))[0].offset == 7

    asyncio.run(go())


def test_job_that_ends_without_an_agent(agent: Agent) -> None:
    """A job that ends while no agent is there is finished for the next one, with all it wrote."""

    async def go() -> None:
        async with managing(agent) as manager:
            wait = "while ! test -e go; do sleep 0.02; done"
            spec = job("a", "echo ready", wait, "echo done", "exit 2")
            await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")))
            supervisor = agent.supervisor(uid("a"))
            agent.kill()
        (agent.job(uid("a")) / "work" / "go").touch()
        await_true(lambda: not is_alive(supervisor))
        agent.start()
        async with managing(agent) as manager:
            (record,) = manager.session.welcome.records or ()
            assert (record.state, record.exit_code) == (JobState.FINISHED, 2)
            await manager.session.follow_log(uid("a"), 0)
            await manager.until(lambda: [p for p in manager.pieces(uid("a")) if p.complete])
            assert manager.output(uid("a")) == b"ready\ndone\n"

    asyncio.run(go())


def test_stop_after_a_restart(agent: Agent) -> None:
    """An agent can stop a job that it has not started."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "echo ready", "sleep 60")
            await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")))
            agent.kill()
        agent.start()
        async with managing(agent) as manager:
            await manager.session.stop(
                spec.key, spec.job_uid, 2, cause=Cause.STOPPED, grace_seconds=1
            )
            record = await manager.record(uid("a"))
            assert record.cause is Cause.STOPPED

    asyncio.run(go())


def test_prepared_job_survives(agent: Agent) -> None:
    """What is prepared stays so over a restart, and then starts once."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "echo ran", go=False)
            await manager.session.prepare(spec)
            await manager.record(uid("a"), JobState.PREPARED)
        agent.kill()
        agent.start()
        async with managing(agent) as manager:
            (record,) = manager.session.welcome.records or ()
            assert record.state is JobState.PREPARED
            await manager.session.follow_log(uid("a"), 0)
            assert (await manager.session.start(spec.key, 2, spec.boot_id)).ok
            record = await manager.record(uid("a"))
            assert record.exit_code == 0
            assert manager.output(uid("a")) == b"ran\n"

    asyncio.run(go())


def test_supervisor_killed(agent: Agent) -> None:
    """A job whose supervisor is killed is lost, at once, and none of its processes stays."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "setsid sleep 95 &", "echo ready", "sleep 94")
            await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")))
            supervisor = agent.supervisor(uid("a"))
            pids = agent.processes(uid("a"), 3)
            kill(supervisor)
            record = await manager.record(uid("a"))
            assert record.cause is Cause.LOST
            assert "SIGKILL" in record.message
            assert not any(map(is_alive, pids))
            again = await manager.session.prepare(spec)
            assert again.body["record"]["cause"] == "lost"

    asyncio.run(go())


def test_agent_and_supervisor_killed(agent: Agent) -> None:
    """With both gone, the next agent ends what is left, says lost and never runs it again."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "setsid sleep 93 &", "echo ready", "sleep 92")
            await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")))
            supervisor = agent.supervisor(uid("a"))
            pids = agent.processes(uid("a"), 3)
            agent.kill()
            kill(supervisor)
            assert all(map(is_alive, pids))
        agent.start()
        async with managing(agent) as manager:
            if (manager.session.welcome.records or ())[0].state is not JobState.FINISHED:
                await manager.record(uid("a"))
            assert not any(map(is_alive, pids))
        async with managing(agent) as manager:
            (record,) = manager.session.welcome.records or ()
            assert record.cause is Cause.LOST

    asyncio.run(go())


_UNTAGGED = "env -i {sleep} 95 &"
"""As `sudo`, `su -` and many launchers do: nothing of the job is in its environment."""


def test_what_cleared_its_environment_ends_with_its_supervisor(agent: Agent) -> None:
    """It is nobody's by then but the host's; what runs of another job is not touched."""
    untagged = f"cd /; {_UNTAGGED.format(sleep='setsid sleep')}"

    async def go() -> None:
        async with managing(agent) as manager:
            for name in "ab":
                spec = job(name, f"{untagged} echo ready; sleep 94")
                await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")) and manager.output(uid("b")))
            ours, others = (agent.processes(uid(name), 3) for name in "ab")
            await_true(lambda: any(b"sleep\0" + b"95" in _command(pid) for pid in ours))
            kill(agent.supervisor(uid("a")))
            record = await manager.record(uid("a"))
            assert record.cause is Cause.LOST
            assert "would not die" not in record.message
            assert not any(map(is_alive, ours))
            assert all(map(is_alive, others))
            assert is_alive(agent.supervisor(uid("b")))
            assert (await manager.session.prepare(job("c", "true"))).ok
            assert (await manager.record(uid("c"))).exit_code == 0

    asyncio.run(go())


def test_what_cleared_its_environment_is_found_by_where_it_is(agent: Agent) -> None:
    """Also where agent and supervisor are gone; who only looks around in there is let be."""

    async def go() -> None:
        async with managing(agent) as manager:
            for name in "ab":
                spec = job(name, f"{_UNTAGGED.format(sleep='setsid sleep')} echo ready; sleep 94")
                await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")) and manager.output(uid("b")))
            ours, others = (agent.processes(uid(name), 3) for name in "ab")
            await_true(lambda: any(b"sleep\0" + b"95" in _command(pid) for pid in ours))
            supervisor = agent.supervisor(uid("a"))
            agent.kill()
            kill(supervisor)
        visitor = _visit(agent.job(uid("a")))
        try:
            agent.start()
            async with managing(agent) as manager:
                records = manager.session.welcome.records or ()
                (found,) = [one for one in records if one.job_uid == uid("a")]
                if found.state is not JobState.FINISHED:
                    await manager.record(uid("a"))
                assert not any(map(is_alive, ours))
                assert all(map(is_alive, others))
                assert visitor.poll() is None
        finally:
            visitor.kill()
            visitor.wait()

    asyncio.run(go())


def _visit(directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"], cwd=directory, env={})


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_reboot(stopped: Agent) -> None:
    """After a reboot, jobs without a result are lost; a start from before it is refused."""
    stopped.environment = {"FLEETFORM_AGENT_BOOT_ID": "boot-1"}
    stopped.start()

    async def go() -> None:
        async with managing(stopped) as manager:
            fields = {"boot_id": "boot-1"}
            waiting = job("a", "echo ran", go=False, **fields)
            running = job("b", "echo ready; sleep 60", **fields)
            await manager.run(job("c", "exit 9", **fields))
            for spec in (waiting, running):
                assert (await manager.session.prepare(spec)).ok
            await manager.until(lambda: manager.output(uid("b")))
            install = manager.session.welcome.install_id
            supervisor = stopped.supervisor(uid("b"))
            pids = [supervisor, *stopped.processes(uid("b"), 2)]
            stopped.kill()
            for pid in pids:
                kill(pid)
        stopped.environment = {"FLEETFORM_AGENT_BOOT_ID": "boot-2"}
        stopped.start()
        async with managing(stopped) as manager:
            welcome = manager.session.welcome
            assert (welcome.boot_id, welcome.install_id) == ("boot-2", install)
            records = {r.job_uid: r for r in welcome.records or ()}
            assert records[uid("a")].cause is Cause.LOST
            assert records[uid("b")].cause is Cause.LOST
            assert records[uid("c")].exit_code == 9
            reply = await manager.session.start(waiting.key, 2, "boot-1")
            assert (reply.ok, reply.code) == (False, "boot_changed")
            reply = await manager.session.prepare(job("d", "true", **fields))
            assert (reply.ok, reply.code) == (False, "boot_changed")

    asyncio.run(go())


def test_second_daemon(agent: Agent) -> None:
    """A second daemon of the same root says that there is one, and leaves it alone."""
    pid = agent.pid
    assert "already" in agent.start()
    assert agent.pid == pid
    assert is_alive(pid)


def test_idle_exit(stopped: Agent) -> None:
    """An agent nobody needs ends, its spawner too; one with a job or a connection stays."""
    stopped.start()

    async def begin() -> None:
        async with managing(stopped) as manager:
            await manager.session.prepare(job("a", "while ! test -e go; do sleep 0.02; done"))
            await manager.record(uid("a"), JobState.RUNNING)

    asyncio.run(begin())
    stopped.kill()
    # It has a job from its first moment on, so that nothing here depends on who is quicker.
    stopped.start(idle_exit=0.4)
    pid = stopped.pid
    spawners = descendants(pid)
    assert len(spawners) == 1

    async def go() -> None:
        await asyncio.sleep(0.8)
        assert is_alive(pid)
        async with managing(stopped) as manager:
            (stopped.job(uid("a")) / "work" / "go").touch()
            await manager.record(uid("a"))
            await asyncio.sleep(0.8)
            assert is_alive(pid)

    asyncio.run(go())
    await_true(lambda: not is_alive(pid) and not is_alive(spawners[0]))
    assert not (stopped.root / "agent.sock").exists()
    stopped.start(idle_exit=0)

    async def see() -> None:
        async with managing(stopped) as manager:
            (record,) = manager.session.welcome.records or ()
            assert record.exit_code == 0

    asyncio.run(see())


def test_spawner_killed(agent: Agent) -> None:
    """Without its spawner an agent ends, and its jobs go on to their ends."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "echo ready", "while ! test -e go; do sleep 0.02; done", "exit 8")
            await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")))
            pid = agent.pid
            spawner = next(
                p
                for p in descendants(pid)
                if p not in descendants(agent.supervisor(uid("a")))
                and p != agent.supervisor(uid("a"))
            )
            kill(spawner)
            await_true(lambda: not is_alive(pid))
        (agent.job(uid("a")) / "work" / "go").touch()
        agent.start()
        async with managing(agent) as manager:
            (record,) = manager.session.welcome.records or ()
            if record.state is not JobState.FINISHED:
                record = await manager.record(uid("a"))
            assert record.exit_code == 8

    asyncio.run(go())


def test_terminated_gently(agent: Agent) -> None:
    """An agent that is asked to end leaves its jobs running."""

    async def go() -> None:
        async with managing(agent) as manager:
            await manager.session.prepare(job("a", "echo ready", "sleep 60"))
            await manager.until(lambda: manager.output(uid("a")))
            pid, supervisor = agent.pid, agent.supervisor(uid("a"))
            os.kill(pid, signal.SIGTERM)
            await_true(lambda: not is_alive(pid))
            assert is_alive(supervisor)

    asyncio.run(go())


def test_events_come_again(agent: Agent) -> None:
    """What was not acknowledged comes again after a reconnect; what was does not."""

    async def go() -> None:
        async with managing(agent) as manager:
            await manager.run(job("a", "true"))
            await manager.acknowledge()
            seen = manager.events[-1].number
            await manager.run(job("b", "true"))
            log_id = manager.session.welcome.log_id
        async with managing(agent, cursor=Cursor(log_id, seen)) as manager:
            assert manager.session.welcome.records is None
            record = await manager.record(uid("b"))
            assert record.exit_code == 0
            assert all(event.number > seen for event in manager.events)
        async with managing(agent, cursor=Cursor(log_id, 10**6)) as manager:
            assert len(manager.session.welcome.records or ()) == 2
        async with managing(agent, cursor=Cursor("another", 1)) as manager:
            assert len(manager.session.welcome.records or ()) == 2

    asyncio.run(go())


def test_one_manager(agent: Agent) -> None:
    """A higher fence ends the older connection, and a lower one is turned away."""

    async def go() -> None:
        async with managing(agent, fence=3) as older, managing(agent, fence=4) as newer:
            await older.until(lambda: older.ended)
            with pytest.raises(HelloRejected) as caught:
                await dial(agent, fence=3)
            assert caught.value.answer.code == "old_fence"
            record = await newer.run(job("a", "true"))
            assert record.exit_code == 0

    asyncio.run(go())


def test_folder_that_is_removed(agent: Agent) -> None:
    """The next agent is another install, and ends what the one before left at work."""

    async def go() -> None:
        async with managing(agent) as manager:
            first = manager.session.welcome.install_id
            await manager.session.prepare(job("a", "sleep 600 & env -i sleep 600"))
            at_work = agent.processes(uid("a"), 3)
            supervisor = agent.supervisor(uid("a"))
            before = agent.pid
            shutil.rmtree(agent.root)
        agent.start()
        assert not any(map(is_alive, (before, supervisor, *at_work)))
        async with managing(agent) as manager:
            assert manager.session.welcome.records == ()
            assert manager.session.welcome.install_id != first

    asyncio.run(go())


def test_folder_that_is_exchanged_for_an_older_copy(agent: Agent, tmp_path: Path) -> None:
    """It knows what the copy knows; that what came later was ended shows, for it is another install."""

    async def go() -> None:
        async with managing(agent) as manager:
            first = manager.session.welcome.install_id
            await manager.session.prepare(job("a", "exit 4"))
            await manager.record(uid("a"))
        agent.kill()
        copy = tmp_path / "copy"
        _copy(agent.root, copy)
        agent.start()
        async with managing(agent) as manager:
            await manager.session.prepare(job("b", "sleep 600"))
            at_work = agent.processes(uid("b"), 1)
            supervisor = agent.supervisor(uid("b"))
        agent.kill()
        # The supervisor of b mends its directory while that is deleted.
        while agent.root.exists():
            shutil.rmtree(agent.root, ignore_errors=True)
        _copy(copy, agent.root)
        agent.start()
        assert not any(map(is_alive, (supervisor, *at_work)))
        async with managing(agent) as manager:
            assert [one.exit_code for one in manager.session.welcome.records or ()] == [4]
            assert manager.session.welcome.install_id != first

    asyncio.run(go())


def _copy(folder: Path, place: Path) -> None:
    """As a backup does, pipes and sockets with it."""
    subprocess.run(["cp", "-a", folder, place], check=True)


def test_folder_that_is_moved_away(agent: Agent, tmp_path: Path) -> None:
    """No agent begins at its old place while a job of it is at work; put back, it goes on."""

    async def go() -> None:
        async with managing(agent) as manager:
            await manager.session.prepare(job("a", "while ! test -e go; do sleep 0.02; done"))
            supervisor = agent.supervisor(uid("a"))
        agent.kill()
        aside = tmp_path / "aside"
        agent.root.rename(aside)
        with pytest.raises(AssertionError, match=f"moved to {aside}, .*pid {supervisor}"):
            agent.start()
        shutil.rmtree(agent.root)
        aside.rename(agent.root)
        agent.start()
        async with managing(agent) as manager:
            (agent.job(uid("a")) / "work" / "go").touch()
            assert (await manager.record(uid("a"))).exit_code == 0

    asyncio.run(go())
