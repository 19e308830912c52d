"""Contents that several jobs need at once, sent to a real agent over its socket."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
import random
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleetform.agents.client.session import open_session
from fleetform.agents.protocol.channels import ChannelData, OpenChannel
from fleetform.agents.protocol.frames import Decoder
from fleetform.agents.protocol.messages import FileEntry, Hello
from fleetform.controllers.uploads import Uploads
from fleetform.providers.contract.errors import RefusedForNow, TemporaryError
from fleetform.providers.contract.hosts import Host
from fleetform.providers.session import SessionHost
from fleetform.store.blobs import FileBlobStore
from integration.agent.rig import Agent, Manager, job, uid

SIZE_BYTES = 60_000_000
AMID_BYTES = 10_000_000
JOBS = 8


class Tap:
    """
    A writer that notes the contents which pass; one connection's own.

    `sent_bytes` counts their bytes; `is_amid` is set when some have passed and most have not.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.opened: list[str] = []
        self.sent_bytes = 0
        self.is_amid = asyncio.Event()
        self.wait_closed = writer.wait_closed
        self.close = writer.close
        self._writer = writer
        self._decoder = Decoder()

    def write(self, data: bytes) -> None:
        for message in self._decoder.feed(data):
            if isinstance(message, OpenChannel):
                self.opened.append(message.parameters["sha256"])
            elif isinstance(message, ChannelData):
                self.sent_bytes += len(base64.b64decode(message.data))
        if self.sent_bytes >= AMID_BYTES:
            self.is_amid.set()
        self._writer.write(data)


@contextlib.asynccontextmanager
async def connected(agent: Agent) -> AsyncIterator[tuple[Host, Tap, Manager]]:
    """Connect as a provider does, through a tap."""
    folder = os.open(agent.root, os.O_RDONLY)
    try:
        reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/agent.sock")
    finally:
        os.close(folder)
    tap = Tap(writer)
    manager = Manager(await open_session(reader, tap, Hello("environment", "ledger", 1, 1)))
    seen: Any = None  # Nothing here asks for it.
    try:
        yield SessionHost("local-0", manager.session, seen, "/volumes"), tap, manager
    finally:
        await manager.close()


@pytest.fixture
def store(tmp_path: Path) -> FileBlobStore:
    return FileBlobStore(tmp_path / "contents")


@pytest.fixture
def large(store: FileBlobStore, tmp_path: Path) -> str:
    """A content of 60 MB, by its digest."""
    return put(store, tmp_path, random.Random(7).randbytes(SIZE_BYTES))


