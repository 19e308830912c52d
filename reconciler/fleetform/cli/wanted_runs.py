"""
Runs as people name them to have their documents changed: the document, and where its runs stand.

What cannot be said in a document is refused with what can be done instead.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from fleetform.cli.failure import Refused
from fleetform.model.run_state import FINAL
from fleetform.spec.names import natural_order

if TYPE_CHECKING:
    from fleetform.model.live import Live, LiveResource
    from fleetform.wiring.editing import Editor
    from fleetform.wiring.locating import Source
    from fleetform.wiring.workspace import Workspace


class WantedRun(NamedTuple):
    """
    One document that declares runs.

    `rows` are those of its runs that were applied and are not archived; `runs_count` is
    how many it declares.
    """

    source: Source
    rows: tuple[LiveResource, ...]
    runs_count: int

    @property
    def is_over(self) -> bool:
        """Whether each run that it declares has come to its end."""
        return len(self.rows) == self.runs_count and not self.unfinished

    @property
    def unfinished(self) -> tuple[LiveResource, ...]:
        """Those that wait, run, or of which nobody knows."""
        return tuple(row for row in self.rows if row.run is None or row.run.state not in FINAL)

    @property
    def states(self) -> str:
        """In which states its runs are: `done`, `3 done, 1 failed`."""
        counts: dict[str, int] = {}
        for row in self.rows:
            if row.run is not None:
                counts[row.run.state.value] = counts.get(row.run.state.value, 0) + 1
        if len(counts) == 1:
            return next(iter(counts))
        return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))

    @property
    def stop_wanted(self) -> bool:
        return any(one.document.get("state") == "stopped" for one in self.source.declared)


def find_run(workspace: Workspace, editor: Editor, live: Live | None, name: str) -> WantedRun:
    """
    Find the document of a run.

    Raises:
        Refused: Its document is gone, and only the ledger knows it.
        EditProblem: Nobody knows it.
    """
    from fleetform.wiring.problems import EditProblem

    try:
        source = editor.find(name, kinds=("run",))
    except EditProblem:
        if live is not None and (row := _row_of(live, name.removeprefix("run/"))) is not None:
            raise _gone(row) from None
        raise
    rows = (
        ()
        if live is None
        else tuple(
            row
            for one in source.declared
            if (row := live.resources.get(one.key)) is not None and not row.archived
        )
    )
    return WantedRun(source, rows, len(source.declared))


def read_live(workspace: Workspace) -> Live | None:
    """Read the ledger; None where nothing was ever applied."""
    reader = workspace.reader()
    if reader is None:
        return None
    with contextlib.closing(reader):
        return reader.read_live()


def split_typed(name: str) -> tuple[str, str]:
    """Return `sweep[lr=0.1]` as its document and its element; no element: the whole."""
    from fleetform.spec.names import split_element

    return split_element(name)


def _row_of(live: Live, name: str) -> LiveResource | None:
    return next(
        (
            row
            for key, row in sorted(
                live.resources.items(), key=lambda item: natural_order(str(item[0]))
            )
            if key.kind == "run" and name in {key.name, row.parent}
        ),
        None,
    )


def _gone(row: LiveResource) -> Refused:
    name = row.parent or row.key.name
    if row.run is None or row.run.state in FINAL:
        return Refused(
            f"the document of `{name}` is gone from the tree, and its result is kept",
            advice="put the document back: `git log --diff-filter=D --summary` shows when it went",
        )
    return Refused(
        f"the document of `{name}` is gone from the tree, and it is still {row.run.state}",
        advice=f"`fleetform apply` ends it; `fleetform emergency stop {name} --reason …` does so at once",
    )
