"""The agent towards its host: full disks, volumes, other Pythons, and who may speak to it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetform.agents.client.bundle import make_bundle
from fleetform.agents.client.errors import ConnectionLost, HelloRejected
from fleetform.agents.protocol.frames import encode, read_value
from fleetform.agents.protocol.host_report import HostReport
from fleetform.agents.protocol.messages import Prepare
from fleetform.agents.protocol.states import Cause, JobState
from integration.agent import rig
from integration.agent.rig import Agent, await_true, dial, is_alive, job, managing, uid


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB, which only root can make."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    path = tmp_path / "disk"
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(path)],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {made.stderr.decode().strip()}")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def fill(disk: Path) -> None:
    """Write until there is no space left."""
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def test_disk_full(small_disk: Path) -> None:
    """On a full disk a job loses output, and neither its result nor the rest of its life."""
    agent = Agent(small_disk / "agent")

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job(
                "a",
                "touch wait; echo first",
                "while test -e wait; do sleep 0.02; done",
                "head -c 100000 /dev/zero | tr '\\0' x",
                "exit 5",
            )
            await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")) == b"first\n")
            fill(small_disk)
            (agent.job(uid("a")) / "work" / "wait").unlink()
            record = await manager.record(uid("a"))
            assert (record.cause, record.exit_code) == (Cause.EXITED, 5)
            assert record.log_bytes == 100_006
            assert len(manager.output(uid("a"))) < 100_006
            last = manager.pieces(uid("a"))[-1]
            assert last.complete
            assert last.offset + len(base64.b64decode(last.data)) == 100_006
            record = await manager.run(job("b", "true"))
            assert record.cause is Cause.PREPARE_FAILED
            assert "No space left" in record.message
            (small_disk / "filler").unlink()
            assert (await manager.run(job("c", "echo again"))).exit_code == 0

    try:
        agent.start()
        asyncio.run(go())
    finally:
        agent.close()


def test_gpus_that_are_used_outside_fleetform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report names a process of the host and no process of a job, not even without environment."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(
        "#!/bin/sh\n"
        f"case $1 in *compute-apps*) cat {tmp_path}/uses;;\n"
        "*) echo '0, GPU-0, A100, 81920'; echo '1, GPU-1, A100, 81920';; esac\n"
    )
    tool.chmod(0o755)
    agent = Agent(tmp_path / "agent")
    # The agent's search path is a fixed one.
    folders = f"from fleetform.agents.host import gpus; gpus._DRIVER_FOLDERS = ('{tool.parent}',)"
    monkeypatch.setattr(rig, "_RUN", f"{folders}; {rig._RUN}")

    async def go() -> None:
        async with managing(agent) as manager:
            spec = job("a", "env -i sh -c 'echo $$; exec sleep 60'")
            await manager.session.prepare(spec)
            await manager.until(lambda: manager.output(uid("a")).endswith(b"\n"))
            pid = int(manager.output(uid("a")))
            (tmp_path / "uses").write_text(
                f"GPU-0, {pid}, /bin/sleep\nGPU-1, {os.getpid()}, /usr/bin/python3\n"
            )
            # Not before: the agent keeps an answer for some seconds.
            session = await dial(agent, look=True)
            try:
                report = await session.probe()
                while report.gpus[1].used_by is None:
                    await asyncio.sleep(0.2)
                    report = await session.probe()
            finally:
                await session.close()
            assert report.gpus[0].used_by is None
            assert report.gpus[1].used_by is not None
            assert report.gpus[1].used_by.pid == os.getpid()
            assert report.gpus[1].used_by.program == "python3"

    (tmp_path / "uses").touch()
    try:
        agent.start()
        asyncio.run(go())
    finally:
        agent.close()


def test_volume(agent: Agent, tmp_path: Path) -> None:
    """A volume is made once, kept from others, and removed with or without its data."""
    path = tmp_path / "volumes" / "data"

    async def go() -> None:
        async with managing(agent) as manager:
            session = manager.session
            for _ in range(2):
                assert (await session.make_volume("op-1", "volume-1", "data", str(path))).ok
            mark = json.loads((path / ".fleetform-volume").read_text())
            assert mark["environment_uid"] == "environment"
            assert mark["volume_uid"] == "volume-1"
            reply = await session.make_volume("op-2", "volume-2", "other", str(path))
            assert (reply.ok, reply.code) == (False, "conflict")
            assert "data" in reply.message
            reply = await session.remove_volume("op-3", "volume-2", str(path), delete_data=True)
            assert (reply.ok, reply.code) == (False, "conflict")
            (path / "model").write_text("weights")
            assert (
                await session.remove_volume("op-4", "volume-1", str(path), delete_data=False)
            ).ok
            assert (path / "model").exists()
            assert (await session.make_volume("op-5", "volume-3", "data", str(path))).ok
            for _ in range(2):
                reply = await session.remove_volume("op-6", "volume-3", str(path), delete_data=True)
                assert reply.ok
            assert not path.exists()
            reply = await session.make_volume("op-7", "volume-4", "bad", "relative/path")
            assert (reply.ok, reply.code) == (False, "invalid")

    asyncio.run(go())


def test_foreign_volume(agent: Agent, tmp_path: Path) -> None:
    """A directory of another environment is refused, and its owner is named."""
    path = tmp_path / "data"
    path.mkdir()
    (path / ".fleetform-volume").write_text(
        json.dumps({"environment_uid": "elsewhere", "volume_uid": "v", "name": "theirs"})
    )

    async def go() -> None:
        async with managing(agent) as manager:
            reply = await manager.session.make_volume("op-1", "volume-1", "data", str(path))
            assert not reply.ok
            assert "elsewher…" in reply.message
            assert "theirs" in reply.message

    asyncio.run(go())


def test_owner(agent: Agent) -> None:
    """An agent belongs to one environment, and to the newest epoch of its ledger, over restarts."""

    async def go() -> None:
        async with managing(agent) as manager:
            assert manager.session.welcome.owner == "environment"
        agent.kill()
        agent.start()
        for fields, code in (
            ({"environment_uid": "another"}, "foreign_owner"),
            ({"ledger_id": "another"}, "foreign_ledger"),
            ({"protocol": 99}, "protocol"),
        ):
            with pytest.raises(HelloRejected) as caught:
                await dial(agent, **fields)
            assert caught.value.answer.code == code
            assert caught.value.answer.owner == "environment"
        async with managing(agent, ledger_id="rebuilt", epoch=2) as manager:
            assert manager.session.welcome.ledger_id == "rebuilt"
        with pytest.raises(HelloRejected) as caught:
            await dial(agent, ledger_id="rebuilt", epoch=1)
        assert caught.value.answer.code == "old_epoch"

    asyncio.run(go())


def test_many_files(stopped: Agent) -> None:
    """An agent may have as many files open as the host allows; a job, as many as it was given."""
    given, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
    try:
        stopped.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (given, most))
    assert resource.prlimit(stopped.pid, resource.RLIMIT_NOFILE) == (most, most)

    async def go() -> None:
        async with managing(stopped) as manager:
            await manager.run(job("a", "ulimit -Sn"))
            assert manager.output(uid("a")) == b"256\n"

    asyncio.run(go())


def test_who_may_speak(agent: Agent) -> None:
    """The root and its socket are closed to others, and nobody is obeyed before hello."""
    assert stat.S_IMODE(agent.root.stat().st_mode) == 0o700
    assert stat.S_IMODE((agent.root / "agent.sock").stat().st_mode) == 0o600

    async def go() -> None:
        reader, writer = await asyncio.open_unix_connection(str(agent.root / "agent.sock"))
        writer.write(encode(Prepare(1, job("a", "echo ran"))))
        async with asyncio.timeout(30):
            answer = await reader.read()
        assert b"say hello first" in answer
        writer.close()
        reader, writer = await asyncio.open_unix_connection(str(agent.root / "agent.sock"))
        writer.write(b"\xff\xff\xff\xffnoise")
        async with asyncio.timeout(30):
            assert await reader.read() == b""
        writer.close()
        async with managing(agent) as manager:
            assert manager.session.welcome.records == ()

    asyncio.run(go())


def test_long_root(tmp_path: Path) -> None:
    """A root whose path is longer than a socket's address can be is no obstacle."""
    root = tmp_path / ("long" * 20) / ("path" * 20)
    root.mkdir(parents=True)
    agent = Agent(root)
    try:
        agent.start()

        async def go() -> None:
            async with managing(agent) as manager:
                await manager.run(job("a", "echo heard"))
                assert manager.output(uid("a")) == b"heard\n"

        asyncio.run(go())
    finally:
        agent.close()


