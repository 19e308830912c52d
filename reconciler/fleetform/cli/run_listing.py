"""
The runs that the arguments of `ps` select, as rows, once or again and again.

Rows are computed from what was read; the ledger is read again only after a commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.cli.selection import Reread, select_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleetform.model.decision import Waiting
    from fleetform.model.ports import Reader, RunHistory, SchedulerState
    from fleetform.model.run import RunUid
    from fleetform.views.run_list import RunList
    from fleetform.views.runs import RunRow
__all__ = ["RunListing", "RunQuery"]


@dataclass(frozen=True, slots=True)
class RunQuery:
    """What was typed; without `names` and `states` every run is meant."""

    names: tuple[str, ...]
    states: frozenset[str]
    archived: bool
    all_elements: bool


class RunListing:
    """Reads the runs of one query."""

    def __init__(self, reader: Reader, query: RunQuery) -> None:
        self.query = query
        self._reader = reader
        self._histories = Reread(reader, self._select)
        self._work = Reread(reader, self._read_work)

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
        found = select_runs(self._reader, names) if names else in_order(self._reader.read_runs())
        return [each for each in found if self.query.archived or not each.archived]

    def _read_work(self) -> tuple[SchedulerState, Mapping[RunUid, tuple[Waiting, ...]]]:
        from fleetform.api.waiting import waiting_reasons

        book = self._reader.read_book()
        return book, waiting_reasons(book, now_ms=SystemClock().now_ms())


def _is_named(parent: str, typed: Sequence[str]) -> bool:
    """Tell whether an address names this array or elements of some, and is not a pattern of names."""
    return any("[" in text or text.removeprefix("run/") == parent for text in typed)
