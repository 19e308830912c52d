"""How jobs end against their will: limits, stops, and what they leave behind."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from fleetform.agents.host import limits
from fleetform.agents.protocol.states import Cause, JobState
from integration.agent.rig import Agent, await_true, is_alive, job, managing, uid

PYTHON = sys.executable

HUNGRY = (
    f"{PYTHON} -c 'b = bytearray(300_000_000); b[::4096] = b[::4096]; import time; time.sleep(9)'"
)


def test_max_duration(agent: Agent) -> None:
    """A job that runs longer than it may is ended by the host, and that is said."""

    async def go() -> None:
        async with managing(agent) as manager:
            began = time.monotonic()
            # Long enough that the shell has said its word, whatever else the machine does.
            record = await manager.run(job("a", "echo on", "sleep 300", max_duration_seconds=3))
            assert record.cause is Cause.MAX_DURATION
            assert record.exit_code is None
            assert 2.9 < time.monotonic() - began < 60
            assert manager.output(uid("a")).startswith(b"on\n")

    asyncio.run(go())


def test_stop_of_the_stubborn(agent: Agent) -> None:
    """What ignores TERM, left its session and lost its parent is gone when the stop is done."""
    child = f"{PYTHON} -c 'import signal, time; signal.signal(15, 1); print(\"deaf\", flush=True); time.sleep(99)'"
    escaped = "setsid sh -c 'trap \"\" TERM; sleep 98 & echo $! ; echo $$; sleep 97' &"

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", escaped, f"{child} &", "wait", stop_grace_seconds=1)
            await manager.session.prepare(spec)
            await manager.until(lambda: len(manager.output(uid("a")).split()) == 3)
            pids = [int(word) for word in manager.output(uid("a")).split() if word.isdigit()]
            assert all(map(is_alive, pids))
            reply = await manager.session.stop(
                spec.key, spec.job_uid, 2, cause=Cause.STOPPED, grace_seconds=None
            )
            assert reply.ok
            record = await manager.record(uid("a"))
            assert record.cause is Cause.STOPPED
            assert record.gen == 2
            assert not any(map(is_alive, pids))

    asyncio.run(go())


def test_stop_is_gentle_first(agent: Agent) -> None:
    """TERM comes before KILL: a job with a handler ends in its own way."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "trap 'echo goodbye; exit 0' TERM", "echo ready", "sleep 60 & wait")
            await manager.session.prepare(spec)
            await manager.until(lambda: b"ready" in manager.output(uid("a")))
            await manager.session.stop(
                spec.key, spec.job_uid, 2, cause=Cause.STOPPED, grace_seconds=30
            )
            record = await manager.record(uid("a"))
            assert record.cause is Cause.STOPPED
            assert manager.output(uid("a")) == b"ready\ngoodbye\n"

    asyncio.run(go())


def test_checkpoint_goes_to_who_catches_it(agent: Agent) -> None:
    """The checkpoint signal reaches processes with a handler and does not kill the others."""
    catcher = (
        f"{PYTHON} -u -c 'import signal, time\n"
        'signal.signal(signal.SIGUSR1, lambda *_: print("saved"))\n'
        'print("ready")\n'
        "while True: time.sleep(0.05)'"
    )

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job(
                "a",
                "sleep 60 &",
                catcher,
                checkpoint_signal="USR1",
                checkpoint_lead_seconds=3,
            )
            await manager.session.prepare(spec)
            await manager.until(lambda: b"ready" in manager.output(uid("a")))
            began = time.monotonic()
            await manager.session.stop(
                spec.key, spec.job_uid, 2, cause=Cause.STOPPED, grace_seconds=None
            )
            await manager.until(lambda: b"saved" in manager.output(uid("a")))
            record = await manager.record(uid("a"))
            assert record.cause is Cause.STOPPED
            assert time.monotonic() - began > 2.9

    asyncio.run(go())


def test_no_wait_for_a_checkpoint_nobody_makes(agent: Agent) -> None:
    """Where no process catches the checkpoint signal, TERM follows at once."""

    async def go() -> None:
        async with managing(agent) as manager:
            fields = {"checkpoint_signal": "USR1", "checkpoint_lead_seconds": 300}
            spec = job("a", "echo ready", "sleep 60", **fields)
            await manager.session.prepare(spec)
            await manager.until(lambda: b"ready" in manager.output(uid("a")))
            began = time.monotonic()
            await manager.session.stop(
                spec.key, spec.job_uid, 2, cause=Cause.STOPPED, grace_seconds=None
            )
            await manager.record(uid("a"))
            assert time.monotonic() - began < 60

    asyncio.run(go())


