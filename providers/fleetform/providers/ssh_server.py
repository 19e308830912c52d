"""
An SSH server of one connection whose sessions run in a job: what `fleetform proxy` puts on its pipes.

OpenSSH runs `proxy` as its `ProxyCommand`, so a shell, `scp`, `rsync`, port forwarding and editors work
with a job as with a machine, and nothing listens anywhere. Each session is a stream to the agent of the
job's host. The server asks for no password: only the process that started it can speak to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
from collections.abc import Coroutine
from typing import Any

import asyncssh

from fleetform.agents.protocol import exec_pieces
from fleetform.agents.protocol.exec_pieces import Size
from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.contract.job_streams import (
    ExecRequest,
    ExecSession,
    ForwardSession,
    JobAddress,
    JobStreams,
)

__all__ = ["LOCAL_NAMES", "SHELL", "make_host_key", "public_key", "serve"]

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", ""})
"""Where a forwarded port may be: on the loopback of the job's host. Only the agent's own side is reached."""

SHELL = ("sh", "-c", 'exec "${SHELL:-sh}"')
"""An interactive shell: the one that the document of the run asks for."""

_COMMAND = ("sh", "-c", 'exec "${SHELL:-sh}" -c "$1"', "sh")
"""What runs a line, which follows as one word: an SSH server gives it to the shell of the account."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_WAITING_BYTES_MAX = 256 << 10
"""Of input that the command has not taken: beyond this OpenSSH is left waiting."""

_UNREACHABLE = 255
"""The exit code of `ssh` itself."""


def make_host_key() -> str:
    """Return a new private key, as `serve` takes it."""
    key = asyncssh.generate_private_key("ssh-ed25519", comment="fleetform")
    return key.export_private_key().decode("ascii")


def public_key(host_key: str) -> str:
    """Return type and public part of a private key, as a file of known hosts has them."""
    key = asyncssh.import_private_key(host_key)
    return " ".join(key.export_public_key().decode("ascii").split()[:2])


async def serve(end: socket.socket, host_key: str, streams: JobStreams, job: JobAddress) -> None:
    """
    Serve one connection until the client leaves or the host is lost.

    Args:
        end: A connected socket; what the client says is read from it.
        host_key: Private; of `make_host_key`.
        streams: To the job's host; stays open.
        job: That the sessions run in.
    """
    server = await asyncssh.run_server(
        end,
        server_factory=lambda: _Server(streams, job),
        server_host_keys=[asyncssh.import_private_key(host_key)],
        encoding=None,
        line_editor=False,
        agent_forwarding=False,
        # Both ends are on this machine: the line to the host has its own protection.
        compression_algs=["none"],
        gss_host=None,
        login_timeout=0,
    )
    leaving = asyncio.create_task(server.wait_closed())
    losing = asyncio.create_task(streams.lost())
    try:
        await asyncio.wait([leaving, losing], return_when=asyncio.FIRST_COMPLETED)
    finally:
        losing.cancel()
        server.close()
        await leaving


class _Server(asyncssh.SSHServer):
    def __init__(self, streams: JobStreams, job: JobAddress) -> None:
        self._streams = streams
        self._job = job

    def begin_auth(self, username: str) -> bool:
        return False

    def session_requested(self) -> _Session:
        return _Session(self._streams, self._job)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> Coroutine[Any, Any, asyncssh.SSHTCPSession[bytes]]:
        if dest_host not in LOCAL_NAMES:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED,
                f"only ports of the job are forwarded: write localhost, not {dest_host}",
            )
        return self._connect(dest_port)

    async def _connect(self, port: int) -> asyncssh.SSHTCPSession[bytes]:
        try:
            return _Forward(await self._streams.open_forward(self._job, port))
        except ProviderError as error:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, str(error)) from error


class _Input:
    """What comes on an SSH channel, until it is taken; the sender waits where it is much."""

    def __init__(self) -> None:
        self._chan: Any = None
        self._pieces: list[bytes] = []
        self._bytes = 0
        self._is_over = False
        self._is_held = False
        self._has_news = asyncio.Event()

    def attach(self, chan: Any) -> None:
        self._chan = chan

    def put(self, data: bytes) -> None:
        self._pieces.append(data)
        self._bytes += len(data)
        if self._bytes > _WAITING_BYTES_MAX and not self._is_held:
            self._is_held = True
            self._chan.pause_reading()
        self._has_news.set()

    def end(self) -> None:
        self._is_over = True
        self._has_news.set()

    async def take(self) -> bytes:
        """Return what has come; nothing at the end."""
        while not self._pieces:
            if self._is_over:
                return b""
            self._has_news.clear()
            await self._has_news.wait()
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._bytes = 0
        if self._is_held:
            self._is_held = False
            self._chan.resume_reading()
        return data


class _Room:
    """Lets a writer wait while the client does not read."""

    def __init__(self) -> None:
        self._has_room = asyncio.Event()
        self._has_room.set()

    def pause(self) -> None:
        self._has_room.clear()

    def resume(self) -> None:
        self._has_room.set()

    async def wait(self) -> None:
        await self._has_room.wait()


