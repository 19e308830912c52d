"""What a job sees and what is said of it, with a real agent and real processes."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from fleetform.agents.protocol.messages import Event, FileEntry, LogData, Mount, PutBlob
from fleetform.agents.protocol.states import Cause, JobState
from integration.agent.rig import Agent, job, managing, uid


def test_output_and_end(agent: Agent) -> None:
    """A job's output comes whole, complete before its end is said, and the end is what it was."""

    async def go() -> None:
        async with managing(agent) as manager:
            record = await manager.run(job("a", "echo one", "echo two >&2"))
            assert manager.output(uid("a")) == b"one\ntwo\n"
            assert (record.cause, record.exit_code, record.log_bytes) == (Cause.EXITED, 0, 8)
            assert record.started_at_ms is not None
            assert record.finished_at_ms is not None
            assert record.started_at_ms <= record.finished_at_ms
            last = [item for item in manager.order if isinstance(item, LogData)][-1]
            assert last.complete

    asyncio.run(go())


@pytest.mark.parametrize(
    ("commands", "code", "output"),
    [
        (("exit 7",), 7, b""),
        (("false", "echo not reached"), 1, b""),
        (("false && true", "echo not reached"), 1, b""),
        (("echo a\nfalse\necho not reached",), 1, b"a\n"),
        (("cd /", "pwd"), 0, b"/\n"),
        (("X=1", "echo $X"), 0, b"1\n"),
        (("(exit 3)", "echo not reached"), 3, b""),
        (("if false; then\n  echo no\nfi", "echo yes"), 0, b"yes\n"),
        (("cat <<END\ntext\nEND", "echo after"), 0, b"text\nafter\n"),
    ],
)
def test_commands(agent: Agent, commands: tuple[str, ...], code: int, output: bytes) -> None:
    """Commands run one after another in one shell, and the first failure is the job's exit code."""

    async def go() -> None:
        async with managing(agent) as manager:
            record = await manager.run(job("a", *commands))
            assert (record.cause, record.exit_code) == (Cause.EXITED, code)
            assert manager.output(uid("a")) == output

    asyncio.run(go())


def test_missing_command_and_shell(agent: Agent) -> None:
    """A command or a shell that does not exist is exit code 127, and the log says which."""

    async def go() -> None:
        async with managing(agent) as manager:
            record = await manager.run(job("a", "surely-not-a-command"))
            assert record.exit_code == 127
            assert b"surely-not-a-command" in manager.output(uid("a"))
            record = await manager.run(job("b", "true", shell="/no/such/shell"))
            assert record.exit_code == 127
            assert manager.output(uid("b")) == b"/no/such/shell: No such file or directory\n"

    asyncio.run(go())


def test_signal(agent: Agent) -> None:
    """A job that dies of a signal is said to, with its number and without an exit code."""

    async def go() -> None:
        async with managing(agent) as manager:
            record = await manager.run(job("a", "kill -SEGV $$"))
            assert (record.cause, record.signal, record.exit_code) == (Cause.SIGNAL, 11, None)

    asyncio.run(go())


def test_long_script(agent: Agent) -> None:
    """Commands beyond what one argument can hold are executed all the same."""

    async def go() -> None:
        async with managing(agent) as manager:
            commands = [f": {'x' * 1000}"] * 300
            record = await manager.run(job("a", *commands, "echo end", "exit 4"))
            assert record.exit_code == 4
            assert manager.output(uid("a")) == b"end\n"

    asyncio.run(go())


