"""
Following a run's output: every rank of every attempt, from where the reader is.

The store is polled: a file that another process appends to tells nobody. An eighth of a
second is below what a person notices, and a poll of an idle run costs two file sizes.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetform.model.run import FINAL, Attempt

if TYPE_CHECKING:
    from fleetform.model.ports import LogStore, RunHistory

_POLL_SECONDS = 0.125
# One read; large enough that a finished log of megabytes is a handful of reads.
_PIECE_BYTES = 1 << 20


@dataclass(slots=True)
class Channel:
    """One rank's output as far as it was read; `partial` is a line without its end yet."""

    run_uid: str
    attempt: int
    rank: int
    offset: int = 0
    partial: bytes = field(default=b"")

    def read(self, store: LogStore) -> bytes:
        """Take what is new, all of it."""
        pieces: list[bytes] = []
        while True:
            data, after = store.read(
                self.run_uid, self.attempt, self.rank, self.offset, _PIECE_BYTES
            )
            if after == self.offset:
                return b"".join(pieces)
            pieces.append(data)
            self.offset = after

    def lines(self, store: LogStore, *, ended: bool) -> list[bytes]:
        """Take the whole lines that are new; with `ended` the last one needs no newline."""
        new = self.read(store)
        if not new and not ended:
            # Megabytes without a newline are not copied at each poll.
            return []
        data = self.partial + new
        *lines, self.partial = data.split(b"\n")
        if ended and self.partial:
            lines.append(self.partial)
            self.partial = b""
        return lines


def channels(attempt: Attempt, rank: int | None) -> list[Channel]:
    """Open the output of one attempt, of all ranks or of one."""
    return [
        Channel(attempt.run_uid, attempt.number, job.key.rank)
        for job in attempt.jobs
        if rank is None or job.key.rank == rank
    ]


def last_lines(store: LogStore, attempt: Attempt, count: int) -> list[str]:
    """Take the last lines of the attempt's first rank that printed something."""
    for channel in channels(attempt, None):
        lines = channel.lines(store, ended=True)
        if lines:
            return [line.decode("utf-8", "replace") for line in lines[-count:]]
    return []


def prefixed(rank: int, lines: list[bytes], *, several: bool) -> bytes:
    """Join lines for output; several ranks need a mark of whose line it is."""
    mark = f"[rank {rank}] ".encode() if several else b""
    return b"".join(mark + line + b"\n" for line in lines)


def whole(store: LogStore, attempt: Attempt, rank: int | None, tail: int | None) -> Iterator[bytes]:
    """Yield what an attempt has printed so far; with `tail` each rank's last lines only."""
    opened = channels(attempt, rank)
    for channel in opened:
        if len(opened) == 1 and tail is None:
            # As it is, so that binary output and a missing last newline come out unchanged.
            yield channel.read(store)
            continue
        lines = channel.lines(store, ended=True)
        kept = list(collections.deque(lines, maxlen=tail)) if tail is not None else lines
        yield prefixed(channel.rank, kept, several=len(opened) > 1)


def follow(
    reread: Callable[[], RunHistory],
    store: LogStore,
    *,
    rank: int | None,
    tail: int | None,
    notice: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
    every_attempt: bool = False,
) -> Iterator[bytes]:
    """
    Yield a run's output as it arrives, until the run is over and all of it has come.

    Args:
        reread: Reads the run again; called once a poll.
        store: Where the output is kept.
        rank: Only this rank's; None for all.
        tail: How many lines of what is there already; None for all.
        notice: Told when a further attempt begins.
        sleep: Waits between polls; tests pass time in it.
        every_attempt: Begin with the first attempt, not with the latest one.
    """
    history = reread()
    number = 0
    opened: list[Channel] = []
    while True:
        # A short attempt may begin and end between two polls.
        new = [attempt for attempt in history.attempts if attempt.number > number]
        for attempt in new if number or every_attempt else new[-1:]:
            if number:
                for channel in opened:
                    # The attempt before is over: its last line may have no newline.
                    lines = channel.lines(store, ended=True)
                    yield prefixed(channel.rank, lines, several=len(opened) > 1)
                notice(f"attempt {attempt.number}")
            number = attempt.number
            opened = channels(attempt, rank)
            yield from _skipped_to(store, opened, tail)
            tail = None
        over = history.run.state in FINAL
        for channel in opened:
            # A job's output is all there before its end is; of a lost job's the rest never
            # comes. Either way nothing follows the end of a run.
            lines = channel.lines(store, ended=over)
            yield prefixed(channel.rank, lines, several=len(opened) > 1)
        if over:
            return
        sleep(_POLL_SECONDS)
        history = reread()


def _skipped_to(store: LogStore, opened: list[Channel], tail: int | None) -> Iterator[bytes]:
    if tail is None:
        return
    for channel in opened:
        lines = channel.lines(store, ended=False)
        yield prefixed(
            channel.rank, lines[len(lines) - tail :] if tail else [], several=len(opened) > 1
        )