def put(store: FileBlobStore, folder: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    (folder / digest).write_bytes(content)
    store.put_file(digest, str(folder / digest))
    return digest


def unfinished(agent: Agent) -> list[Path]:
    return [p for p in (agent.root / "blobs").glob("*-*") if p.is_file()]


def test_one_upload_for_an_array(agent: Agent, store: FileBlobStore, large: str) -> None:
    """Eight jobs that need one file of 60 MB at once get it by one upload, and all of it."""
    entry = FileEntry("data", large, SIZE_BYTES)

    async def go() -> None:
        async with connected(agent) as (host, tap, manager):
            uploads = Uploads(store)

            async def start(number: int) -> None:
                await uploads.ensure(host, [large])
                reply = await host.prepare(job(f"e{number}", "sha256sum data", files=(entry,)))
                assert reply.ok, reply

            await asyncio.gather(*(start(number) for number in range(JOBS)))
            for number in range(JOBS):
                assert (await manager.record(uid(f"e{number}"))).exit_code == 0
                assert manager.output(uid(f"e{number}")).decode() == f"{large}  data\n"
            assert tap.opened == [large]
            assert tap.sent_bytes == SIZE_BYTES
            assert not unfinished(agent)

    asyncio.run(go())


def test_jobs_that_share_some_contents(agent: Agent, store: FileBlobStore, tmp_path: Path) -> None:
    """Jobs with overlapping lists in different orders wait for each other without an end."""
    digests = [put(store, tmp_path, random.Random(n).randbytes(3_000_000)) for n in range(4)]

    async def go() -> None:
        async with connected(agent) as (host, tap, _):
            uploads = Uploads(store)
            await asyncio.gather(
                *(uploads.ensure(host, digests[n:] + digests[:n]) for n in range(4)),
                *(uploads.ensure(host, digests[n::-1]) for n in range(4)),
            )
            assert await host.missing_blobs(digests) == []
            assert sorted(tap.opened) == sorted(digests)

    asyncio.run(go())


def test_the_sender_is_cancelled(agent: Agent, store: FileBlobStore, large: str) -> None:
    """When the job that sends is cancelled, one of those that wait sends the rest."""

    async def go() -> None:
        async with connected(agent) as (host, tap, _):
            uploads = Uploads(store)
            jobs = [asyncio.create_task(uploads.ensure(host, [large])) for _ in range(3)]
            await tap.is_amid.wait()
            jobs[0].cancel()
            ended = await asyncio.gather(*jobs, return_exceptions=True)
            assert [type(one) for one in ended] == [asyncio.CancelledError, type(None), type(None)]
            assert tap.opened == [large] * 2
            assert tap.sent_bytes == SIZE_BYTES
            assert await host.missing_blobs([large]) == []
            assert not unfinished(agent)

    asyncio.run(go())


def test_one_who_waits_is_cancelled(agent: Agent, store: FileBlobStore, large: str) -> None:
    """The upload goes on for the others."""

    async def go() -> None:
        async with connected(agent) as (host, tap, _):
            uploads = Uploads(store)
            jobs = [asyncio.create_task(uploads.ensure(host, [large])) for _ in range(3)]
            await tap.is_amid.wait()
            jobs[1].cancel()
            await asyncio.gather(jobs[0], jobs[2])
            assert tap.opened == [large]

    asyncio.run(go())


def test_the_agent_restarts_amid_an_upload(agent: Agent, store: FileBlobStore, large: str) -> None:
    """All who wait hear that the connection is lost; the next agent takes the rest, once."""

    async def go() -> None:
        uploads = Uploads(store)
        async with connected(agent) as (host, tap, _):
            jobs = [asyncio.create_task(uploads.ensure(host, [large])) for _ in range(JOBS)]
            await tap.is_amid.wait()
            os.kill(agent.pid, signal.SIGSTOP)
            assert unfinished(agent)
            agent.kill()
            ended = await asyncio.gather(*jobs, return_exceptions=True)
            assert {type(one) for one in ended} == {TemporaryError}
        agent.start()
        (arrived,) = [path.stat().st_size for path in unfinished(agent)]
        async with connected(agent) as (host, tap, _):
            await asyncio.gather(*(uploads.ensure(host, [large]) for _ in range(JOBS)))
            assert tap.opened == [large]
            assert tap.sent_bytes == SIZE_BYTES - arrived
            assert await host.missing_blobs([large]) == []

    asyncio.run(go())


def test_the_connection_breaks_amid_an_upload(
    agent: Agent, store: FileBlobStore, large: str
) -> None:
    """What had arrived stays, and jobs of the next connection send the rest once."""

    async def go() -> None:
        uploads = Uploads(store)
        async with connected(agent) as (host, tap, _):
            jobs = [asyncio.create_task(uploads.ensure(host, [large])) for _ in range(JOBS)]
            await tap.is_amid.wait()
            tap.close()
            ended = await asyncio.gather(*jobs, return_exceptions=True)
            assert {type(one) for one in ended} == {TemporaryError}
        async with connected(agent) as (host, tap, _):
            await asyncio.gather(*(uploads.ensure(host, [large]) for _ in range(JOBS)))
            assert tap.opened == [large]
            assert tap.sent_bytes <= SIZE_BYTES - AMID_BYTES // 2
            assert not unfinished(agent)

    asyncio.run(go())


@pytest.fixture
def small_root(root: Path, need: Callable[[str, bool, str], None]) -> Iterator[Path]:
    """Put the agent's root on a disk of 32 MiB."""
    need("root", os.geteuid() == 0, "only root may mount a small disk")
    root.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(root)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    need("mount", mounted.returncode == 0, f"a tmpfs cannot be mounted: {mounted.stderr.strip()}")
    yield root
    subprocess.run(["umount", "-l", str(root)], check=True)


def test_a_full_disk(small_root: Path, store: FileBlobStore, tmp_path: Path) -> None:
    """All who wait hear of the disk after one try, nothing is left, and with space it works."""
    digest = put(store, tmp_path, random.Random(7).randbytes(20_000_000))
    agent = Agent(small_root)
    agent.start()
    filler = small_root / "filler"
    filler.write_bytes(bytes(16 << 20))

    async def go() -> None:
        uploads = Uploads(store)
        async with connected(agent) as (host, tap, _):
            call = [uploads.ensure(host, [digest]) for _ in range(JOBS)]
            ended = await asyncio.gather(*call, return_exceptions=True)
            assert {type(one) for one in ended} == {RefusedForNow}
            assert "the disk of" in str(ended[0])
            assert "is full (15 MB free)" in str(ended[0])
            assert tap.opened == [digest]
            assert not unfinished(agent)
            filler.unlink()
            await asyncio.gather(*(uploads.ensure(host, [digest]) for _ in range(JOBS)))
            assert await host.missing_blobs([digest]) == []

    try:
        asyncio.run(go())
    finally:
        agent.close()