class _Session(asyncssh.SSHServerSession[bytes]):
    """A shell, a command or `sftp`."""

    def __init__(self, streams: JobStreams, job: JobAddress) -> None:
        self._streams = streams
        self._job = job
        self._input = _Input()
        self._room = _Room()
        self._size: Size | None = None
        self._term = ""
        self._words: tuple[str, ...] = ()
        self._subsystem = ""
        self._exec: ExecSession | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._chan = chan
        self._input.attach(chan)

    # -- what the client asks for -------------------------------------------------------------------

    def pty_requested(self, term_type: str, term_size: Any, term_modes: Any) -> bool:
        columns, rows = term_size[:2]
        self._size, self._term = Size(rows, columns), term_type
        return True

    def shell_requested(self) -> bool:
        self._words = SHELL
        return True

    def exec_requested(self, command: str) -> bool:
        self._words = (*_COMMAND, command)
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        self._subsystem = subsystem
        return subsystem == "sftp"

    def session_started(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes, datatype: Any) -> None:
        self._input.put(data)

    def eof_received(self) -> bool:
        self._input.end()
        return True  # The output still comes.

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        self._size = Size(height, width)
        if self._exec is not None:
            with contextlib.suppress(ProviderError):
                self._exec.resize(self._size)

    def signal_received(self, signal: str) -> None:
        if self._exec is not None and signal in exec_pieces.SIGNALS:
            with contextlib.suppress(ProviderError):
                self._exec.signal(signal)

    def break_received(self, msec: int) -> bool:
        self.signal_received("INT")
        return True

    def pause_writing(self) -> None:
        self._room.pause()

    def resume_writing(self) -> None:
        self._room.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.resume()
        if self._task is not None:
            self._task.cancel()

    # -- the command --------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            opened = await self._streams.open_exec(self._request())
        except ProviderError as error:
            self._fail(error)
            return
        self._exec = opened
        feeding = asyncio.get_running_loop().create_task(self._feed(opened))
        try:
            async for data, is_error in opened.output():
                await self._room.wait()
                (self._chan.write_stderr if is_error else self._chan.write)(data)
            self._say_end(opened)
        except ProviderError as error:
            self._fail(error)
        finally:
            feeding.cancel()
            self._exec = None
            await opened.close()

    def _request(self) -> ExecRequest:
        if self._subsystem:
            return ExecRequest(self._job.key, self._job.job_uid, (), subsystem=self._subsystem)
        given = dict(self._chan.get_environment())
        known = {name: value for name, value in given.items() if _VARIABLE.fullmatch(name)}
        settings = ("env", *(f"{name}={value}" for name, value in known.items())) if known else ()
        words = (*settings, *self._words)
        return ExecRequest(self._job.key, self._job.job_uid, words, self._size, self._term)

    async def _feed(self, opened: ExecSession) -> None:
        # A connection that is lost ends the output, which says so.
        with contextlib.suppress(ProviderError):
            while data := await self._input.take():
                await opened.write(data)
            opened.end_input()

    def _say_end(self, opened: ExecSession) -> None:
        end = opened.end()
        if end.job_ended:
            self._complain("the job has ended, and the command with it")
        if end.exit_code is not None:
            self._chan.exit(end.exit_code)
        else:
            name = signal.Signals(end.signal or signal.SIGKILL).name
            self._chan.exit_with_signal(name.removeprefix("SIG"))

    def _fail(self, error: ProviderError) -> None:
        self._complain(str(error))
        self._chan.exit(_UNREACHABLE)

    def _complain(self, message: str) -> None:
        # In a raw terminal a line begins at the left only after a carriage return.
        self._chan.write_stderr(f"fleetform: {message}\r\n".encode())


class _Forward(asyncssh.SSHTCPSession[bytes]):
    """A connection to a port of the job."""

    def __init__(self, opened: ForwardSession) -> None:
        self._opened = opened
        self._input = _Input()
        self._room = _Room()
        self._tasks: list[asyncio.Task[None]] = []

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        self._chan = chan
        self._input.attach(chan)

    def session_started(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._carry())]

    def data_received(self, data: bytes, datatype: Any) -> None:
        self._input.put(data)

    def eof_received(self) -> bool:
        self._input.end()
        return True

    def pause_writing(self) -> None:
        self._room.pause()

    def resume_writing(self) -> None:
        self._room.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.resume()
        for task in self._tasks:
            task.cancel()

    async def _carry(self) -> None:
        feeding = asyncio.get_running_loop().create_task(self._feed())
        try:
            while data := await self._opened.read():
                await self._room.wait()
                self._chan.write(data)
            self._chan.write_eof()
            await feeding
        except ProviderError:
            pass  # The client sees its connection end.
        finally:
            feeding.cancel()
            await self._opened.close()
            self._chan.close()

    async def _feed(self) -> None:
        with contextlib.suppress(ProviderError):
            while data := await self._input.take():
                await self._opened.write(data)
            self._opened.end_input()
