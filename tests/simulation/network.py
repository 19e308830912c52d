"""
Connections that delay, break, and deliver late, as a seed says.

A link carries bytes both ways in order, like TCP: what arrives is a prefix of what was sent.
A message is lost when its connection breaks, and doubled when the sender asks again; a connection
that was given up may still deliver what was on its way.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque


class Pipe:
    """One direction: bytes arrive in order, each piece after its delay."""

    def __init__(self, source: random.Random, delay_max: float) -> None:
        self._random = source
        self._delay_max = delay_max
        self._loop = asyncio.get_running_loop()
        # Timers of the same time run in any order, so each lets the oldest piece arrive.
        self._travelling: deque[bytes | None] = deque()
        self._arrived: deque[bytes] = deque()
        self._ended = False
        self._broken = False
        self._waiter: asyncio.Future[None] | None = None
        self._last_arrival = 0.0
        self._held_until = 0.0

    @property
    def ended(self) -> bool:
        """Whether no more will arrive."""
        return self._ended

    def send(self, data: bytes) -> None:
        if not self._broken:
            self._travel(data, self._random.uniform(0, self._delay_max))

    def end(self) -> None:
        """Say that no more comes; what is on its way still arrives."""
        self._travel(None, 0.0)

    def _travel(self, data: bytes | None, delay: float) -> None:
        self._travelling.append(data)
        self._last_arrival = max(self._last_arrival, self._loop.time() + delay)
        self._loop.call_at(self._last_arrival, self._arrive)

    def hold(self, seconds: float) -> None:
        """Let nothing arrive for a while: what is on its way, and what is sent meanwhile, comes late."""
        self._held_until = self._loop.time() + seconds

    def break_now(self) -> None:
        """Lose what is on its way."""
        self._broken = True
        self._finish()

    async def receive(self) -> bytes:
        """Return the next piece, or nothing at the end."""
        while not self._arrived:
            if self._ended:
                return b""
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._arrived.popleft()

    def _arrive(self) -> None:
        if self._loop.time() < self._held_until and not self._broken:
            self._loop.call_at(self._held_until, self._arrive)
            return
        data = self._travelling.popleft()
        if self._broken or self._ended:
            return
        if data is None:
            self._finish()
            return
        self._arrived.append(data)
        self._wake()

    def _finish(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class End:
    """One end of a link; fits where a reader and a writer are wanted."""

    def __init__(self, incoming: Pipe, outgoing: Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def read(self, size: int) -> bytes:
        # Pieces are frames joined by one turn of the sender's loop; far below any `size`.
        return await self._incoming.receive()

    def write(self, data: bytes) -> None:
        self._outgoing.send(bytes(data))

    async def drain(self) -> None:
        """Nothing is ever full."""

    def close(self) -> None:
        self._outgoing.end()
        self._incoming.break_now()

    async def wait_closed(self) -> None:
        """Closed at once."""


class Link:
    """Both directions of one connection."""

    def __init__(self, source: random.Random, delay_max: float) -> None:
        there, back = Pipe(source, delay_max), Pipe(source, delay_max)
        self.near = End(back, there)
        self.far = End(there, back)
        self._pipes = (there, back)

    @property
    def is_open(self) -> bool:
        return not any(pipe.ended for pipe in self._pipes)

    def hold(self, seconds: float) -> None:
        """Let nothing through for a while, and then all of it."""
        for pipe in self._pipes:
            pipe.hold(seconds)

    def reset(self) -> None:
        """Cut the line: both ends see the end, and what was on its way is lost."""
        for pipe in self._pipes:
            pipe.break_now()
