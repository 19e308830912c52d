"""The agent as an ordinary user: no control groups of its own, mounts by a user namespace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleetform.agents.client.bundle import make_bundle
from fleetform.agents.protocol.messages import Mount
from fleetform.agents.protocol.states import Cause
from integration.agent.rig import Agent, await_true, is_alive, job, kill, managing, uid
from integration.agent.test_hiding import hide, known

NOBODY = 65534


def _python() -> str | None:
    """Find a Python that anybody may execute."""
    for name in ("/usr/bin/python3", "/usr/local/bin/python3"):
        ran = subprocess.run(
            [name, "-c", "import sys; sys.exit(sys.version_info < (3, 9))"],
            user=NOBODY, group=NOBODY, cwd="/", check=False,
        ) if os.geteuid() == 0 and Path(name).exists() else None  # fmt: skip
        if ran is not None and ran.returncode == 0:
            return name
    return None


UNKNOWN = 54_321
"""An account that no user database has, as in a container that runs under any number."""


@pytest.fixture
def start() -> Iterator[Callable[[int], Agent]]:
    """Start an agent as another account, in a folder of its own, which pytest's own cannot hold."""
    python = _python()
    if python is None:
        pytest.skip("becoming nobody needs root, and a Python that nobody may execute")
    with contextlib.ExitStack() as stack:

        def start(account: int) -> Agent:
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetform-other-"))
            )
            archive = make_bundle(folder)
            # Its owner alone can read it.
            for path in (folder, archive):
                os.chown(path, account, account)
            agent = Agent(folder / "agent")
            stack.callback(agent.close)
            command = [python, "-I", "-S", str(archive), "daemon", "--root", str(agent.root)]
            started = subprocess.run(
                command, user=account, group=account, extra_groups=[], cwd="/",
                capture_output=True, check=False, timeout=60,
            )  # fmt: skip
            assert started.returncode == 0, started.stderr.decode() + agent.log()
            return agent

        yield start


@pytest.fixture
def agent(start: Callable[[int], Agent]) -> Agent:
    return start(NOBODY)


def test_an_account_without_a_name_has_a_home(start: Callable[[int], Agent]) -> None:
    """The job's own folder for temporary files, which it can write to; its number is its name."""
    agent = start(UNKNOWN)

    async def go() -> None:
        async with managing(agent) as manager:
            command = 'touch "$HOME/x"; test "$HOME" = "$TMPDIR" && echo "$USER $LOGNAME"'
            assert (await manager.run(job("a", command))).exit_code == 0
            assert manager.output(uid("a")).decode() == f"{UNKNOWN} {UNKNOWN}\n"

    asyncio.run(go())


def test_job(agent: Agent) -> None:
    """A job runs as who started the agent, and its memory is limited by looking."""

    async def go() -> None:
        async with managing(agent) as manager:
            assert manager.session.report.limits == ("poll",)
            record = await manager.run(job("a", "id -u", memory_bytes=10**9))
            assert record.exit_code == 0
            assert manager.output(uid("a")) == b"%d\n" % NOBODY

    asyncio.run(go())


def test_mount(agent: Agent) -> None:
    """A volume at an absolute path works by a user namespace, or the preparation says why not."""
    folder = agent.root.parent
    volume, target = folder / "volume", folder / "target"
    volume.mkdir()
    (volume / "file").write_text("inside\n")
    os.chown(volume, NOBODY, NOBODY)

    async def go() -> None:
        async with managing(agent) as manager:
            mount = Mount("data", str(volume), str(target))
            commands = (f"cat {target}/file", f"touch {target}/new", "id -u")
            record = await manager.run(job("a", *commands, mounts=(mount,)))
            if record.cause is Cause.PREPARE_FAILED:
                assert "user namespaces" in record.message
                return
            assert record.exit_code == 0
            assert manager.output(uid("a")) == b"inside\n%d\n" % NOBODY
            assert (volume / "new").exists()
            fixed = Mount("data", str(volume), str(target), read_only=True)
            record = await manager.run(job("b", f"touch {target}/other", mounts=(fixed,)))
            assert record.exit_code != 0, manager.output(uid("b"))
            assert b"Read-only" in manager.output(uid("b"))
            nowhere = Mount("data", str(volume), "/no-such-place/for-nobody")
            record = await manager.run(job("c", "true", mounts=(nowhere,)))
            assert record.cause is Cause.PREPARE_FAILED
            assert "/no-such-place/for-nobody" in record.message

    asyncio.run(go())


def test_a_job_that_hides(agent: Agent, hidden: list[int]) -> None:
    """It is found by its tag when supervisor, spawner and agent were killed, and ended."""

    async def go() -> None:
        async with managing(agent) as manager:
            ours = await hide(agent, manager, hidden)
            for pid in reversed(ours):
                with contextlib.suppress(ProcessLookupError):
                    kill(pid)
        assert is_alive(hidden[0])
        await asyncio.to_thread(await_true, lambda: not any(map(is_alive, ours)))
        agent.start()
        async with managing(agent) as manager:
            assert (await known(manager)).cause is Cause.LOST
            assert not is_alive(hidden[0])

    asyncio.run(go())


def test_a_job_that_stops_its_supervisor_and_the_spawner(agent: Agent) -> None:
    """They are continued, and its time limit holds."""

    async def go() -> None:
        async with managing(agent) as manager:
            stop = 'kill -STOP $PPID $(cut -d" " -f4 /proc/$PPID/stat)'
            spec = job("a", stop, "sleep 1000", max_duration_seconds=4, stop_grace_seconds=1)
            assert (await manager.run(spec)).cause is Cause.MAX_DURATION

    asyncio.run(go())
