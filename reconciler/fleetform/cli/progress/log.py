"""
Progress as a log: one line for each event, with its time and level.

    2026-11-22T20:01:02Z INFO applied 3f2a1b0c9d8e: +2 runs (train, eval), ~1 fleet (lab: nodes 2 → 4)
    {"time": "2026-11-22T20:01:02Z", "level": "INFO", "event": "plan.applied", "message": …}

For a process that runs for weeks, whose log is read by people and by programs. It keeps nothing of
runs that have ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Unpack

from fleetform.cli.progress.board import Board
from fleetform.cli.progress.plain import OutputLines, is_news, item_words
from fleetform.cli.screen import Screen
from fleetform.cli.words import step_done
from fleetform.model.history import LogLevel, NoticeFacts
from fleetform.model.plan import Plan, Step
from fleetform.model.ports import Clock
from fleetform.model.run import FINAL, Run, RunState
from fleetform.views.lines import printable_lines
from fleetform.views.moments import moment
from fleetform.views.plan.summary import change_summary

__all__ = ["LogFormat", "LogProgress"]

LogFormat = Literal["text", "json"]

_TONES = {LogLevel.INFO: "info", LogLevel.WARNING: "warning", LogLevel.ERROR: "error"}
_LEVELS = {
    RunState.FAILED: LogLevel.ERROR,
    RunState.UNSCHEDULABLE: LogLevel.ERROR,
    RunState.ABORTED: LogLevel.ERROR,
    RunState.UNKNOWN: LogLevel.WARNING,
}
_DIGITS = 12


class LogProgress:
    """Writes each event to `screen` as it happens; with `show_output` the lines of jobs too."""

    def __init__(
        self,
        screen: Screen,
        clock: Clock,
        *,
        form: LogFormat = "text",
        show_output: bool = False,
    ) -> None:
        self._screen = screen
        self._clock = clock
        self._form = form
        self._shows_output = show_output
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
        item = Board(self._clock.now_ms).note_run(run, message)
        if not is_news(item, None):
            return
        event = "run.started" if run.state is RunState.RUNNING else "run.waiting"
        if run.state in FINAL or run.state is RunState.UNKNOWN:
            event = "run.ended" if run.state in FINAL else "run.unknown"
        about = {"run": run.name, "uid": run.uid, "state": run.state.value, "cause": run.cause}
        level = _LEVELS.get(run.state, LogLevel.INFO)
        self._write(event, level, f"{run.name}: {item_words(item)}", about)

    def output(self, run_name: str, rank: int, data: bytes) -> None:
        if not self._shows_output:
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
        time = moment(self._clock.now_ms())
        if self._form == "json":
            line = {"time": time, "level": level.value, "event": event, "message": text}
            self._screen.json_line(line | dict(details))
        else:
            # One event a line: who filters a log by its lines must not lose a half of one.
            one_line = printable_lines(text).replace("\n", " | ")
            self._screen.line(f"{time} {self._screen.toned(level.value, _TONES[level])} {one_line}")
        self._screen.flush()
