"""
Answers the API on a socket that listens already, in the calling process, until that ends.

What peers do wrong is not logged, and what is logged has a limit: a client that asks for a fault a
thousand times a second fills no disk.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Callable

import anyio.to_thread
import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from fleetform.api.connections import CONNECTIONS_MAX, Connection, Connections, accept_forever

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
