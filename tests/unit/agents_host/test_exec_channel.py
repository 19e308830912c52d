"""Commands and their channels on the agent's side, with processes and without an agent."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from contract.host_site import wait_until
from fleetform.agents.host import exec_channel, job_command
from fleetform.agents.host.blobs import BlobError
from fleetform.agents.host.exec_channel import Commands, ExecChannel
from fleetform.agents.host.job_command import Command, JobPlace, Started
from fleetform.agents.host.runtimes.base import NotRunning, Runtime
from fleetform.agents.protocol import exec_pieces
from fleetform.agents.protocol.channels import ChannelData, ChannelEnded, Credit
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.link import WINDOW_MAX_BYTES, WINDOW_MIN_BYTES
from fleetform.agents.protocol.messages import JobKey, JobRecord
from fleetform.agents.protocol.states import JobState

KEY = JobKey("run", 1, 0)
RECORD = JobRecord(KEY, "job", 1, "digest", JobState.RUNNING)


class Job:
    """Stands where a runtime does: its one job is this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_over = False

    def exec(self, job_uid: str, command: Command) -> Started:
        if self.is_over:
            raise NotRunning("it has ended meanwhile")
        place = JobPlace(job_uid, str(self.folder), ".", dict(os.environ), os.getpid())
        return job_command.start(place, command)


class Wire:
    """What is said on one connection, and the commands that were started over it."""

    def __init__(self, folder: Path) -> None:
        self.job = Job(folder)
        # A part of one, and all that commands ask for.
        runtime = cast("Runtime", self.job)
        self.commands = Commands(lambda uid: RECORD if uid == "job" else None, runtime)
        self.said: list[Message] = []
        self.changed = asyncio.Event()

    def say(self, message: Message) -> None:
        self.said.append(message)
        self.changed.set()

    def open(self, *argv: str, **more: Any) -> ExecChannel:
        parameters = {"key": str(KEY), "job_uid": "job", "argv": list(argv), **more}
        return self.commands.open(7, parameters, self.say)

    async def until(self, claim: Callable[[], bool]) -> None:
        while not claim():
            self.changed.clear()
            await self.changed.wait()

    async def end(self) -> dict[str, Any]:
        await self.until(lambda: any(isinstance(one, ChannelEnded) for one in self.said))
        (ended,) = (one for one in self.said if isinstance(one, ChannelEnded))
        return ended.body

    @property
    def data(self) -> list[ChannelData]:
        return [one for one in self.said if isinstance(one, ChannelData)]

    @property
    def printed(self) -> bytes:
        pieces = [base64.b64decode(one.data) for one in self.data]
        return b"".join(piece[1:] for piece in pieces if piece[0] == exec_pieces.DATA)


def tell(folder: Path, story: Callable[[Wire], Awaitable[None]]) -> None:
    async def run() -> None:
        wire = Wire(folder)
        try:
            async with asyncio.timeout(30):
                await story(wire)
        finally:
            wire.commands.close()
            async with asyncio.timeout(30):
                await asyncio.to_thread(wait_until, lambda: not wire.commands._running)

    asyncio.run(run())


def test_output_waits_for_credit(tmp_path: Path) -> None:
    """No more is held than there is credit for, and a paused connection gets nothing."""

    async def story(wire: Wire) -> None:
        channel = wire.open("head", "-c", "300000", "/dev/zero")
        await asyncio.sleep(0.3)
        sent = sum(len(one.data) for one in wire.data)
        assert WINDOW_MIN_BYTES <= sent < 2 * WINDOW_MIN_BYTES
        channel.pause(paused=True)
        channel.credit(sent)
        await asyncio.sleep(0.1)
        assert sum(len(one.data) for one in wire.data) == sent
        channel.pause(paused=False)
        credited = sent
        while len(wire.printed) < 300_000:
            await wire.until(lambda: sum(len(one.data) for one in wire.data) > credited)  # noqa: B023 -- awaited
            total = sum(len(one.data) for one in wire.data)
            channel.credit(total - credited)
            credited = total
        assert await wire.end() == {"exit_code": 0}
        assert wire.printed == bytes(300_000)

    tell(tmp_path, story)


