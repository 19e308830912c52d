"""
TCP connections to ports of running jobs, each over one channel of the kind `forward`.

The agent connects to the port on the loopback of the host, where programs of a job listen: no port
is open to the network. Like a command, a connection has credit both ways, is read only while the
other side gives credit, and ends with its channel or with its job.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

from fleetform.agents.host.blobs import BlobError
from fleetform.agents.protocol import exec_pieces
from fleetform.agents.protocol.channels import ChannelData, ChannelEnded, Credit
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.link import WINDOW_MAX_BYTES, Window
from fleetform.agents.protocol.messages import JobKey, JobRecord
from fleetform.agents.protocol.states import JobState

FORWARDS_MAX = 512
"""On one host at a time; a page of a notebook opens about ten."""

CONNECT_SECONDS = 10.0
"""Loopback answers at once, unless a program listens and does not accept."""

_LOOPBACK = ("127.0.0.1", "::1")
"""In this order: some programs listen on one of them only."""

_READ_BYTES = 32 << 10
_WRITE_BUFFER_BYTES = 64 << 10
_INPUT_BYTES_MAX = 2 * WINDOW_MAX_BYTES
"""Far beyond what credit allows: a sender of more ignores it."""

_CLOSE_SECONDS = 5.0
"""For what has arrived to reach the program, after the other side has left."""


class Forwards:
    """The forwarded connections of all channels; `find` returns what is known of a job."""

    def __init__(self, find: Callable[[str], JobRecord | None]) -> None:
        self._find = find
        self._open: list[ForwardChannel] = []
        # asyncio itself holds tasks by weak references only.
        self._connecting: list[asyncio.Task[None]] = []

    def open(
        self,
        channel: int,
        parameters: dict[str, Any],
        say: Callable[[Message], None],
        connected: Callable[[BlobError | None], None],
    ) -> ForwardChannel:
        """
        Begin to connect; `connected` is called once, with the reason where that fails.

        Raises:
            BlobError: The parameters are not valid, the job does not run, or too many are open.
        """
        job_uid, key, port = _read(parameters)
        record = self._find(job_uid)
        if record is None or record.key != key or record.state is not JobState.RUNNING:
            state = "not on this host" if record is None else record.state.value
            raise BlobError("not_found", f"the job does not run: it is {state}")
        if len(self._open) >= FORWARDS_MAX:
            raise BlobError("busy", f"{FORWARDS_MAX} connections to jobs of this host are open")
        opened = ForwardChannel(channel, job_uid, say, self._forget)
        self._open.append(opened)
        task = asyncio.get_running_loop().create_task(self._connect(opened, port, connected))
        self._connecting.append(task)
        task.add_done_callback(self._connecting.remove)
        return opened

    def end(self, job_uid: str) -> None:
        """Cut the connections to a job that is over."""
        for one in list(self._open):
            if one.job_uid == job_uid:
                one.end_with_job()

    def close(self) -> None:
        """Cut all: the agent ends."""
        for one in list(self._open):
            one.end_with_job()

    async def _connect(
        self, opened: ForwardChannel, port: int, connected: Callable[[BlobError | None], None]
    ) -> None:
        dialing = asyncio.get_running_loop().create_task(_dial(opened, port))
        # Neither `asyncio.timeout`, which Python 3.9 lacks, nor `wait_for`, which may lose a cancel.
        done, _ = await asyncio.wait([dialing], timeout=CONNECT_SECONDS)
        reason = ""
        if not done:
            dialing.cancel()
            reason = "no answer"
        elif isinstance(error := dialing.exception(), OSError):
            reason = _reason(error)
        if reason:
            self._forget(opened)
        connected(BlobError("refused", f"port {port} of the job: {reason}") if reason else None)

    def _forget(self, channel: ForwardChannel) -> None:
        with contextlib.suppress(ValueError):
            self._open.remove(channel)


class ForwardChannel(asyncio.BufferedProtocol):
    """
    One connection to a port and the channel that carries it.

    Attributes:
        job_uid: The job that the port belongs to.
    """

    def __init__(
        self,
        channel: int,
        job_uid: str,
        say: Callable[[Message], None],
        over: Callable[[ForwardChannel], None],
    ) -> None:
        self.job_uid = job_uid
        self._channel = channel
        self._say = say
        self._over = over
        self._window = Window()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray(_READ_BYTES)
        # Input that came before the connection, in order; an empty one is the end.
        self._early: list[bytes] = []
        self._owed_bytes = 0
        self._is_stuck = False
        self._is_paused = False
        self._is_reading = True
        self._input_ended = False
        self._output_ended = False
        self._is_left = False
        self._is_closed = False
        self._job_ended = False

    # -- what arrives on the channel ----------------------------------------------------------------

    def take(self, piece: bytes, size: int) -> None:
        """
        Take a piece in; `size` is what it is credited by.

        Raises:
            ValueError: It is none of a forwarded connection, or more than there was credit for.
        """
        kind, content = (piece[0], piece[1:]) if piece else (None, b"")
        if kind == exec_pieces.END_OF_INPUT:
            self._say(Credit(self._channel, size))
            self._end_input()
            return
        if kind != exec_pieces.DATA:
            raise ValueError("a piece is of no known kind")
        if self._owed_bytes + size > _INPUT_BYTES_MAX:
            raise ValueError("more input arrives than there is credit for")
        self._owed_bytes += size
        if self._transport is None:
            self._early.append(content)
        elif not self._input_ended and not self._transport.is_closing():
            self._transport.write(content)
        self._give_credit()

    def credit(self, size: int) -> None:
        self._window.take(size, time.monotonic())
        self._read_on()

    def pause(self, *, paused: bool) -> None:
        """Read nothing while the connection to the other side does not keep up."""
        self._is_paused = paused
        self._read_on()

    def hang_up(self) -> None:
        """The other side has left: what has arrived still reaches the program."""
        self._is_left = True
        if self._transport is not None:
            transport = self._transport
            transport.close()
            asyncio.get_running_loop().call_later(_CLOSE_SECONDS, transport.abort)

    def end_with_job(self) -> None:
        self._job_ended = True
        if self._transport is not None:
            self._transport.abort()

    def _end_input(self) -> None:
        if self._input_ended:
            return
        if self._transport is None:
            self._early.append(b"")
            return
        self._input_ended = True
        with contextlib.suppress(OSError, RuntimeError):  # It has been reset meanwhile.
            self._transport.write_eof()
        self._close_if_done()

    def _give_credit(self) -> None:
        """Credit what the program takes; where it takes none, the sender waits."""
        if self._owed_bytes and self._transport is not None and not self._is_stuck:
            owed, self._owed_bytes = self._owed_bytes, 0
            self._say(Credit(self._channel, owed))

    # -- the connection -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        if self._is_left or self._job_ended:
            transport.abort()
            return
        for content in self._early:
            if content:
                transport.write(content)
            else:
                self._end_input()
        self._early.clear()
        self._give_credit()
        self._read_on()

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)[: min(self._window.piece_bytes, _READ_BYTES)]

    def buffer_updated(self, nbytes: int) -> None:
        self._send(bytes([exec_pieces.DATA]) + self._buffer[:nbytes])
        self._read_on()

    def eof_received(self) -> bool:
        self._output_ended = True
        self._send(bytes([exec_pieces.END_OF_INPUT]))
        self._close_if_done()
        return True  # The other direction goes on.

    def pause_writing(self) -> None:
        self._is_stuck = True

    def resume_writing(self) -> None:
        self._is_stuck = False
        self._give_credit()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        self._over(self)
        if self._is_left:
            return
        body: dict[str, Any] = {"job_ended": True} if self._job_ended else {}
        is_broken = exc is not None and not (self._input_ended and self._output_ended)
        reason = _reason(exc) if is_broken and isinstance(exc, OSError) else ""
        self._say(ChannelEnded(self._channel, "io" if reason else "", reason, body))

    def _send(self, piece: bytes) -> None:
        if not self._is_left:
            text = base64.b64encode(piece).decode("ascii")
            self._window.send(len(text), time.monotonic())
            self._say(ChannelData(self._channel, text))

    def _read_on(self) -> None:
        """Read while there is room, and only then."""
        wanted = self._window.has_room and not self._is_paused
        if self._transport is None or self._is_closed or wanted == self._is_reading:
            return
        self._is_reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _close_if_done(self) -> None:
        if self._input_ended and self._output_ended and self._transport is not None:
            self._transport.close()


async def _dial(channel: ForwardChannel, port: int) -> None:
    loop = asyncio.get_running_loop()
    for address in _LOOPBACK[:-1]:
        with contextlib.suppress(OSError):
            await loop.create_connection(lambda: channel, address, port)
            return
    try:
        await loop.create_connection(lambda: channel, _LOOPBACK[-1], port)
    except ConnectionRefusedError:
        raise
    except OSError as error:
        # A host without IPv6 says that it has no such address.
        raise ConnectionRefusedError(111, os.strerror(111)) from error


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def _read(parameters: dict[str, Any]) -> tuple[str, JobKey, int]:
    try:
        key = JobKey.parse(str(parameters["key"]))
        port = _port(parameters["port"])
    except (KeyError, TypeError, ValueError) as error:
        raise BlobError("invalid", f"the parameters of `forward` are not valid: {error}") from error
    return str(parameters.get("job_uid")), key, port


def _port(given: Any) -> int:
    port = int(given)
    if not 0 < port < 1 << 16:
        raise ValueError(f"{port} is not a port")
    return port