def test_what_a_job_leaves_is_cleaned(agent: Agent) -> None:
    """Processes left in the background are gone before the end is said, and it keeps its code."""

    async def go() -> None:
        async with managing(agent) as manager:
            record = await manager.run(job("a", "setsid sleep 96 & echo $!", "exit 3"))
            assert record.exit_code == 3
            assert not is_alive(int(manager.output(uid("a"))))

    asyncio.run(go())


def test_stop_before_start(agent: Agent) -> None:
    """A prepared job that is stopped never starts, and neither does one that comes after its stop."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "echo ran", go=False)
            await manager.session.prepare(spec)
            await manager.record(uid("a"), JobState.PREPARED)
            await manager.session.stop(
                spec.key, spec.job_uid, 3, cause=Cause.STOPPED, grace_seconds=None
            )
            record = await manager.record(uid("a"))
            assert (record.cause, record.tombstone) == (Cause.NEVER_STARTED, True)
            reply = await manager.session.start(spec.key, 2, spec.boot_id)
            assert (reply.ok, reply.code) == (False, "stale")
            late = job("b", "echo ran")
            await manager.session.stop(
                late.key, late.job_uid, 2, cause=Cause.STOPPED, grace_seconds=None
            )
            reply = await manager.session.prepare(late)
            assert (reply.ok, reply.code) == (False, "stale")
            assert not agent.job(uid("a")).exists()
            assert not agent.job(uid("b")).exists()

    asyncio.run(go())


def test_stop_right_after_the_start(agent: Agent) -> None:
    """A stop that comes while the supervisor is being forked is heard all the same."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "sleep 60")
            prepared = asyncio.ensure_future(manager.session.prepare(spec))
            stopped = asyncio.ensure_future(
                manager.session.stop(
                    spec.key, spec.job_uid, 2, cause=Cause.STOPPED, grace_seconds=1
                )
            )
            await asyncio.gather(prepared, stopped)
            record = await manager.record(uid("a"))
            assert record.cause in {Cause.STOPPED, Cause.NEVER_STARTED}

    asyncio.run(go())


@pytest.mark.parametrize("kind", limits.KINDS)
def test_memory_limit(stopped: Agent, kind: str) -> None:
    """A job that takes more memory than it may is killed, and the cause is said."""
    if kind not in limits.available():
        pytest.skip(f"{kind} is not delegated here")
    stopped.environment = {"FLEETFORM_AGENT_LIMITS": kind}
    stopped.start()

    async def go() -> None:
        async with managing(stopped) as manager:
            assert manager.session.report.limits[0] == kind
            record = await manager.run(job("a", HUNGRY, memory_bytes=100_000_000))
            assert record.cause is Cause.OOM
            assert "100000000 bytes" in record.message
            modest = await manager.run(job("b", "echo fits", memory_bytes=100_000_000))
            assert modest.exit_code == 0

    asyncio.run(go())


def test_no_group_is_left(agent: Agent) -> None:
    """The control group of a job is gone when the job is."""
    if limits.available()[0] == "poll":
        pytest.skip("no control groups are delegated here")

    async def go() -> str:
        async with managing(agent) as manager:
            await manager.run(job("group", "cat /proc/self/cgroup", memory_bytes=100_000_000))
            groups = manager.output(uid("group")).decode()
            assert "fleetform-job-group" in groups
            line = next(line for line in groups.splitlines() if "fleetform-job-group" in line)
            return line.rpartition(":")[2]

    name = asyncio.run(go())
    mounts = ("/sys/fs/cgroup", "/sys/fs/cgroup/memory")
    assert not any(Path(mount + name).exists() for mount in mounts)


def test_shutdown(agent: Agent) -> None:
    """An agent with jobs refuses to go unless forced, and then ends them first."""

    async def go() -> None:
        async with managing(agent) as manager:
            pid = agent.pid
            spec = job("a", "echo ready; sleep 60")
            await manager.session.prepare(spec)
            await manager.until(lambda: b"ready" in manager.output(uid("a")))
            supervisor = agent.supervisor(uid("a"))
            reply = await manager.session.shutdown(force=False)
            assert (reply.ok, reply.code) == (False, "busy")
            reply = await manager.session.shutdown(force=True)
            assert reply.ok
            record = await manager.record(uid("a"))
            assert record.cause is Cause.STOPPED
            await_true(lambda: not is_alive(pid) and not is_alive(supervisor))

    asyncio.run(go())
