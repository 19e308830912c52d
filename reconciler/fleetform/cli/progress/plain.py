"""
Progress as lines, for pipes and build logs: each line says one thing that has happened.

Few runs get a line for each change of state. Many would drown what matters: of a large array or
sweep, and of many runs, only bad news gets its own line, and the rest is counted at intervals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal, Unpack

from fleetform.cli.progress.board import (
    BAD,
    FAILURES_NAMED_MAX,
    Board,
    Elements,
    Item,
    printable,
    step_done,
)
from fleetform.model.figures import span
from fleetform.model.history import LogLevel, NoticeFacts
from fleetform.model.run import FINAL, Run, RunState
from fleetform.views.lines import printable_lines
from fleetform.views.moments import moment
from fleetform.views.plan.summary import change_summary

if TYPE_CHECKING:
    from fleetform.cli.screen import Screen
    from fleetform.model.plan import Plan, Step
    from fleetform.model.ports import Clock, Progress

# Two screens of lines: what a person still reads in a build log.
_RUNS_SHOWN_SINGLY = 40
_COUNT_INTERVAL_SECONDS = 2.0
_TONES = {RunState.DONE: "good", RunState.FAILED: "bad", RunState.UNSCHEDULABLE: "bad", RunState.ABORTED: "bad",
          RunState.STOPPED: "warn", RunState.UNKNOWN: "warn"}  # fmt: skip
# On the way to running and out of it there is nothing that a person could do or miss.
_PASSING = frozenset({RunState.SUBMITTED, RunState.PROVISIONING, RunState.PREPARING,
                      RunState.FINISHING})  # fmt: skip


@dataclass
class PlainProgress:
    """
    Writes to `screen` as things happen.

    With `show_output`, what the jobs print follows too, each line with its run's name. Failed steps go
    to `errors` if it is there.
    """

    screen: Screen
    _: KW_ONLY
    errors: Screen | None = None
    show_output: bool = False
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._board = Board()
        self._counted_at = self.clock()
        self._counted: dict[str, float] = {}
        """When the elements of an array or sweep were counted last, by its name."""
        self._named: dict[str, int] = {}
        """How many failed elements of it there were."""
        self._output = OutputLines()
        self.failures: set[str] = set()
        """The lines of what was said of failed steps."""

    def step_started(self, step: Step) -> None:
        self._board.start_step(step)

    def step_finished(self, step: Step, error: str) -> None:
        self._board.finish_step(step)
        if error:
            self._say_failure(f"{step.resource}: {error}")
        # Submitting touches nothing outside the ledger; the runs speak for themselves.
        elif not step.verb.startswith("run."):
            self._say(step_done(step))

    def _say_failure(self, text: str) -> None:
        self.failures.update(text.splitlines())
        if self.errors is None:
            self._say(printable_lines(text), "bad")
        else:
            self.errors.labelled("error", text)
            self.errors.flush()

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
        elif self.clock() - self._counted_at >= _COUNT_INTERVAL_SECONDS:
            self._counted_at = self.clock()
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
        is_due = self.clock() - self._counted.get(name, self._counted_at) >= _COUNT_INTERVAL_SECONDS
        if elements.is_over or is_due:
            self._counted[name] = self.clock()
            self._say(f"{name}: {elements.summary()}")

    def output(self, run_name: str, rank: int, data: bytes) -> None:
        if not self.show_output:
            return
        for text in self._output.lines(run_name, rank, data):
            self.screen.line(f"{self.screen.toned(f'{run_name} |', 'dim')} {text}")
        self.screen.flush()

    def plan_finished(self, plan: Plan, state: str) -> None:
        """Nothing: the command that applies says so itself."""

    def notice(self, text: str, **facts: Unpack[NoticeFacts]) -> None:
        self._say(printable_lines(text), "note")

    def _say(self, text: str, tone: str = "") -> None:
        self.screen.line(text, tone)
        self.screen.flush()


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


# Progress as a log: one line for each event, with its time and level.
#     2026-11-22T20:01:02Z INFO applied 3f2a1b0c9d8e: +2 runs (train, eval), ~1 fleet (lab: nodes 2 → 4)
#     {"time": "2026-11-22T20:01:02Z", "level": "INFO", "event": "plan.applied", "message": …}
# For a process that runs for weeks, whose log is read by people and by programs. It keeps nothing of
# runs that have ended.

LogFormat = Literal["text", "json"]

_LEVEL_TONES = {LogLevel.INFO: "info", LogLevel.WARNING: "warning", LogLevel.ERROR: "error"}
_LEVELS = {
    RunState.FAILED: LogLevel.ERROR,
    RunState.UNSCHEDULABLE: LogLevel.ERROR,
    RunState.ABORTED: LogLevel.ERROR,
    RunState.UNKNOWN: LogLevel.WARNING,
}
_DIGITS = 12


@dataclass
class LogProgress:
    """Writes each event to `screen` as it happens; with `show_output` the lines of jobs too."""

    screen: Screen
    clock: Clock
    _: KW_ONLY
    form: LogFormat = "text"
    show_output: bool = False

    def __post_init__(self) -> None:
        self._output = OutputLines()

    def step_started(self, step: Step) -> None:
        """Nothing: its end is an event, and a step that takes long is a notice of its host."""

    def step_finished(self, step: Step, error: str) -> None:
        about = {"resource": str(step.resource), "verb": step.verb}
        if error:
            text = f"{step.resource}: {error}"
            self._write("step.failed", LogLevel.ERROR, text, about | {"error": error})
        # Submitting changes nothing outside the ledger; the events of the run follow.
        elif not step.verb.startswith("run."):
            self._write("step.done", LogLevel.INFO, step_done(step), about)

    def run_changed(self, run: Run, message: str) -> None:
        item = Board(self.clock.now_ms).note_run(run, message)
        if not is_news(item, None):
            return
        event = "run.started" if run.state is RunState.RUNNING else "run.waiting"
        if run.state in FINAL or run.state is RunState.UNKNOWN:
            event = "run.ended" if run.state in FINAL else "run.unknown"
        about = {"run": run.name, "uid": run.uid, "state": run.state.value, "cause": run.cause}
        level = _LEVELS.get(run.state, LogLevel.INFO)
        self._write(event, level, f"{run.name}: {item_words(item)}", about)

    def output(self, run_name: str, rank: int, data: bytes) -> None:
        if not self.show_output:
            return
        about = {"run": run_name, "rank": str(rank)}
        for text in self._output.lines(run_name, rank, data):
            self._write("run.output", LogLevel.INFO, f"{run_name} | {text}", about)

    def plan_finished(self, plan: Plan, state: str) -> None:
        digits, plus, dirty = plan.commit.partition("+")
        what = f"{digits[:_DIGITS]}{plus}{dirty}" or f"plan {plan.digest[:_DIGITS]}"
        summary = change_summary(plan)
        about = {"commit": plan.commit, "plan": plan.digest, "summary": summary}
        if state == "done":
            self._write("plan.applied", LogLevel.INFO, f"applied {what}: {summary}", about)
        else:
            self._write("plan.failed", LogLevel.ERROR, f"failed to apply {what}: {summary}", about)

    def notice(self, text: str, **facts: Unpack[NoticeFacts]) -> None:
        event, level = facts.get("event", "notice"), facts.get("level", LogLevel.INFO)
        self._write(event, level, text, facts.get("details", {}))

    def _write(self, event: str, level: LogLevel, text: str, details: Mapping[str, str]) -> None:
        time = moment(self.clock.now_ms())
        if self.form == "json":
            line = {"time": time, "level": level.value, "event": event, "message": text}
            self.screen.json_line(line | dict(details))
        else:
            # One event a line: who filters a log by its lines must not lose a half of one.
            one_line = printable_lines(text).replace("\n", " | ")
            self.screen.line(
                f"{time} {self.screen.toned(level.value, _LEVEL_TONES[level])} {one_line}"
            )
        self.screen.flush()


# Several watchers of one apply: the screen and a file as well.


class SeveralProgress:
    """Passes everything on to each of `watchers`, in order."""

    def __init__(self, *watchers: Progress) -> None:
        self._watchers = watchers

    def step_started(self, step: Step) -> None:
        for watcher in self._watchers:
            watcher.step_started(step)

    def step_finished(self, step: Step, error: str) -> None:
        for watcher in self._watchers:
            watcher.step_finished(step, error)

    def run_changed(self, run: Run, message: str) -> None:
        for watcher in self._watchers:
            watcher.run_changed(run, message)

    def output(self, run_name: str, rank: int, data: bytes) -> None:
        for watcher in self._watchers:
            watcher.output(run_name, rank, data)

    def plan_finished(self, plan: Plan, state: str) -> None:
        for watcher in self._watchers:
            watcher.plan_finished(plan, state)

    def notice(self, text: str, **facts: Unpack[NoticeFacts]) -> None:
        for watcher in self._watchers:
            watcher.notice(text, **facts)
