"""
The runs that the arguments of `ps` select, as rows, once or again and again.

Rows are computed from what was read; the ledger is read again only after a commit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.controllers import find_controller
from fleetform.cli.screen import error_screen
from fleetform.cli.selection import Reread, select_runs
from fleetform.cli.tree import not_driven
from fleetform.model.run_state import FINAL
from fleetform.views.moments import age, moment
from fleetform.views.run_list import change_text, counts_text, state_changes, states_text
from fleetform.views.runs import runs_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetform.app.workspace import Workspace
    from fleetform.cli.screen import Screen
    from fleetform.model.decision import Waiting
    from fleetform.model.ports import Reader, RunHistory
    from fleetform.model.run import RunUid
    from fleetform.model.scheduler_state import SchedulerState
    from fleetform.views.run_list import RunList
    from fleetform.views.runs import RunRow


@dataclass(frozen=True, slots=True)
class RunQuery:
    """What was typed; without `names` and `states` every run is meant."""

    names: tuple[str, ...]
    states: frozenset[str]
    archived: bool
    all_elements: bool


@dataclass
class RunListing:
    """Reads the runs of one query."""

    reader: Reader
    query: RunQuery

    def __post_init__(self) -> None:
        self._histories = Reread(self.reader, self._select)
        self._work = Reread(self.reader, self._read_work)

    @property
    def book(self) -> SchedulerState:
        """Hosts, overrides and all else that is not over."""
        return self._work()[0]

    def rows(self, now_ms: int) -> tuple[RunRow, ...]:
        """
        Make a row of each run and element, in the order of names.

        Raises:
            Refused: A name means no run.
        """
        from fleetform.views.runs import run_rows

        histories = self._histories()
        states = self.query.states
        book, waiting = self._work()
        return run_rows(
            [each for each in histories if not states or each.run.state in states],
            instances=book.instances,
            waiting=waiting,
            now_ms=now_ms,
        )

    def states(self) -> dict[str, str]:
        """
        Return the state of each run and element by name, of all states.

        Raises:
            Refused: A name means no run.
        """
        found: dict[str, str] = {}
        for each in self._histories():
            # Archived runs come last: they may share the name of one that is not.
            found.setdefault(each.run.name, each.run.state.value)
        return found

    def fold(self, rows: Sequence[RunRow]) -> RunList:
        """Fold arrays and sweeps, except where the query asks for their elements."""
        from fleetform.views.run_list import list_runs

        names = self.query.names
        is_unfolded = self.query.all_elements or bool(self.query.states)
        return list_runs(
            rows,
            unfolded={row.parent for row in rows if is_unfolded or _is_named(row.parent, names)},
        )

    def _select(self) -> list[RunHistory]:
        from fleetform.views.runs import in_order

        names = self.query.names
        found = select_runs(self.reader, names) if names else in_order(self.reader.read_runs())
        return [each for each in found if self.query.archived or not each.archived]

    def _read_work(self) -> tuple[SchedulerState, Mapping[RunUid, tuple[Waiting, ...]]]:
        from fleetform.api.waiting import waiting_reasons

        book = self.reader.read_book()
        return book, waiting_reasons(book, now_ms=SystemClock().now_ms())


def _is_named(parent: str, typed: Sequence[str]) -> bool:
    """Tell whether an address names this array or elements of some, and is not a pattern of names."""
    return any("[" in text or text.removeprefix("run/") == parent for text in typed)


# `ps --watch`: the list of runs redrawn in place, or a line for each change of state in a pipe.
#
# Both look at the ledger's serial and read rows only after a commit. The pause between two looks
# grows with their cost, so a watch of many runs takes little of a processor that runs also need.

_REDRAW_SECONDS = 1.0
_LOOK_SECONDS = 0.25
_PAUSE_BY_COST = 24
"""A pause is so many times the processor time of the look before: looks take 4 % of a CPU."""
_PAUSE_SECONDS_MAX = 10.0


def redraw(listing: RunListing, workspace: Workspace, out: Screen) -> None:
    """
    Redraw the list on a terminal until `q`.

    Raises:
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; the terminal is restored.
        Refused: A name means no run.
    """
    from fleetform.cli.full_screen import FullScreen

    # Before the screen is taken: a name without a run is an error as without --watch.
    listing.states()
    with FullScreen(out) as terminal:
        while True:
            began = time.process_time()
            terminal.draw(_frame(listing, workspace, out, terminal.height))
            if terminal.wait_for("qQ", _pause(began, _REDRAW_SECONDS)):
                return


def print_changes(listing: RunListing, workspace: Workspace, out: Screen, *, as_json: bool) -> None:
    """
    Print a line for each change of a run's state, until Ctrl-C.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        Refused: A name means no run.
    """
    from fleetform.cli.logs import ControllerNotice

    wait = ControllerNotice(workspace, error_screen())
    before = listing.states()
    notice = error_screen()
    notice.line(f"watching {len(before)} runs: {states_text(before.values())}", "dim")
    notice.flush()
    began = time.process_time()
    while True:
        pause = _pause(began, _LOOK_SECONDS)
        if all(state in FINAL for state in before.values()):
            time.sleep(pause)
        else:
            wait(pause)
        began = time.process_time()
        after = listing.states()
        now_ms = SystemClock().now_ms()
        for change in state_changes(before, after, states=listing.query.states, now_ms=now_ms):
            if as_json:
                out.json_line(change)
            else:
                out.line(change_text(change))
        out.flush()
        before = after


def _pause(began: float, least: float) -> float:
    cost = time.process_time() - began
    return min(max(least, cost * _PAUSE_BY_COST), _PAUSE_SECONDS_MAX)


def _frame(listing: RunListing, workspace: Workspace, out: Screen, height: int) -> list[str]:
    """Write what fits: when and how many, what needs attention, rows, and how many rows are left."""
    from fleetform.model.override import holding
    from fleetform.views.overrides import in_force_notice

    now_ms = SystemClock().now_ms()
    rows = listing.rows(now_ms)
    book = listing.book
    lines = [(_title(rows, book, now_ms), "bold")]
    if notice := in_force_notice(holding(book.overrides, now_ms)):
        lines.append((notice, "note"))
    if any(row.state not in FINAL for row in rows) and find_controller(workspace) is None:
        lines.append((not_driven(workspace), "help"))
    frame = [out.toned(text[: out.width], tone) for text, tone in lines]
    listed = listing.fold(rows).rows
    # One line is for the titles of the columns.
    room = height - len(frame) - 1
    if len(listed) > room:
        room = max(0, room - 1)
    if listed:
        frame += out.table_lines(runs_table(listed[:room], now_ms=now_ms), is_cut=True)
    if len(listed) > room:
        frame.append(out.toned(f"and {len(listed) - room} more lines"[: out.width], "dim"))
    return frame


def _title(rows: tuple[RunRow, ...], book: SchedulerState, now_ms: int) -> str:
    """Write the time, the counts, and the age of what the ledger knows of hosts."""
    counts = f"{len(rows)} runs: {counts_text(rows)}" if rows else "no runs"
    title = f"{moment(now_ms)}  {counts}"
    heard = [each.seen_at_ms for each in book.instances if each.seen_at_ms is not None]
    if heard:
        title += f"; hosts last heard {age(min(heard), now_ms)} ago"
    return f"{title}  (q quits)"