def _pythons() -> list[str]:
    """Find every Python that the agent promises to run under, this one first."""
    found = [sys.executable]
    for minor in range(9, 15):
        name = f"python3.{minor}"
        candidates = [
            shutil.which(name),
            *map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")),
        ]
        for path in candidates:
            if path is None:
                continue
            ran = subprocess.run(
                [path, "-I", "-S", "-c", "import zlib"], capture_output=True, check=False
            )
            if ran.returncode == 0:
                found.append(path)
                break
    return found


@pytest.mark.parametrize("python", _pythons(), ids=lambda path: Path(path).parent.parent.name)
def test_archive_under_every_python(python: str, tmp_path: Path) -> None:
    """The archive runs a job under each Python from 3.9 on that is here, without a warning."""
    archive = make_bundle(tmp_path)
    agent = Agent(tmp_path / "agent")
    command = [python, "-W", "error", "-I", "-S", str(archive)]
    try:
        started = subprocess.run(
            [*command, "daemon", "--root", str(agent.root), "--idle-exit", "30"],
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert started.returncode == 0, started.stderr.decode() + agent.log()
        assert started.stderr == b""

        async def go() -> None:
            async with managing(agent) as manager:
                record = await manager.run(job("a", "echo it runs", memory_bytes=10**9))
                assert record.exit_code == 0
                assert manager.output(uid("a")) == b"it runs\n"
                await manager.session.forget([record.key])
                assert (await manager.run(job("b", "exit 4"))).exit_code == 4

        asyncio.run(go())
        assert "Warning" not in agent.log()
        report = subprocess.run([*command, "probe"], capture_output=True, check=True).stdout
        assert read_value(HostReport, json.loads(report)).cpu_millicores > 0
    finally:
        agent.close()


def test_relay(agent: Agent, tmp_path: Path) -> None:
    """`connect` passes a session through its standard input and output."""
    from fleetform.agents.client.session import open_session
    from fleetform.agents.protocol.messages import Hello

    archive = make_bundle(tmp_path)

    async def go() -> None:
        relay = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(archive), "connect", "--root", str(agent.root),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert relay.stdin is not None
        assert relay.stdout is not None
        session = await open_session(
            relay.stdout, relay.stdin, Hello("environment", "ledger", 1, 1)
        )
        assert session.welcome.owner == "environment"
        await session.close()
        async with asyncio.timeout(30):
            assert await relay.wait() == 0

    asyncio.run(go())


def test_nobody_to_connect_to(tmp_path: Path) -> None:
    """`connect` without an agent says so and fails."""
    archive = make_bundle(tmp_path)
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(archive), "connect", "--root", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"no agent listens" in done.stderr


def test_lost_connection_takes_in_ends(agent: Agent) -> None:
    """Ends that waited for their output to be sent are not lost with the connection."""

    async def go() -> None:
        session = await dial(agent)
        await session.prepare(job("a", "head -c 5000000 /dev/zero", "exit 3"))
        await session.close()
        with pytest.raises(ConnectionLost):
            await session.probe()
        supervisor = agent.supervisor(uid("a"))
        await_true(lambda: not is_alive(supervisor))
        async with managing(agent) as manager:
            (record,) = manager.session.welcome.records or ()
            if record.state is not JobState.FINISHED:
                record = await manager.record(uid("a"))
            assert record.exit_code == 3
            await manager.session.follow_log(uid("a"), 0)
            await manager.until(lambda: [p for p in manager.pieces(uid("a")) if p.complete])
            assert manager.output(uid("a")) == b"\0" * 5_000_000

    asyncio.run(go())
