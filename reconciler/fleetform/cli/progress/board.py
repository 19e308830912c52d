"""
What is known of the work in progress: the state that every way of showing it reads.

It gets each change once and answers in constant time, because an array reports its
thousand elements within seconds.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.model.run import FINAL, Run, RunState
from fleetform.model.verbs import VERBS, Effect, Verb, VerbFacts
from fleetform.views.lines import printable_lines
from fleetform.views.run_list import URGENCY, WENT_WRONG

if TYPE_CHECKING:
    from fleetform.model.plan import Step

# The order of attention: what is bad, then what moves, then what waits, then what is over.
_ATTENTION = (
    RunState.FAILED, RunState.UNSCHEDULABLE, RunState.ABORTED, RunState.UNKNOWN, RunState.FINISHING, RunState.RUNNING,
    RunState.PREPARING, RunState.PROVISIONING, RunState.SUBMITTED, RunState.PENDING,
    RunState.STOPPED, RunState.DONE,
)  # fmt: skip
_RANK = {state: rank for rank, state in enumerate(_ATTENTION)}

# A job may print megabytes without a newline; only what fits a terminal's line is kept.
_LAST_LINE_BYTES_MAX = 400


FOLDED_FROM = 11
"""Elements of one array or sweep that are counted instead of listed: ten lines are still read."""

FAILURES_NAMED_MAX = 10
"""Failed elements of one array or sweep that are named; the rest is counted."""

BAD = frozenset(WENT_WRONG)


@dataclass(slots=True)
class Item:
    """
    One run on the board, or the elements of an array or sweep in one.

    `last_line` is the latest whole or partial line it printed.
    """

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


class Elements:
    """The runs of one array or sweep; `counts` agrees with the states of `items`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.items: dict[str, Item] = {}
        self.counts: Counter[RunState] = Counter()

    @property
    def is_folded(self) -> bool:
        return len(self.items) >= FOLDED_FROM

    @property
    def is_over(self) -> bool:
        return sum(self.counts[state] for state in FINAL) == len(self.items)

    def summary(self) -> str:
        """Count the elements by state: `1 failed, 256 running, 743 done`."""
        return _counts_text(self.counts)

    def folded(self) -> list[Item]:
        """Make one item of all, and behind it the first that failed."""
        items = list(self.items.values())
        failed = [one for one in items if one.state in BAD]
        starts = [one.started_at_ms for one in items if one.started_at_ms is not None]
        ends = [one.finished_at_ms for one in items if one.finished_at_ms is not None]
        state = next(state for state in URGENCY if self.counts[state])
        whole = Item(
            self.name,
            state,
            message=self.summary(),
            started_at_ms=min(starts, default=None),
            finished_at_ms=max(ends, default=None) if self.is_over else None,
        )
        return [whole, *failed[:FAILURES_NAMED_MAX]]


class Board:
    """
    Steps and runs of one apply.

    `counts` and `items` agree after each call: `note_run` alone changes both. `now_ms` is asked
    when a run has ended and does not say when: a process that follows the work may hear of the end
    before its time.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._now_ms = now_ms
        self.items: dict[str, Item] = {}
        self.elements: dict[str, Elements] = {}
        """By name of an array or sweep."""
        self.counts: Counter[RunState] = Counter()
        self.steps_active: dict[str, Step] = {}

    def start_step(self, step: Step) -> None:
        self.steps_active[step.key] = step

    def finish_step(self, step: Step) -> None:
        self.steps_active.pop(step.key, None)

    def note_run(self, run: Run, message: str) -> Item:
        item = self.items.get(run.name)
        if item is None:
            item = self.items[run.name] = Item(run.name, run.state)
        else:
            self.counts[item.state] -= 1
        self.counts[run.state] += 1
        if parent := run.template.parent:
            elements = self.elements.get(parent)
            if elements is None:
                elements = self.elements[parent] = Elements(parent)
            if run.name in elements.items:
                elements.counts[item.state] -= 1
            elements.items[run.name] = item
            elements.counts[run.state] += 1
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
    def listed(self) -> int:
        """How many runs are in no large array or sweep."""
        folded = sum(len(one.items) for one in self.elements.values() if one.is_folded)
        return len(self.items) - folded

    @property
    def over(self) -> int:
        """How many runs have ended, well or badly."""
        return sum(self.counts[state] for state in FINAL)

    def summary(self) -> str:
        """Count the runs by state, in order of attention: `1 failed, 256 running, 743 done`."""
        return _counts_text(self.counts)

    def rows(self) -> list[Item]:
        """Make one item of each large array or sweep, followed by its first failures."""
        folded = {one.name: one for one in tuple(self.elements.values()) if one.is_folded}
        inside = {name for one in folded.values() for name in tuple(one.items)}
        items = [item for name, item in tuple(self.items.items()) if name not in inside]
        for one in folded.values():
            items.extend(one.folded())
        return items


def most_urgent(items: list[Item], limit: int) -> list[Item]:
    """Choose the items to show where not all fit; equal ones keep the order they came in."""
    if len(items) <= limit:
        return items
    return sorted(items, key=lambda item: _RANK[item.state])[:limit]


def _counts_text(counts: Mapping[RunState, int]) -> str:
    return ", ".join(f"{counts[state]} {state}" for state in _ATTENTION if counts[state] > 0)


def last_line(data: bytes) -> str:
    """
    Take the last line that is not blank, as printable text.

    A carriage return starts the line again, as progress bars expect. Control characters are
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


# What a step does and has done, in a few words.

_DONE = {
    Effect.CREATE: "created",
    Effect.ADOPT: "adopted",
    Effect.SET: "set",
    Effect.UPDATE: "updated",
    Effect.WITHDRAW: "withdrawn",
    Effect.RESTORE: "restored",
    Effect.STOP: "asked to stop",
    Effect.DELETE: "removed",
    Effect.RELEASE: "released",
    Effect.MOVE: "renamed",
}
_DOING = {
    Effect.CREATE: "creating",
    Effect.ADOPT: "adopting",
    Effect.SET: "setting",
    Effect.UPDATE: "updating",
    Effect.WITHDRAW: "withdrawing",
    Effect.RESTORE: "restoring",
    Effect.STOP: "stopping",
    Effect.DELETE: "removing",
    Effect.RELEASE: "releasing",
    Effect.MOVE: "renaming",
}


def _facts(step: Step) -> VerbFacts | None:
    return VERBS[Verb(step.verb)] if step.verb in VERBS else None


def step_done(step: Step) -> str:
    facts = _facts(step)
    done = step.verb if facts is None else facts.done or _DONE[facts.effect]
    # A volume whose data was lost starts empty.
    starts_empty = step.resource.kind == "volume" and step.arguments.get("lost")
    return f"{step.resource}: {'recreated' if starts_empty else done}"


def step_doing(step: Step) -> str:
    facts = _facts(step)
    doing = step.verb if facts is None else facts.doing or _DOING[facts.effect]
    return f"{doing} {step.resource}"