def test_input_is_credited_when_it_was_taken(tmp_path: Path) -> None:
    """A pipe takes 64 KiB of a command that sleeps; what is beyond any credit is refused."""

    async def story(wire: Wire) -> None:
        channel = wire.open("sleep", "300")
        for _ in range(4):
            channel.take(bytes([exec_pieces.DATA]) + bytes(40_000), 53_336)
        credited = [one for one in wire.said if isinstance(one, Credit)]
        assert credited == [Credit(7, 53_336)]
        with pytest.raises(ValueError, match="more input"):
            channel.take(bytes([exec_pieces.DATA]) + bytes(2 * WINDOW_MAX_BYTES), 1)
        channel.kill()
        assert await wire.end() == {"signal": 9}

    tell(tmp_path, story)


def test_pieces_that_are_none(tmp_path: Path) -> None:
    """Each is refused, and nothing of it reaches the command."""

    async def story(wire: Wire) -> None:
        channel = wire.open("cat")
        for piece in (b"", b"\x63", bytes([exec_pieces.RESIZE]), bytes([exec_pieces.SIGNAL])):
            with pytest.raises(ValueError, match=r"piece|size|signal"):
                channel.take(piece, 4)
        channel.take(exec_pieces.resize(exec_pieces.Size(1, 1)), 4)
        channel.take(bytes([exec_pieces.END_OF_INPUT]), 4)
        assert await wire.end() == {"exit_code": 0}
        assert wire.printed == b""

    tell(tmp_path, story)


def test_a_command_that_is_left_may_still_print(tmp_path: Path) -> None:
    """Its SIGHUP is handled to the end; nothing is said on the channel any more."""

    async def story(wire: Wire) -> None:
        script = (
            "trap 'echo a; echo b >&2; : >done; exit' HUP; echo ready; while :; do sleep 0.02; done"
        )
        channel = wire.open("sh", "-c", script)
        await wire.until(lambda: wire.printed == b"ready\n")
        channel.hang_up()
        said = list(wire.said)
        await asyncio.to_thread(wait_until, (tmp_path / "done").exists)
        assert wire.said == said

    tell(tmp_path, story)


def test_what_ignores_its_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a grace."""
    monkeypatch.setattr(exec_channel, "HANG_UP_SECONDS", 0.1)

    async def story(wire: Wire) -> None:
        channel = wire.open("sh", "-c", "trap '' HUP; echo ready; sleep 300; sleep 300")
        await wire.until(lambda: wire.printed == b"ready\n")
        channel.hang_up()
        await asyncio.to_thread(wait_until, lambda: not wire.commands._running)

    tell(tmp_path, story)


def test_a_command_ends_with_its_job_before_it_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child has no process group of its own yet when the job ends."""
    setsid = os.setsid
    monkeypatch.setattr(os, "setsid", lambda: (time.sleep(1), setsid()))

    async def story(wire: Wire) -> None:
        wire.open("sleep", "300")
        wire.commands.end("job")
        assert await wire.end() == {"signal": 9, "job_ended": True}

    tell(tmp_path, story)


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a code that says what to do."""
    monkeypatch.setattr(exec_channel, "COMMANDS_MAX", 1)

    async def story(wire: Wire) -> None:
        wire.open("sleep", "300")
        for more, code in (
            ({}, "busy"),
            ({"job_uid": "other"}, "not_found"),
            ({"key": "run/2/0"}, "not_found"),
            ({"argv": "ls"}, "invalid"),
            ({"rows": 5}, "invalid"),
        ):
            with pytest.raises(BlobError) as caught:
                wire.open("true", **more)
            assert caught.value.code == code
        wire.commands.end("job")
        assert await wire.end() == {"signal": 9, "job_ended": True}
        wire.job.is_over = True
        with pytest.raises(BlobError, match="it has ended meanwhile"):
            wire.open("true")
        assert wire.commands.has_entered("job")
        assert not wire.commands.has_entered("job")

    tell(tmp_path, story)
