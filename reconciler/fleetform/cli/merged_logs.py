"""
Output of several runs as one stream: each line begins with the element, or the run, that printed it.

Runs that are over come one after another, in the order of their names. What is followed comes as
it is printed.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from fleetform.cli.tail import Channel, channels
from fleetform.model.run import FINAL

if TYPE_CHECKING:
    from fleetform.cli.screen import Screen
    from fleetform.model.ports import LogStore, RunHistory

__all__ = ["FOLLOW_SECONDS", "Prefixes", "follow_all", "print_all"]

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
    is_first = True
    while True:
        histories = reread()
        for history in histories:
            if history.run.uid in over or not history.attempts:
                continue
            attempt = history.attempts[-1]
            key = (history.run.uid, attempt.number)
            ended = history.run.state in FINAL
            for channel in opened.setdefault(key, channels(attempt, rank)):
                lines = channel.lines(store, ended=ended)
                shown = _last(lines, tail) if is_first else lines
                yield prefixes.join(history, channel, shown)
            if ended:
                over.add(history.run.uid)
        if all(history.run.state in FINAL for history in histories):
            return
        is_first = False
        sleep(FOLLOW_SECONDS)


def _last(lines: Sequence[bytes], tail: int | None) -> Sequence[bytes]:
    return lines if tail is None else list(collections.deque(lines, maxlen=tail))
