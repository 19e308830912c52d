"""Commands inside a running job, with a real agent, real processes and real terminals."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fleetform.agents.client.channel import Channel
from fleetform.agents.client.errors import ConnectionLost, RequestRefused
from fleetform.agents.client.session import Session
from fleetform.agents.protocol import exec_pieces
from fleetform.agents.protocol.messages import StartJob
from fleetform.agents.protocol.states import JobState
from integration.agent.rig import Agent, await_true, dial, is_alive, job, managing, uid

DIGEST = sha256(Path(__file__).read_bytes()).hexdigest()
INPUT = bytes([exec_pieces.DATA])
ENDS = bytes([exec_pieces.END_OF_INPUT])


class Command:
    """A command that was started in a job, and what it has printed."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.printed = b""
        self.errors = b""

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(30):
            while text not in self.printed:
                assert await self._read(), self.printed + self.errors

    async def end(self) -> dict[str, Any]:
        async with asyncio.timeout(30):
            while await self._read():
                pass
        assert self.channel.ended is not None
        assert not self.channel.ended.code, self.channel.ended
        return self.channel.ended.body

    async def _read(self) -> bool:
        piece = await self.channel.read()
        if piece is not None and piece[0] == exec_pieces.ERRORS:
            self.errors += piece[1:]
        elif piece is not None:
            self.printed += piece[1:]
        return piece is not None


@contextlib.asynccontextmanager
async def entered(agent: Agent, started: StartJob) -> AsyncIterator[Session]:
    """A connection that only looks, while another controller manages the host and a job runs."""
    async with managing(agent, fence=5) as manager:
        assert (await manager.session.prepare(started)).ok
        await manager.record(started.job_uid, JobState.RUNNING)
        session = await dial(agent, fence=0, look=True)
        try:
            yield session
        finally:
            await session.close()
            assert not manager.ended


async def run(session: Session, started: StartJob, *argv: str, **more: Any) -> Command:
    parameters = {"key": str(started.key), "job_uid": started.job_uid, "argv": list(argv), **more}
    return Command(await session.open_channel("exec", parameters))


def read_limits(pid: int) -> str:
    return Path(f"/proc/{pid}/limits").read_text()


TERMINAL = {"rows": 7, "columns": 33, "term": "vt100"}


def test_a_command_finds_what_its_job_has(agent: Agent) -> None:
    """Its directory, variables, umask, limits and tag; both streams, and the exit code."""
    started = job("a", "mkdir here", "cd here", "exec sleep 300", env={"COLOUR": "blue"})

    async def go() -> None:
        async with entered(agent, started) as session:
            shell = "pwd; umask; echo $COLOUR $FLEETFORM_JOB_UID; echo wrong >&2; ulimit -n; exit 7"
            command = await run(session, started, "sh", "-c", shell)
            assert await command.end() == {"exit_code": 7}
            folder, mask, names, files = command.printed.decode().split("\n")[:4]
            assert Path(folder) == agent.job(uid("a")) / "work"
            assert (int(mask, 8), names) == (0o022, f"blue {uid('a')}")
            assert command.errors == b"wrong\n"
            limits = read_limits(agent.processes(uid("a"), 1)[0])
            assert f" {files} " in limits
            tags = [line for line in limits.splitlines() if "realtime timeout" in line]
            command = await run(session, started, "grep", "realtime timeout", "/proc/self/limits")
            assert await command.end() == {"exit_code": 0}
            assert command.printed.decode().splitlines() == tags

    asyncio.run(go())


def test_what_cannot_be_executed(agent: Agent) -> None:
    """The exit codes are those of a shell, and the reason is on standard error."""
    started = job("a", "exec sleep 300")

    async def go() -> None:
        async with entered(agent, started) as session:
            command = await run(session, started, "surely-no-command")
            assert await command.end() == {"exit_code": 127}
            assert command.errors == b"fleetform: surely-no-command: No such file or directory\n"
            command = await run(session, started, "/etc/passwd")
            assert await command.end() == {"exit_code": 126}
            command = await run(session, started, "sh", "-c", "kill -SEGV $$")
            assert await command.end() == {"signal": 11}

    asyncio.run(go())


def test_much_goes_through_in_both_directions(agent: Agent) -> None:
    """More than any credit; a slow reader loses nothing."""
    started = job("a", "exec sleep 300")
    content = os.urandom(1 << 20) * 6

    async def go() -> None:
        async with entered(agent, started) as session:
            command = await run(session, started, "cat")

            async def feed() -> None:
                for begin in range(0, len(content), 10_000):
                    await command.channel.write(INPUT + content[begin : begin + 10_000])
                await command.channel.write(ENDS)

            feeding = asyncio.create_task(feed())
            await asyncio.sleep(0.5)
            assert await command.end() == {"exit_code": 0}
            await feeding
            assert command.printed == content

    asyncio.run(go())


def test_input_that_is_not_taken_ends_with_the_command(agent: Agent) -> None:
    """A command that closes its input still prints, and the sender does not wait."""
    started = job("a", "exec sleep 300")

    async def go() -> None:
        async with entered(agent, started) as session:
            command = await run(session, started, "sh", "-c", "exec 0<&-; sleep 0.3; echo end")
            async with asyncio.timeout(30):
                for _ in range(100):
                    await command.channel.write(INPUT + bytes(30_000))
            assert await command.end() == {"exit_code": 0}
            assert command.printed == b"end\n"

    asyncio.run(go())


