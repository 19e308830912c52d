"""
What is known of the work in progress: the state that every way of showing it reads.

It is told each change once and answers in constant time, because an array reports its
thousand elements within seconds.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from fleetform.model.plan import Step
from fleetform.model.run import FINAL, Run, RunState
from fleetform.spec.dataclass import dataclass
from fleetform.views.lines import printable_lines

# The order of attention: what is bad, then what moves, then what waits, then what is over.
_ATTENTION = (
    RunState.FAILED, RunState.UNSCHEDULABLE, RunState.ABORTED, RunState.UNKNOWN, RunState.FINISHING, RunState.RUNNING,
    RunState.PREPARING, RunState.PROVISIONING, RunState.SUBMITTED, RunState.PENDING,
    RunState.STOPPED, RunState.DONE,
)  # fmt: skip
_RANK = {state: rank for rank, state in enumerate(_ATTENTION)}

# A job may print megabytes without a newline; only what fits a terminal's line is kept.
_LAST_LINE_BYTES_MAX = 400


@dataclass(slots=True)
class Item:
    """One run on the board. `last_line` is the latest whole or partial line it printed."""

    name: str
    state: RunState
    attempt: int = 0
    message: str = ""
    submitted_at_ms: int = 0
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    last_line: str = ""

    def elapsed_ms(self, now_ms: int) -> int | None:
        """How long it has run, or ran; None before it started."""
        if self.started_at_ms is None:
            return None
        return max(0, (self.finished_at_ms or now_ms) - self.started_at_ms)


class Board:
    """
    Steps and runs of one apply.

    `counts` and `items` agree after each call: `note_run` alone changes both. `now_ms` is asked
    when a run has ended and does not say when: who follows the work may be told of the end
    before its time.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._now_ms = now_ms
        self.items: dict[str, Item] = {}
        self.counts: Counter[RunState] = Counter()
        self.steps_active: dict[str, Step] = {}
        self.steps_done = 0
        self.steps_failed = 0

    def start_step(self, step: Step) -> None:
        self.steps_active[step.key] = step

    def finish_step(self, step: Step, error: str) -> None:
        self.steps_active.pop(step.key, None)
        if error:
            self.steps_failed += 1
        else:
            self.steps_done += 1

    def note_run(self, run: Run, message: str) -> Item:
        item = self.items.get(run.name)
        if item is None:
            item = self.items[run.name] = Item(run.name, run.state)
        else:
            self.counts[item.state] -= 1
        self.counts[run.state] += 1
        item.state = run.state
        item.attempt = run.attempt
        item.message = printable_lines(message or run.message)
        item.submitted_at_ms = run.submitted_at_ms
        if run.started_at_ms is not None:
            item.started_at_ms = run.started_at_ms
        item.finished_at_ms = run.finished_at_ms
        if run.state in FINAL and item.finished_at_ms is None:
            item.finished_at_ms = self._now_ms()
        return item

    def note_output(self, run_name: str, data: bytes) -> None:
        item = self.items.get(run_name)
        if item is not None:
            item.last_line = last_line(data) or item.last_line

    @property
    def over(self) -> int:
        """How many runs have ended, well or badly."""
        return sum(self.counts[state] for state in FINAL)

    def summary(self) -> str:
        """Count the runs by state, in order of attention: `1 failed, 256 running, 743 done`."""
        return ", ".join(
            f"{self.counts[state]} {state}" for state in _ATTENTION if self.counts[state] > 0
        )

    def most_urgent(self, limit: int) -> list[Item]:
        """Choose the items to show where not all fit; equal ones keep the order they came in."""
        if len(self.items) <= limit:
            return list(self.items.values())
        return sorted(self.items.values(), key=lambda item: _RANK[item.state])[:limit]


def last_line(data: bytes) -> str:
    """
    Take the last line that is not blank, as printable text.

    A carriage return starts the line anew, as progress bars expect. Control characters are
    removed: what a job prints must not move the cursor of the one who watches.
    """
    for line in reversed(data[-4 * _LAST_LINE_BYTES_MAX :].replace(b"\r", b"\n").split(b"\n")):
        text = printable(line[-_LAST_LINE_BYTES_MAX:].decode("utf-8", "replace")).strip()
        if text:
            return text
    return ""


def printable(text: str) -> str:
    """Drop characters that would act on a terminal instead of showing."""
    return "".join(letter for letter in _without_sequences(text) if letter.isprintable())


def _without_sequences(text: str) -> Iterable[str]:
    # ECMA-48 control sequences: ESC [ parameters, ended by a letter or one of @ to ~.
    position = 0
    while position < len(text):
        if text[position] == "\x1b":
            position += 1
            if text[position : position + 1] == "[":
                position += 1
                while position < len(text) and not "@" <= text[position] <= "~":
                    position += 1
            position += 1
            continue
        yield text[position]
        position += 1
