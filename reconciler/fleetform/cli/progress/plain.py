"""
Progress as lines, for pipes and build logs: each line says one thing that has happened.

Few runs get a line for each change of state. Many would drown what matters: of a large array or
sweep, and of many runs, only bad news gets its own line, and the rest is counted at intervals.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Unpack

from fleetform.cli.progress.board import BAD, FAILURES_NAMED_MAX, Board, Elements, Item, printable
from fleetform.cli.screen import Screen
from fleetform.cli.words import step_done
from fleetform.model.figures import span
from fleetform.model.history import NoticeFacts
from fleetform.model.plan import Plan, Step
from fleetform.model.run import FINAL, Run, RunState
from fleetform.views.lines import printable_lines

# Two screens of lines: what a person still reads in a build log.
_RUNS_SHOWN_SINGLY = 40
_COUNT_INTERVAL_SECONDS = 2.0
_TONES = {RunState.DONE: "good", RunState.FAILED: "bad", RunState.UNSCHEDULABLE: "bad", RunState.ABORTED: "bad",
          RunState.STOPPED: "warn", RunState.UNKNOWN: "warn"}  # fmt: skip
# On the way to running and out of it there is nothing that a person could do or miss.
_PASSING = frozenset({RunState.SUBMITTED, RunState.PROVISIONING, RunState.PREPARING,
                      RunState.FINISHING})  # fmt: skip


class PlainProgress:
    """
    Writes to `screen` as things happen.

    With `show_output`, what the jobs print follows too, each line with its run's name.
    """

    def __init__(
        self,
        screen: Screen,
        *,
        show_output: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._screen = screen
        self._show_output = show_output
        self._clock = clock
        self._board = Board()
        self._counted_at = clock()
        self._counted: dict[str, float] = {}
        """When the elements of an array or sweep were counted last, by its name."""
        self._named: dict[str, int] = {}
        """How many failed elements of it there were."""
        self._output = OutputLines()

    def step_started(self, step: Step) -> None:
        self._board.start_step(step)

    def step_finished(self, step: Step, error: str) -> None:
        self._board.finish_step(step)
        if error:
            self._say(f"{step.resource}: {printable_lines(error)}", "bad")
        # Submitting touches nothing outside the ledger; the runs speak for themselves.
        elif not step.verb.startswith("run."):
            self._say(step_done(step))

    def run_changed(self, run: Run, message: str) -> None:
        known = self._board.items.get(run.name)
        before = known.state if known else None
        item = self._board.note_run(run, message)
        elements = self._board.elements.get(run.template.parent)
        if elements is not None and elements.is_folded:
            if item.state is not before:
                self._say_elements(elements, item)
        elif self._board.listed <= _RUNS_SHOWN_SINGLY or run.state in BAD:
            if is_news(item, before):
                self._say(f"{run.name}: {item_words(item)}", _TONES.get(run.state, ""))
        elif self._clock() - self._counted_at >= _COUNT_INTERVAL_SECONDS:
            self._counted_at = self._clock()
            self._say(self._board.summary())

    def _say_elements(self, elements: Elements, item: Item) -> None:
        """Name the first elements that failed, and count all at intervals and at the end."""
        name = elements.name
        if item.state in BAD:
            named = self._named[name] = self._named.get(name, 0) + 1
            if named <= FAILURES_NAMED_MAX:
                self._say(f"{item.name}: {item_words(item)}", _TONES.get(item.state, ""))
            elif named == FAILURES_NAMED_MAX + 1:
                listed = f"fleetform ps {name} --state {item.state}"
                self._say(f"{name}: more elements failed; `{listed}` lists them", "bad")
        is_due = (
            self._clock() - self._counted.get(name, self._counted_at) >= _COUNT_INTERVAL_SECONDS
        )
        if elements.is_over or is_due:
            self._counted[name] = self._clock()
            self._say(f"{name}: {elements.summary()}")

    def output(self, run_name: str, rank: int, data: bytes) -> None:
        if not self._show_output:
            return
        for text in self._output.lines(run_name, rank, data):
            self._screen.line(f"{self._screen.toned(f'{run_name} |', 'dim')} {text}")
        self._screen.flush()

    def plan_finished(self, plan: Plan, state: str) -> None:
        """Nothing: the command that applies says so itself."""

    def notice(self, text: str, **facts: Unpack[NoticeFacts]) -> None:
        self._say(printable_lines(text), "note")

    def _say(self, text: str, tone: str = "") -> None:
        self._screen.line(text, tone)
        self._screen.flush()


class OutputLines:
    """Puts the pieces of what jobs print together to whole lines that no terminal obeys."""

    def __init__(self) -> None:
        self._partial: dict[tuple[str, int], bytes] = {}

    def lines(self, run_name: str, rank: int, data: bytes) -> list[str]:
        """Return the lines that end in `data`, a piece as it arrived."""
        *lines, rest = (self._partial.get((run_name, rank), b"") + data).split(b"\n")
        self._partial[run_name, rank] = rest
        return [printable(line.decode("utf-8", "replace").expandtabs()) for line in lines]


def is_news(item: Item, before: RunState | None) -> bool:
    """Tell whether a person would want to read of it; what waits from the start is in the plan."""
    if item.state is before or item.state in _PASSING:
        return False
    return item.state is not RunState.PENDING or bool(item.message)


def item_words(item: Item) -> str:
    """Say in a few words where a run stands: `running (attempt 2)`, `failed after 3s: …`."""
    words = str(item.state)
    if item.state in FINAL and item.started_at_ms is not None and item.finished_at_ms is not None:
        words += f" after {span(max(0, item.finished_at_ms - item.started_at_ms))}"
    elif item.attempt > 1:
        words += f" (attempt {item.attempt})"
    # What is said of a run that goes well is how its last attempt went wrong.
    told = "" if item.state in {RunState.RUNNING, RunState.DONE} else item.message
    return f"{words}: {told}" if told else words