def test_environment(stopped: Agent) -> None:
    """A job sees its own environment and little of the agent's; the GPUs it was given, or none."""
    stopped.environment = {"SECRET_OF_THE_AGENT": "1"}
    stopped.start()

    async def go() -> None:
        async with managing(stopped) as manager:
            await manager.run(job("a", "env", env={"COLOUR": "blue", "FLEETFORM_JOB_UID": "no"}))
            lines = manager.output(uid("a")).decode().splitlines()
            env = dict(line.split("=", 1) for line in lines)
            assert env["COLOUR"] == "blue"
            assert env["FLEETFORM_JOB_UID"] == uid("a")
            assert env["CUDA_VISIBLE_DEVICES"] == ""
            assert env["TMPDIR"].startswith(str(stopped.root))
            assert "SECRET_OF_THE_AGENT" not in env
            allotted = ("declared-2", "GPU-1234")
            await manager.run(job("b", "echo $CUDA_VISIBLE_DEVICES", gpus=allotted))
            assert manager.output(uid("b")) == b"2,GPU-1234\n"

    asyncio.run(go())


def test_the_nodes_of_a_run_are_in_a_file(agent: Agent) -> None:
    """One line a node in the order of ranks; a job alone has neither the file nor the variables."""
    several = {"FLEETFORM_NODES_IPS": "10.0.0.2\n10.0.0.1"}
    show = 'cat "$FLEETFORM_HOSTFILE" "$DSTACK_MPI_HOSTFILE"'

    async def go() -> None:
        async with managing(agent) as manager:
            await manager.run(job("a", show, env=several, gpus=("declared-0", "declared-1")))
            lines = manager.output(uid("a")).decode().splitlines()
            assert lines == ["10.0.0.2 slots=2", "10.0.0.1 slots=2"] * 2
            await manager.run(job("b", show, env=several))
            lines = manager.output(uid("b")).decode().splitlines()
            assert lines == ["10.0.0.2 slots=1", "10.0.0.1 slots=1"] * 2
            command = 'echo "${FLEETFORM_HOSTFILE-none}"; ls ..'
            await manager.run(job("c", command, env={"FLEETFORM_NODES_IPS": "10.0.0.2"}))
            none, *names = manager.output(uid("c")).decode().split()
            assert none == "none"
            assert "hostfile" not in names

    asyncio.run(go())


def test_signals_are_not_ignored(agent: Agent) -> None:
    """What Python and the supervisor ignore is not ignored in a job: `yes | head` ends."""

    async def go() -> None:
        async with managing(agent) as manager:
            await manager.run(job("a", "grep SigIgn /proc/self/status", "yes | head -n 1"))
            first, second = manager.output(uid("a")).decode().splitlines()
            # 32 and 33 are the C library's own, which it ignores in all that it spawns.
            assert int(first.split()[1], 16) & (1 << 31) - 1 == 0
            assert second == "y"

    asyncio.run(go())


def test_working_directory(agent: Agent, tmp_path: Path) -> None:
    """The working directory is fresh and empty, below it, or the one named."""

    async def go() -> None:
        async with managing(agent) as manager:
            await manager.run(job("a", "ls -A", "pwd"))
            assert manager.output(uid("a")).decode() == f"{agent.job(uid('a'))}/work\n"
            await manager.run(job("b", "pwd", working_dir="deep/down"))
            assert manager.output(uid("b")).decode() == f"{agent.job(uid('b'))}/work/deep/down\n"
            await manager.run(job("c", "pwd", working_dir=str(tmp_path)))
            assert manager.output(uid("c")).decode() == f"{tmp_path}\n"
            record = await manager.run(job("d", "pwd", working_dir="/no/such/folder"))
            assert record.cause is Cause.PREPARE_FAILED
            assert "/no/such/folder" in record.message
            record = await manager.run(job("e", "pwd", working_dir="../../outside"))
            assert record.cause is Cause.PREPARE_FAILED

    asyncio.run(go())


def test_files(agent: Agent) -> None:
    """Files lie where they were declared with their mode; one never sent fails the preparation."""
    content = b"#!/bin/sh\necho from a file\n"
    digest = hashlib.sha256(content).hexdigest()
    entry = FileEntry("bin/say", digest, len(content), 0o755)

    async def go() -> None:
        async with managing(agent) as manager:
            record = await manager.run(job("a", "bin/say", files=(entry,)))
            assert record.cause is Cause.PREPARE_FAILED
            assert digest in record.message
            assert await manager.session.missing_blobs([digest]) == [digest]
            path = agent.root / "content"
            path.write_bytes(content)
            await manager.session.put_blob(digest, str(path))
            assert await manager.session.missing_blobs([digest]) == []
            record = await manager.run(job("b", "bin/say", files=(entry,)))
            assert record.exit_code == 0
            assert manager.output(uid("b")) == b"from a file\n"

    asyncio.run(go())


