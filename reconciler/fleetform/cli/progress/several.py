"""Several watchers of one apply: the screen and a file beside it."""

from __future__ import annotations

from typing import Unpack

from fleetform.model.history import NoticeFacts
from fleetform.model.plan import Plan, Step
from fleetform.model.ports import Progress
from fleetform.model.run import Run


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