def test_a_terminal(agent: Agent) -> None:
    """It has our size and name, hears of a new size, and its keys are signals."""
    started = job("a", "exec sleep 300")

    async def go() -> None:
        async with entered(agent, started) as session:
            script = "trap 'stty size; echo resized' WINCH; stty size; echo $TERM; tty; echo ready; while :; do sleep 0.05; done"
            command = await run(session, started, "sh", "-c", script, **TERMINAL)
            await command.until(b"ready")
            assert command.printed.startswith(b"7 33\r\nvt100\r\n/dev/pts/")
            command.channel.write_now(exec_pieces.resize(exec_pieces.Size(50, 120)))
            await command.until(b"50 120\r\nresized")
            await command.channel.write(INPUT + b"\x03")
            assert await command.end() == {"signal": 2}
            command = await run(session, started, "cat", **TERMINAL)
            await command.channel.write(INPUT + b"a line\n" + b"\x04")
            assert await command.end() == {"exit_code": 0}
            assert command.printed == b"a line\r\na line\r\n"

    asyncio.run(go())


def test_signals_without_a_terminal(agent: Agent) -> None:
    """They go to the group of the command, by name; what is no signal ends the channel."""
    started = job("a", "exec sleep 300")

    async def go() -> None:
        async with entered(agent, started) as session:
            script = "trap 'echo stopped; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
            command = await run(session, started, "sh", "-c", script)
            await command.until(b"ready")
            command.channel.write_now(exec_pieces.signal_piece("TERM"))
            assert await command.end() == {"exit_code": 3}
            command = await run(session, started, "sleep", "300")
            command.channel.write_now(exec_pieces.signal_piece("SEGV"))
            async with asyncio.timeout(30):
                assert await command.channel.read() is None
            assert command.channel.ended is not None
            assert command.channel.ended.code == "invalid"

    asyncio.run(go())


def test_a_command_ends_with_its_session(agent: Agent) -> None:
    """It gets SIGHUP, and what ignores that is killed."""
    started = job("a", "exec sleep 300")

    async def go() -> list[int]:
        pids = []
        async with entered(agent, started) as session:
            for script in ("", "trap '' HUP; "):
                text = f"{script}echo $$ ready; sleep 300; sleep 300"
                command = await run(session, started, "sh", "-c", text)
                await command.until(b"ready")
                pids.append(int(command.printed.split()[0]))
            assert all(map(is_alive, pids))
        return pids

    pids = asyncio.run(go())
    await_true(lambda: not any(map(is_alive, pids)))
    assert len(agent.processes(uid("a"), 1)) == 1


@pytest.mark.parametrize("ending", ["echo", "setsid sleep 301"])
def test_a_command_ends_with_its_job(agent: Agent, tmp_path: Path, ending: str) -> None:
    """The caller is told why; processes that have left its session end too."""
    gate = tmp_path / "gate"
    started = job("a", f"until [ -e {gate} ]; do sleep 0.05; done")

    async def go() -> list[int]:
        async with entered(agent, started) as session:
            script = f"{ending} & echo $! $$ ready; sleep 300"
            command = await run(session, started, "sh", "-c", script)
            await command.until(b"ready")
            gate.touch()
            assert await command.end() == {"signal": 9, "job_ended": True}
            words = command.printed.decode().replace("ready", "").split()
            return [int(word) for word in words]

    pids = asyncio.run(go())
    await_true(lambda: not any(map(is_alive, pids)))


def test_background_processes_stay_until_the_job_ends(agent: Agent, tmp_path: Path) -> None:
    """A command ends when its first process does, with all that was printed by then."""
    gate = tmp_path / "gate"
    started = job("a", f"until [ -e {gate} ]; do sleep 0.05; done")

    async def go() -> list[int]:
        pids = []
        async with entered(agent, started) as session:
            for terminal in ({}, TERMINAL):
                script = "trap '' HUP; sleep 200 & echo $!"
                command = await run(session, started, "sh", "-c", script, **terminal)
                assert await command.end() == {"exit_code": 0}
                pids.append(int(command.printed))
            assert all(map(is_alive, pids))
        return pids

    pids = asyncio.run(go())
    gate.touch()
    await_true(lambda: not any(map(is_alive, pids)))


def test_commands_end_with_the_agent(agent: Agent) -> None:
    """An agent that is killed leaves none behind; the job goes on."""
    started = job("a", "exec sleep 300")

    async def go() -> int:
        async with managing(agent) as manager:
            assert (await manager.session.prepare(started)).ok
            await manager.record(started.job_uid, JobState.RUNNING)
            command = await run(
                manager.session, started, "sh", "-c", "echo $$ ready; exec sleep 300"
            )
            await command.until(b"ready")
            agent.kill()
            with pytest.raises(ConnectionLost):
                await command.end()
            return int(command.printed.split()[0])

    pid = asyncio.run(go())
    await_true(lambda: not is_alive(pid))
    assert len(agent.processes(uid("a"), 1)) == 1


def test_refusals(agent: Agent) -> None:
    """A job that does not run, another's key, and everything that a look may not change."""
    started = job("a", "exec sleep 300")

    async def go() -> None:
        async with entered(agent, started) as session:
            for wrong, code in (
                ({"job_uid": "other"}, "not_found"),
                ({"key": "other/1/0"}, "not_found"),
                ({"key": "no key"}, "invalid"),
                ({"argv": []}, "invalid"),
                ({"argv": ["a", 1]}, "invalid"),
                ({"rows": 24, "columns": "wide"}, "invalid"),
            ):
                parameters = {
                    "key": str(started.key),
                    "job_uid": uid("a"),
                    "argv": ["true"],
                    **wrong,
                }
                with pytest.raises(RequestRefused) as caught:
                    await session.open_channel("exec", parameters)
                assert caught.value.reply.code == code
            with pytest.raises(RequestRefused, match="only looks"):
                await session.put_blob(DIGEST, __file__)

    asyncio.run(go())
