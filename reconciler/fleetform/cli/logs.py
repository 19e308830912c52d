"""
Following a run's output: every rank of every attempt, from where the reader is.

The store is polled: a file that another process appends to sends no signal. An eighth of a
second is below what a person notices, and a poll of an idle run costs two file sizes.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING

from fleetform.cli.tree import not_driven
from fleetform.model.run import FINAL, Attempt

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.cli.screen import Screen

if TYPE_CHECKING:
    from fleetform.cli.screen import Screen
    from fleetform.model.ports import LogStore, RunHistory


_POLL_SECONDS = 0.125
_REST_SECONDS = 3.0
"""How long output that is lacking after a run's end is waited for while nothing of it comes."""

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
    rest = _Rest(store)
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
        over = history.run.state in FINAL and rest.is_here(history.attempts[-1:])
        for channel in opened:
            lines = channel.lines(store, ended=over)
            yield prefixed(channel.rank, lines, several=len(opened) > 1)
        if over:
            return
        sleep(_POLL_SECONDS)
        history = reread()


class _Rest:
    """
    Tells when no more output follows the end of a run.

    A job's end is known before the last of its output has arrived, which a slow line may carry for
    minutes; of a lost job's the rest never comes.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._arrived_bytes = -1
        self._still_since = 0.0

    def is_here(self, attempts: Sequence[Attempt]) -> bool:
        """Asked once a poll, as soon as the runs of these attempts are over."""
        arrived_bytes, lacking = 0, False
        for attempt in attempts:
            for job in attempt.jobs:
                where = (attempt.run_uid, attempt.number, job.key.rank)
                size = self._store.size(*where)
                arrived_bytes += size
                if size < job.log_bytes and not job.forgotten:
                    lacking = lacking or not self._store.is_complete(*where)
        now = time.monotonic()
        if arrived_bytes != self._arrived_bytes:
            self._arrived_bytes, self._still_since = arrived_bytes, now
        return not lacking or now - self._still_since > _REST_SECONDS


def _skipped_to(store: LogStore, opened: list[Channel], tail: int | None) -> Iterator[bytes]:
    if tail is None:
        return
    for channel in opened:
        lines = channel.lines(store, ended=False)
        yield prefixed(
            channel.rank, lines[len(lines) - tail :] if tail else [], several=len(opened) > 1
        )


# Output of several runs as one stream: each line begins with the element, or the run, that printed it.
# Runs that are over come one after another, in the order of their names. What is followed comes as
# it is printed.

FOLLOW_SECONDS = 0.5
"""Between two looks: the files of all elements that are not over are read each time."""

_TONES = ("info", "good", "warn", "bold")


class Prefixes:
    """The text before each line: `[lr=0.1] | ` among elements of one sweep, `train | ` among runs."""

    def __init__(self, histories: Sequence[RunHistory], screen: Screen) -> None:
        parents = {each.run.template.parent for each in histories}
        is_one = len(parents) == 1 and "" not in parents
        texts = {
            each.run.name: f"[{each.run.template.element}]" if is_one else each.run.name
            for each in histories
        }
        width = max(map(len, texts.values()), default=0)
        self._texts = {
            name: screen.toned(f"{text.ljust(width)} |", tone)
            for (name, text), tone in zip(texts.items(), cycle(_TONES), strict=False)
        }

    def join(self, history: RunHistory, channel: Channel, lines: Sequence[bytes]) -> bytes:
        """Write lines; those of a run on several nodes have their rank too."""
        mark = self._texts[history.run.name]
        if history.run.template.nodes > 1:
            mark += f" [rank {channel.rank}]"
        return b"".join(mark.encode() + b" " + line + b"\n" for line in lines)


def print_all(
    histories: Sequence[RunHistory],
    store: LogStore,
    prefixes: Prefixes,
    *,
    rank: int | None,
    tail: int | None,
) -> Iterator[bytes]:
    """Yield what the latest attempt of each run has printed; `tail` is for each rank of each run."""
    for history in histories:
        if history.attempts:
            for channel in channels(history.attempts[-1], rank):
                lines = channel.lines(store, ended=True)
                yield prefixes.join(history, channel, _last(lines, tail))


def follow_all(
    reread: Callable[[], Sequence[RunHistory]],
    store: LogStore,
    prefixes: Prefixes,
    *,
    rank: int | None,
    tail: int | None,
    sleep: Callable[[float], None],
) -> Iterator[bytes]:
    """Yield output as it comes, until all runs are over and all of it has come."""
    opened: dict[tuple[str, int], list[Channel]] = {}
    over: set[str] = set()
    rests: dict[str, _Rest] = {}
    is_first = True
    while True:
        histories = reread()
        for history in histories:
            if history.run.uid in over or not history.attempts:
                continue
            attempt = history.attempts[-1]
            key = (history.run.uid, attempt.number)
            rest = rests.setdefault(history.run.uid, _Rest(store))
            ended = history.run.state in FINAL and rest.is_here([attempt])
            for channel in opened.setdefault(key, channels(attempt, rank)):
                lines = channel.lines(store, ended=ended)
                shown = _last(lines, tail) if is_first else lines
                yield prefixes.join(history, channel, shown)
            if ended:
                over.add(history.run.uid)
        if all(
            history.run.uid in over or (history.run.state in FINAL and not history.attempts)
            for history in histories
        ):
            return
        is_first = False
        sleep(FOLLOW_SECONDS)


def _last(lines: Sequence[bytes], tail: int | None) -> Sequence[bytes]:
    return lines if tail is None else list(collections.deque(lines, maxlen=tail))


_LOOK_SECONDS = 2.0
"""How late it is said that no controller is running."""


@dataclass
class ControllerNotice:
    """Waits between looks at runs that are not over, and says once when their controller ends."""

    workspace: Workspace
    error_screen: Screen

    def __post_init__(self) -> None:
        self._is_driven = True
        self._look_at = 0.0

    def __call__(self, seconds: float) -> None:
        from fleetform.app.controllers import find_controller

        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_SECONDS
            was_driven = self._is_driven
            self._is_driven = find_controller(self.workspace) is not None
            if was_driven and not self._is_driven:
                self.error_screen.labelled("help", not_driven(self.workspace))
                self.error_screen.flush()
        time.sleep(seconds)
