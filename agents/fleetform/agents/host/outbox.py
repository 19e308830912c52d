"""
What is still to be said on one connection: answers and events at once, output as it fits.

Frames leave in the order they were said. Output waits on disk where it lies while the other side
gives no credit for it or does not read, and answers and events go out all the same: a job's end
is known, and its GPUs are free, before the last of its output has arrived. Which piece is the
last, the piece says.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable

from fleetform.agents.host import joblog, layout
from fleetform.agents.protocol.channels import Credit
from fleetform.agents.protocol.frames import Message, encode
from fleetform.agents.protocol.link import LOG_CHANNEL, Window
from fleetform.agents.protocol.messages import LogData

_PIECE_BYTES = 256 << 10
"""A third more as base64; far below a frame's limit, and one job does not keep others waiting."""

_PIECES_A_TURN = 4
"""Then the loop gets to hear what has come in."""


class _Feed:
    """One job's output on its way to one reader."""

    def __init__(self, job_uid: str, path: str, offset: int) -> None:
        self.job_uid = job_uid
        self.offset = offset
        self.end_bytes: int | None = None
        self._path = path
        self._reader: joblog.Reader | None = None

    def next_piece(self, bytes_max: int) -> joblog.Piece | None:
        if self.end_bytes is not None and self.offset >= self.end_bytes:
            return None
        try:
            return self._read(bytes_max)
        except OSError:
            return None  # Nothing written yet, or nothing left that could be read.

    def _read(self, bytes_max: int) -> joblog.Piece | None:
        if self._reader is None:
            self._reader = joblog.Reader(self._path)
        piece = self._reader.read(self.offset, bytes_max)
        if piece is None and not self._reader.is_of(self._path):
            self._reader.close()
            self._reader = joblog.Reader(self._path)
            piece = self._reader.read(self.offset, bytes_max)
        return piece

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


class Outbox:
    """
    Attributes:
        paused: The other side does not keep up; output waits.
    """

    def __init__(self, write: Callable[[bytes], None], jobs: str) -> None:
        """`write` takes bytes and never blocks; `jobs` is the folder of the jobs' directories."""
        self.paused = False
        self._write = write
        self._jobs = jobs
        self._frames: list[bytes] = []
        self._feeds: dict[str, _Feed] = {}
        # Ordered, so that a loud job comes again after the others.
        self._touched: dict[str, None] = {}
        self._window: Window | None = None

    def limit_output(self) -> None:
        """Send no more output than the other side gives credit for, as it does from version 2 on."""
        self._window = Window()

    def credit(self, message: Credit) -> None:
        if self._window is not None and message.channel == LOG_CHANNEL:
            self._window.take(message.size_bytes, time.monotonic())

    def say(self, message: Message) -> None:
        self._frames.append(encode(message))

    def follow(self, job_uid: str, offset: int) -> None:
        """Send this job's output from `offset` on, from now on."""
        known = self._feeds.pop(job_uid, None)
        feed = _Feed(job_uid, f"{self._jobs}/{job_uid}/{layout.OUTPUT}", offset)
        if known is not None:
            known.close()
            feed.end_bytes = known.end_bytes
        self._feeds[job_uid] = feed
        self.touch(job_uid)

    def touch(self, job_uid: str) -> None:
        """There may be more output of this job."""
        if job_uid in self._feeds:
            self._touched[job_uid] = None

    def end(self, job_uid: str, log_bytes: int) -> None:
        """The job has written `log_bytes` in all, and will never write more."""
        feed = self._feeds.get(job_uid)
        if feed is not None:
            feed.end_bytes = log_bytes
            self.touch(job_uid)

    @property
    def owes_output(self) -> bool:
        """Whether the output of a job that has ended is not yet on its way."""
        return any(feed.end_bytes is not None for feed in self._feeds.values())

    def pump(self) -> bool:
        """Say what output there is, up to a turn's share; tell whether there may be more."""
        pieces = 0
        while self._may_send and pieces < _PIECES_A_TURN:
            job_uid = next(iter(self._touched))
            del self._touched[job_uid]
            pieces += self._advance(self._feeds[job_uid])
        return self._may_send

    @property
    def _may_send(self) -> bool:
        has_room = self._window is None or self._window.has_room
        return bool(self._touched) and not self.paused and has_room

    def flush(self) -> None:
        if self._frames:
            frames, self._frames = self._frames, []
            self._write(b"".join(frames))

    def close(self) -> None:
        """Give up: output stays where it lies."""
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()
        self._touched.clear()
        self._frames.clear()

    def _advance(self, feed: _Feed) -> int:
        """Say one piece; returns how many pieces were read."""
        piece = feed.next_piece(self._piece_bytes)
        data = b""
        if piece is not None:
            feed.offset = piece.offset + len(piece.data)
            data = piece.data
        offset = feed.offset - len(data)
        end = feed.end_bytes
        if end is not None and (piece is None or feed.offset >= end):
            self._complete(feed, end, offset, data)
        elif piece is not None:
            self._say_output(_log_data(feed.job_uid, offset, data))
            self.touch(feed.job_uid)
        return int(piece is not None)

    @property
    def _piece_bytes(self) -> int:
        if self._window is None:
            return _PIECE_BYTES
        return min(self._window.piece_bytes, _PIECE_BYTES)

    def _say_output(self, message: LogData) -> None:
        if self._window is not None:
            self._window.send(len(message.data), time.monotonic())
        self.say(message)

    def _complete(self, feed: _Feed, end_bytes: int, offset: int, data: bytes) -> None:
        # Where nothing more is kept, the offset tells how much there has been.
        offset = offset if data else max(offset, end_bytes)
        self._say_output(_log_data(feed.job_uid, offset, data, complete=True))
        feed.close()
        del self._feeds[feed.job_uid]


def _log_data(job_uid: str, offset: int, data: bytes, *, complete: bool = False) -> LogData:
    return LogData(job_uid, offset, base64.b64encode(data).decode("ascii"), complete)
