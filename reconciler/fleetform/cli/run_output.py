"""
The output of one job as it comes, for a command that follows one run: `submit` and `apply`.

It is read from the log store, because another process may drive the run. Whole lines are written at
once, so no line of the progress is torn.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from fleetform.cli.failure import explain
from fleetform.cli.progress.plain import PlainProgress
from fleetform.cli.screen import Screen, error_screen, screen
from fleetform.cli.selection import one_run
from fleetform.model.run_state import FINAL, RunState
from fleetform.model.verbs import Verb
from fleetform.spec.desired import ResourceKey
from fleetform.views.lines import harmless, printable_lines

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Plan
    from fleetform.model.ports import Reader, RunHistory
    from fleetform.model.run import Run


_POLL_SECONDS = 0.03
"""How late a line of the run is shown: shorter than for `logs`, because a person waits for the first one."""

_WAIT_SECONDS = 2.0
"""How long a run may wait before the reason is printed: most start sooner."""

_TAIL_LINES = 10
"""How many earlier lines are printed of a run that was running before."""

_REST_SECONDS = 5
"""How long the output is read after a command whose run is not over."""


def single_output(
    workspace: Workspace, plan: Plan, entered: Collection[str] = ()
) -> RunOutput | None:
    """
    Return the output of the run that an apply of this plan follows; None unless it is one job.

    A run that is only changed or stopped is not printed: its output is not what was asked for.
    """
    from fleetform.plan.wait_targets import waited_for

    names = waited_for(plan, entered)
    if len(names) != 1:
        return None
    (name,) = names
    change = next((one for one in plan.changes if one.key == ResourceKey("run", name)), None)
    steps = change.steps if change is not None else ()
    begun = [step for step in steps if step.verb == Verb.RUN_SUBMIT]
    if steps and not begun:
        return None
    found = _read(workspace, name)
    if change is not None and begun:
        nodes = begun[0].arguments["document"].get("nodes", 1)
        # Not every run that exists by now: another apply of the same plan may have submitted this one.
        earlier = [change.uid, *(one.run.uid for one in found if one.archived)]
    else:
        nodes = max((one.run.template.nodes for one in found if not one.archived), default=0)
        earlier = []
    if nodes != 1:
        return None
    tail = None if begun else _TAIL_LINES
    out = screen()
    return RunOutput(
        workspace,
        name,
        EndLast(out),
        earlier=earlier,
        tail=tail,
        # The log of a CI job obeys commands that a program prints; a terminal shows its colours.
        is_escaped=not out.interactive,
    )


def _read(workspace: Workspace, name: str) -> list[RunHistory]:
    found = workspace.read(lambda reader: reader.read_runs([name]), ())
    return [one for one in found if one.run.name == name]


class EndLast(PlainProgress):
    """
    Says of one run that it is running before its first line, and how it ended after its last.

    Lines come from another thread, and may be read before the run's state is, or after its end.
    """

    def __init__(self, screen: Screen) -> None:
        super().__init__(screen, errors=error_screen())
        self._end: tuple[Run, str] | None = None
        self._has_said_running = False
        self._lock = threading.Lock()

    def run_changed(self, run: Run, message: str) -> None:
        if run.state in FINAL:
            self._end = run, message
        elif run.state is RunState.RUNNING:
            # The output names a further attempt before its first line.
            if run.attempt <= 1:
                self.say_running(run.name)
        else:
            super().run_changed(run, message)

    def say_running(self, name: str) -> None:
        """Say it, unless it was said before."""
        with self._lock:
            if not self._has_said_running:
                self._has_said_running = True
                self._say(f"{name}: {RunState.RUNNING}")

    def say_end(self) -> None:
        if self._end is None:
            return
        run, message = self._end
        if run.state is RunState.DONE:
            # A short job may have ended before its state was read.
            self.say_running(run.name)
        super().run_changed(run, message)


class _StoppedError(Exception):
    """The output is no longer wanted, raised in the thread that reads it."""


@dataclass
class RunOutput:
    """
    Prints the output of a run that has one job.

    Args:
        workspace: Where the run and its output are read.
        name: Of the run.
        progress: Its line "running" comes before the first line.
        earlier: Runs of the same name that are not followed, by uid.
        tail: How many lines of what is there already; None for all.
        is_escaped: Print characters that a terminal or a CI runner obeys as escape sequences.
    """

    workspace: Workspace
    name: str
    progress: EndLast
    _: KW_ONLY
    earlier: Collection[str] = ()
    tail: int | None = None
    is_escaped: bool = False

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        self._is_found = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="output", daemon=True)
        self._problem: Exception | None = None
        self.is_complete = False
        """All output of the run is printed."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self.finish()

    def finish(self, *, is_over: bool = False) -> None:
        """
        Wait for the rest: of a run that is over all of it, however slowly the output is read.

        A run that is not found soon was removed meanwhile: there is nothing to wait for.

        Raises:
            BrokenPipeError: The reader of the output has closed it.
        """
        if self._thread.is_alive():
            self._thread.join(_REST_SECONDS)
        if is_over and self._is_found.is_set():
            self._thread.join()
        self._stopped.set()
        if isinstance(self._problem, BrokenPipeError):
            raise self._problem
        if self._problem is not None:
            failure = explain(self._problem)
            text = failure.message if failure else str(self._problem)
            error_screen().labelled("warning", f"the output of {self.name} is not shown: {text}")
            self._problem = None

    def _follow(self) -> None:
        try:
            # A reader of this thread's own: a connection is not passed around.
            while (reader := self.workspace.reader()) is None:
                self._sleep(0)
            with contextlib.closing(reader):
                while not self._has_begun(reader):
                    self._sleep(0)
                self._is_found.set()
                self._follow_run(reader)
            self.is_complete = True
        except _StoppedError:
            return
        except Exception as problem:  # noqa: BLE001 -- the thread that waits for this one says it
            self._problem = problem

    def _has_begun(self, reader: Reader) -> bool:
        return any(
            history.run.name == self.name and history.run.uid not in self.earlier
            for history in reader.read_runs([self.name])
        )

    def _follow_run(self, reader: Reader) -> None:
        from fleetform.cli.logs import follow

        out = sys.stdout.buffer
        self._say_what_it_waits_for(reader)
        for piece in follow(
            lambda: one_run(reader, self.name),
            self.workspace.logs(),
            rank=None,
            tail=self.tail,
            notice=self._say_attempt,
            sleep=self._sleep,
            every_attempt=self.tail is None,
        ):
            if not piece:
                continue
            self.progress.say_running(self.name)
            out.write(_escaped(piece) if self.is_escaped else piece)
            out.flush()

    def _say_attempt(self, text: str) -> None:
        self.progress.notice(f"{self.name}: {text}")

    def _say_what_it_waits_for(self, reader: Reader) -> None:
        """Say it once where it takes longer than a moment: a person who follows the run asks why."""
        from fleetform.api.waiting import waiting_reasons
        from fleetform.app.clock import SystemClock

        patience = time.monotonic() + _WAIT_SECONDS
        while not (found := one_run(reader, self.name)).attempts or (
            found.run.state in {RunState.PENDING, RunState.SUBMITTED}
        ):
            if time.monotonic() > patience:
                say = error_screen()
                reasons = waiting_reasons(reader.read_book(), now_ms=SystemClock().now_ms())
                for reason in reasons.get(found.run.uid, ()):
                    say.line(f"{self.name} waits: {reason.detail}", "warn")
                say.flush()
                return
            self._sleep(0)

    def _sleep(self, _seconds: float) -> None:
        if self._stopped.wait(_POLL_SECONDS):
            raise _StoppedError


def _escaped(lines: bytes) -> bytes:
    text = lines.decode(errors="replace")
    return harmless(printable_lines(text)).encode()
