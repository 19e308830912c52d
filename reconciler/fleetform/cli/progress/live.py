"""
Progress on a terminal: what is being made, the runs that deserve attention, and counts.

rich redraws at its own pace from the board, so a thousand changes a second cost a thousand
updates of a dictionary and eight redraws.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from fleetform.cli.progress.board import Board, Item, most_urgent, step_doing
from fleetform.model.figures import first_of, span
from fleetform.model.run import Run, RunState
from fleetform.views.lines import printable_lines

if TYPE_CHECKING:
    from fleetform.model.history import NoticeFacts
    from fleetform.model.plan import Plan, Step

_STYLES = {
    RunState.DONE: "green", RunState.FAILED: "red", RunState.UNSCHEDULABLE: "red", RunState.ABORTED: "red",
    RunState.STOPPED: "yellow", RunState.UNKNOWN: "yellow", RunState.RUNNING: "cyan",
    RunState.FINISHING: "cyan",
}  # fmt: skip
# Lines around the table: steps, counts, and the prompt below.
_LINES_AROUND = 8
_REDRAWS_A_SECOND = 8
_FAILURES_MAX = 3
"""Failed steps on the screen; the summary has all."""


class LiveProgress:
    """
    A screen that stays in place while the work goes on and is gone afterwards.

    The summary that follows says the same for good, so nothing is shown twice.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._board = Board()
        self._failures: list[str] = []
        self._spinner = Spinner("dots")
        self._live = Live(
            console=console,
            get_renderable=self._draw,
            refresh_per_second=_REDRAWS_A_SECOND,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def step_started(self, step: Step) -> None:
        self._board.start_step(step)

    def step_finished(self, step: Step, error: str) -> None:
        self._board.finish_step(step)
        if error:
            self._failures.append(f"{step.resource}: {printable_lines(error)}")

    def run_changed(self, run: Run, message: str) -> None:
        self._board.note_run(run, message)

    def output(self, run_name: str, rank: int, data: bytes) -> None:
        self._board.note_output(run_name, data)

    def plan_finished(self, plan: Plan, state: str) -> None:
        """Nothing: the command that applies says so itself."""

    def notice(self, text: str, **facts: Unpack[NoticeFacts]) -> None:
        self._console.print(Text(printable_lines(text), style="cyan"))

    def _draw(self) -> RenderableType:
        # rich calls this on its own thread: the copies below are of one moment each, and a
        # line that is one change old is drawn right an eighth of a second later.
        parts: list[RenderableType] = [
            Text(one, style="red") for one in self._failures[:_FAILURES_MAX]
        ]
        active = list(self._board.steps_active.values())
        if active:
            self._spinner.update(text=Text(f" {first_of([*map(step_doing, active)], 1)}"))
            parts.append(self._spinner)
        if self._board.items:
            rows = self._board.rows()
            shown = most_urgent(rows, max(3, self._console.height - _LINES_AROUND))
            parts.append(_table(shown))
            total = len(self._board.items)
            rest = f", {len(rows) - len(shown)} not shown" if len(rows) > len(shown) else ""
            parts.append(
                Text(
                    f"{self._board.over} of {total} over: {self._board.summary()}{rest}",
                    style="dim",
                )
            )
        return Group(*parts)


def _table(items: list[Item]) -> Table:
    now_ms = time.time_ns() // 1_000_000
    table = Table(box=None, pad_edge=False, show_header=True, header_style="dim")
    table.add_column("RUN", no_wrap=True)
    table.add_column("STATE", no_wrap=True)
    table.add_column("TIME", no_wrap=True, justify="right")
    table.add_column("LAST LINE", no_wrap=True, overflow="ellipsis", style="dim", ratio=1)
    for item in items:
        elapsed_ms = item.elapsed_ms(now_ms)
        attempt = f" ({item.attempt})" if item.attempt > 1 else ""
        table.add_row(
            Text(item.name),
            Text(f"{item.state}{attempt}", style=_STYLES.get(item.state, "")),
            "" if elapsed_ms is None else span(elapsed_ms),
            Text(item.last_line or item.message),
        )
    return table