def test_large_and_false_content(agent: Agent) -> None:
    """A content of many pieces arrives; one that is not what its name says is thrown away."""
    content = os.urandom(3_000_000)
    digest = hashlib.sha256(content).hexdigest()

    async def go() -> None:
        async with managing(agent) as manager:
            path = agent.root / "content"
            path.write_bytes(content)
            await manager.session.put_blob(digest, str(path))
            assert (agent.root / "blobs" / digest[:2] / digest).read_bytes() == content
            wrong = "0" * 64
            data = base64.b64encode(b"something else").decode()
            reply = await manager.session._ask(
                PutBlob(manager.session._next_id(), wrong, 0, data, True)
            )
            assert (reply.ok, reply.code) == (False, "invalid")
            assert await manager.session.missing_blobs([wrong]) == [wrong]

    asyncio.run(go())


@pytest.mark.parametrize(
    "fields",
    [
        {"commands": ("echo a\0b",)},
        {"env": {"A": "a\0b"}},
        {"env": {"A=B": "c"}},
        {"env": {"A": "\ud800"}},
        {"working_dir": "a\0b"},
        {"checkpoint_signal": "NOPE"},
    ],
)
def test_what_no_program_can_be_given(agent: Agent, fields: dict[str, Any]) -> None:
    """A job that cannot be executed on any host fails its preparation, and the agent goes on."""

    async def go() -> None:
        async with managing(agent) as manager:
            record = await manager.run(job("a", **{"commands": ("true",), **fields}))
            assert record.cause is Cause.PREPARE_FAILED
            assert record.message
            assert (await manager.run(job("b", "true"))).exit_code == 0

    asyncio.run(go())


def test_relative_mount(agent: Agent, tmp_path: Path) -> None:
    """A volume at a relative path is a link in the working directory; a missing one is said."""
    volume = tmp_path / "volume"
    volume.mkdir()

    async def go() -> None:
        async with managing(agent) as manager:
            mount = Mount("data", str(volume), "in/data")
            record = await manager.run(job("a", "echo kept > in/data/file", mounts=(mount,)))
            assert record.exit_code == 0
            assert (volume / "file").read_text() == "kept\n"
            gone = Mount("gone", str(tmp_path / "gone"), "gone")
            record = await manager.run(job("b", "true", mounts=(gone,)))
            assert record.cause is Cause.PREPARE_FAILED
            assert "volume gone" in record.message

    asyncio.run(go())


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts without root depend on the host's rules")
def test_absolute_mount(agent: Agent, tmp_path: Path) -> None:
    """A volume at an absolute path is there for the job alone, read-only where it says so."""
    volume, target = tmp_path / "volume", tmp_path / "target"
    volume.mkdir()
    (volume / "file").write_text("inside\n")

    async def go() -> None:
        async with managing(agent) as manager:
            mount = Mount("data", str(volume), str(target))
            await manager.run(job("a", f"cat {target}/file", f"touch {target}/b", mounts=(mount,)))
            assert manager.output(uid("a")) == b"inside\n"
            assert (volume / "b").exists()
            assert list(target.iterdir()) == []
            fixed = dataclasses.replace(mount, read_only=True)
            record = await manager.run(job("b", f"touch {target}/c", mounts=(fixed,)))
            assert record.exit_code != 0
            assert b"Read-only" in manager.output(uid("b"))

    asyncio.run(go())


