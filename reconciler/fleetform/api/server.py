"""
Answers the API on a socket that listens already, in the calling process, until that ends.

What peers do wrong is not logged, and what is logged has a limit: a client that asks for a fault a
thousand times a second fills no disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import anyio.to_thread
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

# Connections of the API: how many may be open, and how long one may wait for its peer.
#
# uvicorn limits neither. It has a timeout between two requests and none for a request's first byte or
# its headers, it waits without an end for a peer that does not read, and asyncio's own loop of accepts
# asks again for each place in the backlog when no descriptor is left, with a line in the log for each.
# So connections are accepted here, and uvicorn's protocol gets a timer:
#
# - A connection that waits for its peer, to send a request or to read an answer, ends after
#   `wait_seconds`.
# - Where as many are open as may be, the one that has waited longest makes room for the next. A peer
#   that opens thousands and sends nothing ends its own, and one that asks at once is answered.
# - Only where every open connection is being answered does the next one wait.

WAIT_SECONDS = 10.0
"""
How long a connection may wait for its peer without an end of that.

nginx gives a request's headers 60 s and a peer that does not read as much; here peers are scripts
and pages on this machine or behind `ssh -L`. A peer that reads must take 48 KiB in that time:
asyncio calls a full buffer of 64 KiB writable again at 16 KiB.
"""

CONNECTIONS_MAX = 128
"""Each may hold a page of the longest list in memory, some 1 MB."""

_PAUSE_SECONDS = 0.5
"""Between two tries to accept after one that failed."""

_READ_SECONDS = 1.0
"""How long a peer that has not read its whole answer yet makes no room for another."""

_FEWER_SECONDS = 60.0
"""How long fewer connections are open after the machine had no room for another one."""

_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_log = logging.getLogger(__name__)


class Connections:
    """What is open. `waiting` are those that wait for their peer, the longest first."""

    def __init__(
        self, maximum: int = CONNECTIONS_MAX, *, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self.wait_seconds = wait_seconds
        self.waiting: dict[Connection, None] = {}
        self._maximum = self._allowed = maximum
        self._open: set[Connection] = set()
        self._changed = asyncio.Event()

    def opened(self, connection: Connection) -> None:
        self._open.add(connection)

    def closed(self, connection: Connection) -> None:
        self._open.discard(connection)
        self.waiting.pop(connection, None)
        self._changed.set()

    def begins_to_wait(self, connection: Connection) -> None:
        self.waiting[connection] = None
        self._changed.set()

    async def room(self) -> None:
        """Return once another connection may be opened."""
        while (surplus := len(self._open) - self._allowed + 1) > 0:
            self._changed.clear()
            ended = [connection for connection in self.waiting if connection.may_end()]
            for connection in ended[:surplus]:
                connection.end()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_READ_SECONDS):
                    await self._changed.wait()

    def allow_fewer(self) -> None:
        """
        Allow half as many for a while as are open now.

        Out of descriptors, requests need some too: each opens the ledger.
        """
        self._allowed = max(1, len(self._open) // 2)
        asyncio.get_running_loop().call_later(_FEWER_SECONDS, self._allow_all)

    def _allow_all(self) -> None:
        self._allowed = self._maximum


class Connection(H11Protocol):
    """uvicorn's connection, which does not wait for its peer for long."""

    def __init__(self, connections: Connections, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None
        self._waits_since = 0.0

    def may_end(self) -> bool:
        """Tell whether it may make room for another, given that it waits for its peer."""
        is_read = not self.transport.get_write_buffer_size()
        return is_read or self.loop.time() - self._waits_since >= _READ_SECONDS

    def end(self) -> None:
        """Close it; what the peer has not read by now is dropped."""
        self._connections.waiting.pop(self, None)
        if self.transport.get_write_buffer_size():
            # A close would first wait for the peer to read the rest.
            self.transport.abort()
        else:
            self.transport.close()

    # -- asyncio's and uvicorn's calls --------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        super().connection_made(transport)
        self._connections.opened(self)
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._note()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._note()

    # -- waiting for the peer -----------------------------------------------------------------

    def _note(self) -> None:
        """Start the timer where it begins to wait; one byte of many does not start it again."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and not self.flow.write_paused:
            self._stop_timer()
            self._connections.waiting.pop(self, None)
        elif self._timer is None:
            # Also where it is closing: that too may wait for the peer to read the rest.
            self._waits_since = self.loop.time()
            self._timer = self.loop.call_later(self._connections.wait_seconds, self.end)
            self._connections.begins_to_wait(self)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def accept_forever(
    listening: socket.socket, connections: Connections, make: Callable[[], Connection]
) -> None:
    """Accept connections until cancelled; whatever goes wrong, never in a hot loop."""
    loop = asyncio.get_running_loop()
    listening.setblocking(False)
    while True:
        try:
            accepted, _ = await loop.sock_accept(listening)
        except ConnectionAbortedError:
            continue
        except OSError as problem:
            _log.warning("no connection can be accepted now: %s", problem.strerror)
            if problem.errno in _FULL:
                connections.allow_fewer()
            await asyncio.sleep(_PAUSE_SECONDS)
            continue
        try:
            # Not before: while no other client comes, those that wait may.
            await connections.room()
            await loop.connect_accepted_socket(make, accepted)
        except OSError:
            # Its peer is gone already.
            accepted.close()
        except BaseException:
            accepted.close()
            raise


THREADS = 4
"""
Requests that are worked on at once; others wait for their turn.

Python runs one of them at a time, and each holds its rows in memory: more would only take memory
from what else runs there.
"""

_LOG_LINES = 10
_LOG_SECONDS = 60.0


def answer_forever(app: ASGIApp, listening: socket.socket, *, maximum: int) -> None:
    """
    Answer each client that connects.

    Args:
        app: Answers the requests.
        listening: Where to accept connections.
        maximum: How many connections may be open; no more than `CONNECTIONS_MAX` are.
    """
    asyncio.run(_answer(app, listening, min(maximum, CONNECTIONS_MAX)))


async def _answer(app: ASGIApp, listening: socket.socket, maximum: int) -> None:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    connections = Connections(maximum)
    make = make_connections(app, connections, asyncio.get_running_loop())
    await accept_forever(listening, connections, make)


def make_connections(
    app: ASGIApp, connections: Connections, loop: asyncio.AbstractEventLoop
) -> Callable[[], Connection]:
    """
    Return what makes uvicorn's protocol for a connection.

    Of its server nothing else is used: that is about sockets, signals and several workers.
    """
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
    )
    config.load()
    state = ServerState()
    return lambda: Connection(
        connections, config=config, server_state=state, app_state={}, _loop=loop
    )


class LogLimit(logging.Filter):
    """Lets `lines` records pass in each `seconds`, and the next one says how many did not."""

    def __init__(
        self,
        lines: int = _LOG_LINES,
        seconds: float = _LOG_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._lines = lines
        self._seconds = seconds
        self._clock = clock
        self._since = clock()
        self._passed = 0
        self._dropped = 0

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        if now - self._since >= self._seconds:
            self._since, self._passed = now, 0
        if self._passed >= self._lines:
            self._dropped += 1
            return False
        self._passed += 1
        if self._dropped:
            record.msg = f"{record.getMessage()} ({self._dropped} earlier lines were left out)"
            record.args = ()
            self._dropped = 0
        return True


def log_to_stderr() -> None:
    """Log warnings and errors to standard error, within limits."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("api: %(message)s"))
    handler.addFilter(LogLimit())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    # Its warnings are about what peers send.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
