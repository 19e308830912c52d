"""
How two ends share one connection and know that it lives: values in, values out.

A half-open connection looks like a quiet one. Each end therefore says something every 15 s, and
gives the connection up when it has heard nothing for two whole intervals. Intervals are counted
rather than timed: a process that could not run for a minute has missed one interval, and reads
what arrived meanwhile before the next one ends.

What may be large travels in channels: contents of files, output, and later terminals, forwarded
ports and metrics. Each has its own credit, so that it cannot fill the line: what is under way, in
buffers of either end or of anything between them, is never more than the line carries in half a
second. A request overtakes all but that. Standard library only, Python 3.9.
"""

from __future__ import annotations

import collections

HEARTBEAT_SECONDS = 15.0
"""A connection that carries nothing is given up after 30 to 45 s."""

_SILENT_INTERVALS_MAX = 2

LOG_CHANNEL = 1
"""Open from the beginning: it carries `LogData` from the agent. Opened ones have higher numbers."""

OWN_CHANNEL_FIRST = 1 << 31
"""Channels that the agent opens have numbers from here on, and the others lower ones."""

CONTROL, STREAMS, LOGS, BLOBS = range(4)
"""Priorities, the most urgent first: which frames leave first of those that wait."""

PRIORITY_OF_KIND = {
    "exec": STREAMS,
    "forward": STREAMS,
    "rank": STREAMS,
    "log": LOGS,
    "metrics": LOGS,
    "blob": BLOBS,
}
"""
The kinds of channels. An agent refuses by name those that it does not have. `rank` is opened by the
agent: a command that a job starts in another rank of its run.
"""

WINDOW_MIN_BYTES = 32 << 10
"""A quarter of a second at 1 Mbit/s; less would leave a line with a long round trip idle."""

WINDOW_MAX_BYTES = 4 << 20
"""Covers a round trip of 40 ms at 100 MB/s, and bounds what is held in memory."""

_UNDER_WAY_SECONDS = 0.5
_RATES_KEPT = 8


class Pulse:
    """Counts the intervals in which nothing was heard."""

    def __init__(self) -> None:
        self._heard = True
        self._silent = 0

    def hear(self) -> None:
        """Note that bytes have arrived, whatever they mean."""
        self._heard = True

    def is_dead(self) -> bool:
        """End an interval, and tell whether the other end has been silent for too long."""
        self._silent = 0 if self._heard else self._silent + 1
        self._heard = False
        return self._silent >= _SILENT_INTERVALS_MAX


class Window:
    """
    The sender's account of one credit: what is under way, and how much of it may be.

    Sizes are those of a message's `data` as it travels. The rate is measured from what the
    receiver has taken in between a piece's departure and the credit for it; the best of the last
    few counts, since a sender that pauses measures too little.

    Attributes:
        limit: How many bytes may be under way.
    """

    def __init__(self) -> None:
        self.limit = WINDOW_MIN_BYTES
        self._sent = 0
        self._taken = 0
        self._taken_at = 0.0
        # For each piece: what had been sent with it, and taken before it, until when.
        self._pieces: collections.deque[tuple[int, int, float]] = collections.deque()
        self._rates: collections.deque[float] = collections.deque(maxlen=_RATES_KEPT)

    @property
    def has_room(self) -> bool:
        """Whether one more piece may leave; it may be larger than what is left."""
        return self._sent - self._taken < self.limit

    @property
    def piece_bytes(self) -> int:
        """How large a piece should be, so that several are under way."""
        return self.limit // 4

    def send(self, size: int, now: float) -> None:
        """A piece leaves; `now` is of any clock that does not jump, in seconds."""
        if self._sent == self._taken:
            self._taken_at = now
        self._sent += size
        self._pieces.append((self._sent, self._taken, self._taken_at))

    def take(self, size: int, now: float) -> None:
        """The receiver has processed so much more."""
        self._taken = min(self._taken + size, self._sent)
        self._taken_at = now
        while self._pieces and self._pieces[0][0] <= self._taken:
            _, taken_before, since = self._pieces.popleft()
            if now > since:
                self._rates.append((self._taken - taken_before) / (now - since))
        if self._rates:
            allowed = int(max(self._rates) * _UNDER_WAY_SECONDS)
            self.limit = min(max(allowed, WINDOW_MIN_BYTES), WINDOW_MAX_BYTES)