def test_log_budget(agent: Agent) -> None:
    """Output beyond its budgets loses its middle: head and tail come, and the gap is exact."""
    writer = f"{sys.executable} -c \"for i in range(40000): print('%09d' % i)\""

    async def go() -> None:
        async with managing(agent) as manager:
            # Not followed while it runs, so that what is kept decides.
            spec = job("a", writer, log_head_bytes=8192, log_tail_bytes=16384)
            reply = await manager.session.prepare(spec)
            assert reply.ok
        async with managing(agent) as manager:
            await manager.session.follow_log(uid("a"), 0)
            await manager.until(lambda: [p for p in manager.pieces(uid("a")) if p.complete])
            pieces = [(p.offset, base64.b64decode(p.data)) for p in manager.pieces(uid("a"))]
            for offset, data in pieces:
                expected = b"".join(b"%09d\n" % i for i in range(40000))
                assert expected[offset : offset + len(data)] == data
            end = max(offset + len(data) for offset, data in pieces)
            assert end == 400_000
            kept = {n for offset, data in pieces for n in range(offset, offset + len(data))}
            assert set(range(8192)) <= kept
            assert set(range(400_000 - 16384, 400_000)) <= kept

    asyncio.run(go())


def test_output_shows_while_running(agent: Agent) -> None:
    """A line shows as soon as it is written, long before the job ends."""

    async def go() -> None:
        async with managing(agent) as manager:
            await manager.session.prepare(job("a", "echo early", "sleep 300"))
            await manager.until(lambda: manager.output(uid("a")) == b"early\n")
            assert not [e for e in manager.events if e.record.state is JobState.FINISHED]

    asyncio.run(go())


def test_two_phases(agent: Agent) -> None:
    """What is prepared waits, and runs when the start comes."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "echo ran", go=False)
            await manager.session.prepare(spec)
            await manager.record(uid("a"), JobState.PREPARED)
            assert not (agent.job(uid("a")) / "started").exists()
            reply = await manager.session.start(spec.key, 2, spec.boot_id)
            assert reply.ok
            record = await manager.record(uid("a"))
            assert (record.gen, record.exit_code) == (2, 0)
            assert manager.output(uid("a")) == b"ran\n"

    asyncio.run(go())


def test_forgotten(agent: Agent) -> None:
    """A job that was forgotten leaves a tombstone and no directory, and cannot be had again."""

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "touch left-behind")
            await manager.run(spec)
            reply = await manager.session.forget([spec.key])
            assert reply.ok
            assert not agent.job(uid("a")).exists()
            reply = await manager.session.prepare(dataclasses.replace(spec, gen=2))
            assert (reply.ok, reply.code) == (False, "stale")
        async with managing(agent) as manager:
            (record,) = manager.session.welcome.records or ()
            assert record.tombstone

    asyncio.run(go())


def test_directories_are_used_again(agent: Agent) -> None:
    """A job whose directory served another before finds nothing of it."""

    async def go() -> None:
        async with managing(agent) as manager:
            first = job("a", "echo loud and long; exit 5")
            await manager.run(first)
            await manager.session.forget([first.key])
            record = await manager.run(job("b", "ls -A . $TMPDIR", env={"B": "1"}))
            assert record.exit_code == 0
            text = manager.output(uid("b")).decode()
            assert "loud" not in text
            assert record.log_bytes == len(text)

    asyncio.run(go())


def test_many_at_once(agent: Agent) -> None:
    """Three hundred jobs at once all end, each with its own output."""

    async def go() -> None:
        async with managing(agent) as manager:
            specs = [job(f"n{n}", f"echo {n}") for n in range(300)]
            for reply in await asyncio.gather(*[manager.session.prepare(s) for s in specs]):
                assert reply.ok
            for n, spec in enumerate(specs):
                record = await manager.record(spec.job_uid, JobState.FINISHED)
                assert record.exit_code == 0
                assert manager.output(spec.job_uid) == b"%d\n" % n
            numbers = [event.number for event in manager.events if isinstance(event, Event)]
            assert numbers == list(range(1, len(numbers) + 1))

    asyncio.run(go())
