"""
Runs as people name them to have their documents changed: the document, and where its runs stand.

An element of an array or a sweep has entries of its own in the fields `state` and `rerun`. What no
document can say is refused with what can be done instead.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fleetform.cli.failure import Refused
from fleetform.model.run_state import FINAL
from fleetform.spec.names import natural_order, parse_address, split_element

if TYPE_CHECKING:
    from fleetform.app.editing import Editor
    from fleetform.app.locating import Source
    from fleetform.app.workspace import Workspace
    from fleetform.model.live import Live, LiveResource

__all__ = ["WantedRun", "ask_for_stop", "elements_of", "find_runs", "read_live", "without"]


class WantedRun(NamedTuple):
    """
    A document that declares runs, or some of its elements.

    `element` is what a field by element calls them, `3-7` or `lr=0.1`; empty for the whole. `names` are
    the runs that are meant, and `rows` those of them that were applied and are not archived.
    """

    source: Source
    element: str
    names: frozenset[str]
    rows: tuple[LiveResource, ...]

    @property
    def name(self) -> str:
        """As people type it: `train`, `arr[3-7]`."""
        return f"{self.source.key.name}[{self.element}]" if self.element else self.source.key.name

    @property
    def is_over(self) -> bool:
        """Whether each run that is meant has come to its end."""
        return bool(self.rows) and len(self.rows) == len(self.names) and not self.unfinished

    @property
    def unfinished(self) -> tuple[LiveResource, ...]:
        """Those that wait, run, or whose end is unknown."""
        return tuple(row for row in self.rows if row.run is None or row.run.state not in FINAL)

    @property
    def ends_work(self) -> bool:
        """Whether its stop ends running work, and was not applied before."""
        from fleetform.plan.phase import is_at_work

        return any(
            is_at_work(row) and json.loads(row.document).get("state") != "stopped"
            for row in self.rows
        )

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


def find_runs(editor: Editor, live: Live | None, typed: Sequence[str]) -> list[WantedRun]:
    """
    Find the documents that addresses mean: `train`, `arr[3-7]`, `sweep[lr=0.1]`, `train*`.

    A pattern means documents of the configuration.

    Raises:
        Refused: An address means nothing, or its document is gone and only the ledger knows it.
        EditProblem: No document and no row has that name.
    """
    from fleetform.plan.renames import moved_live

    assert editor.loaded.desired is not None
    if live is not None:
        # A run that is renamed since the last apply has its row under the earlier name.
        live, _ = moved_live(editor.loaded.desired, live)
    found: list[WantedRun] = []
    for text in typed:
        if "*" in text:
            found += _matching(editor, live, text)
            continue
        whole, element = split_element(text)
        source = _find_source(editor, live, whole)
        names = elements_of(source, element)
        if not names and source.declared:
            raise Refused(f"`{source.key.name}` has no element `{element}`", advice=_known(source))
        found.append(_wanted(source, element, names, live))
    return found


def elements_of(source: Source, element: str) -> frozenset[str]:
    """Name the runs of a document that an element means; empty: all of them."""
    names = frozenset(one.key.name for one in source.declared)
    if not element:
        return names
    try:
        address = parse_address(f"{source.key.name}[{element}]")
    except ValueError as problem:
        raise Refused(f"`{element}` is not an element: {problem}") from None
    return frozenset(name for name in names if address.selects("run", name))


def ask_for_stop(editor: Editor, source: Source, element: str) -> None:
    """Write that a run, or an element of it, is to be stopped."""
    said = editor.said(source, "state")
    if not element:
        editor.set(source, ("state",), "stopped")
    elif said != "stopped":
        others = said if isinstance(said, dict) else {}
        # At the end: of several entries that name an element the last one counts.
        editor.set(source, ("state",), {**without(others, element), element: "stopped"})


def without(entries: Mapping[str, Any], element: str) -> dict[str, Any]:
    """Return entries by element without that of this one."""
    return {key: value for key, value in entries.items() if str(key) != element}


def read_live(workspace: Workspace) -> Live | None:
    """Read the ledger; None where nothing was ever applied."""
    reader = workspace.reader()
    if reader is None:
        return None
    with contextlib.closing(reader):
        return reader.read_live()


def _find_source(editor: Editor, live: Live | None, name: str) -> Source:
    from fleetform.app.problems import EditProblem

    try:
        return editor.find(name, kinds=("run",))
    except EditProblem:
        if renamed := _new_name(editor, name.removeprefix("run/")):
            raise Refused(
                f"`{name}` is renamed to `{renamed}` by `moved:` in environment.yaml",
                advice=f"use the new name: `{renamed}`",
            ) from None
        if live is not None and (row := _row_of(live, name.removeprefix("run/"))) is not None:
            raise _gone(row) from None
        raise


def _new_name(editor: Editor, name: str) -> str:
    """Return the name that a run has by now; empty for one that is not renamed."""
    assert editor.loaded.desired is not None
    moved = editor.loaded.desired.moved
    return next(
        (new.name for old, new in moved if (old.kind, old.name) == ("run", name)),
        "",
    )


def _wanted(source: Source, element: str, names: frozenset[str], live: Live | None) -> WantedRun:
    rows = () if live is None else tuple(
        row
        for one in source.declared
        if one.key.name in names
        and (row := live.resources.get(one.key)) is not None
        and not row.archived
    )  # fmt: skip
    return WantedRun(source, element, names, rows)


def _matching(editor: Editor, live: Live | None, pattern: str) -> Iterator[WantedRun]:
    from fleetform.model.selection import Selection

    selection = Selection([pattern])
    is_any = False
    for key in sorted(editor.declared_runs()):
        source = editor.find(str(key), kinds=("run",))
        declared = source.declared
        names = frozenset(
            one.key.name for one in declared if selection.selects(one.key, one.parent)
        )
        is_any = is_any or bool(names)
        elements = [""] if len(names) == len(declared) else _short(names)
        for element in elements:
            yield _wanted(source, element, elements_of(source, element), live)
    if not is_any:
        raise Refused(
            f"`{pattern}` matches no run of the configuration",
            advice="`fleetform ps` lists the runs",
        )


def _short(names: Iterable[str]) -> list[str]:
    """Write elements in as few addresses as possible."""
    from fleetform.views.element_names import shorten_elements

    elements = sorted((split_element(name)[1] for name in names), key=natural_order)
    if not elements:
        return []
    short = shorten_elements(elements)
    return [short.text[1:-1]] if short.is_address else elements


def _known(source: Source) -> str:
    from fleetform.views.element_names import shorten_elements

    elements = [split_element(one.key.name)[1] for one in source.declared]
    if not any(elements):
        return "it is one run, without elements"
    return f"its elements are {shorten_elements(elements).text}"


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
            f"the document of `{name}` was removed from the configuration, and its result is kept",
            advice="restore the document: `git log --diff-filter=D --summary` shows when it was removed",
        )
    return Refused(
        f"the document of `{name}` was removed from the configuration, and it is still {row.run.state}",
        advice=f"`fleetform apply` ends it; `fleetform emergency stop {name} --reason …` does so at once",
    )
