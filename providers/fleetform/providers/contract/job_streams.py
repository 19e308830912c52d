"""
Streams into the jobs of a host: commands that run in them, and connections to their ports.

They end with their connection, and change nothing of what the ledger knows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from fleetform.agents.protocol.exec_pieces import Size
from fleetform.agents.protocol.keys import JobKey


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """
    A command for a running job.

    `size` is that of the command's terminal, None: it gets pipes. `term` is its TERM, as that of
    the terminal where its output is shown. `subsystem` names a program of the agent in place of
    `argv`: `sftp`.
    """

    key: JobKey
    job_uid: str
    argv: tuple[str, ...]
    size: Size | None = None
    term: str = ""
    subsystem: str = ""


@dataclass(frozen=True, slots=True)
class ExecEnd:
    """How a command ended. One of `exit_code` and `signal` is not None."""

    exit_code: int | None
    signal: int | None
    job_ended: bool = False
    """It was killed because its job ended."""


class ExecSession(Protocol):
    """
    A command that runs in a job, and its streams. It ends with this session.

    Each method raises `TemporaryError` once the connection is lost.
    """

    def output(self) -> AsyncIterator[tuple[bytes, bool]]:
        """What the command prints, and whether it is standard error; ends when the command has."""

    async def write(self, data: bytes) -> None:
        """Send standard input; waits while the command takes none."""

    def end_input(self) -> None: ...
    def resize(self, size: Size) -> None: ...
    def signal(self, name: str) -> None:
        """Send a signal, named as in `exec_pieces.SIGNALS`, to the command's process group."""

    def end(self) -> ExecEnd:
        """Say how the command ended, once `output` has."""

    async def close(self) -> None:
        """End the session, and with it the command."""


@dataclass(frozen=True, slots=True)
class JobAddress:
    """A running job on its host: what a stream into it names."""

    key: JobKey
    job_uid: str


class ForwardSession(Protocol):
    """
    A connection to a port of a job's host. It ends with this session.

    Each method raises `TemporaryError` once the connection to the host is lost.
    """

    async def read(self) -> bytes:
        """Return what the program sends; nothing at the end."""

    async def write(self, data: bytes) -> None:
        """Send to the program; waits while it takes nothing."""

    def end_input(self) -> None:
        """End the input of the program; its output can still be read."""

    async def close(self) -> None: ...


class RankCall(Protocol):
    """
    A command that a job wants to start in another rank of its attempt.

    Answered once, by `accept` or `refuse`. Each method raises `TemporaryError` once the connection
    is lost.

    Attributes:
        caller: The job that asks.
        rank: Where the command shall run.
        argv: Its words.
    """

    caller: JobAddress
    rank: int
    argv: tuple[str, ...]

    def accept(self) -> None: ...
    def refuse(self, problem: str) -> None: ...
    def input(self) -> AsyncIterator[tuple[int, bytes]]:
        """What comes for the command, with its kind of `exec_pieces`; ends when its caller leaves."""

    async def write(self, data: bytes, *, is_error: bool) -> None: ...
    def end(self, end: ExecEnd) -> None:
        """Say how the command ended."""

    def fail(self, problem: str) -> None:
        """Say that the command is lost."""


class JobStreams(Protocol):
    """
    One connection to a host, for any number of commands and ports of its jobs at a time.

    Each method raises `TemporaryError` once the connection is lost, and `PermanentError` where the
    job does not run or the agent is too old.
    """

    async def open_exec(self, command: ExecRequest) -> ExecSession: ...
    async def open_forward(self, job: JobAddress, port: int) -> ForwardSession:
        """Connect to a port on the loopback of the job's host; `PermanentError`: nothing listens."""

    async def ping(self) -> None:
        """Return when the host has answered a question."""

    async def lost(self) -> None:
        """Return when the connection has ended."""

    async def close(self) -> None:
        """End the connection, and with it all that was opened over it."""


class RankStreams(Protocol):
    """What the session of a manager carries for jobs that start commands in other ranks."""

    async def open_exec(self, command: ExecRequest) -> ExecSession:
        """Start a command in a running job of this host."""

    def calls(self) -> AsyncIterator[RankCall]:
        """Commands that jobs of this host start in other ranks; ends when the connection does."""
