"""
Runs that a command is about, by the addresses that people type.

`model.selection` reads an address; here it is looked up in the ledger, and one that means no run
is refused with the names that are near.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import click

from fleetform.cli.failure import Refused, bad_address
from fleetform.model.figures import counted, first_of
from fleetform.model.run_state import FINAL
from fleetform.model.selection import Selection, address_problem
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import natural_order, parse_address, split_element

if TYPE_CHECKING:
    from fleetform.app.edit import Editor
    from fleetform.app.locate import Source
    from fleetform.app.workspace import Workspace
    from fleetform.cli.screen import Screen
    from fleetform.model.instance import Instance
    from fleetform.model.live import Live, LiveResource
    from fleetform.model.ports import Reader, RunHistory


T = TypeVar("T")


@dataclass
class Reread(Generic[T]):
    """
    Calls `read` again only if the ledger has changed since, and returns its last answer.

    A command that follows runs looks several times a second; the rows of a thousand elements take
    tens of milliseconds to read, and most of the time none has changed.
    """

    reader: Reader
    read: Callable[[], T]

    def __post_init__(self) -> None:
        self._known: tuple[int, T] | None = None

    def __call__(self) -> T:
        # Before it is read: a commit meanwhile has it read once more.
        serial = self.reader.serial()
        if self._known is None or self._known[0] != serial:
            self._known = (serial, self.read())
        return self._known[1]


def select_runs(reader: Reader, typed: Sequence[str]) -> list[RunHistory]:
    """
    Find the runs that addresses mean: `train`, `sweep`, `arr[3-7]`, `sweep[lr=0.1]`, `train*`.

    Sorted as people count; of two runs of one name the one that is not archived. An address of several runs
    means archived ones only if all of them are: who names a sweep asks for the elements that it has.

    Raises:
        Refused: An address means no run.
    """
    from fleetform.views.runs import in_order

    for text in typed:
        _check_run_address(text)
    documents = [split_element(text.removeprefix("run/"))[0] for text in typed]
    # Of a pattern any run may be meant; a name needs the rows of one document only.
    is_pattern = any("*" in text for text in typed)
    found = in_order(reader.read_runs(None if is_pattern else documents))
    meant: set[str] = set()
    for text in typed:
        chosen = select_histories(found, [text])
        if not chosen:
            raise _means_none(reader, text)
        present = [one for one in chosen if not one.archived] or chosen
        named = [one for one in chosen if one.run.name == text.removeprefix("run/")]
        meant.update(one.run.name for one in (*present, *named))
    by_name: dict[str, RunHistory] = {}
    for history in found:
        # Archived runs come last.
        if history.run.name in meant:
            by_name.setdefault(history.run.name, history)
    return list(by_name.values())


def select_histories(histories: Iterable[RunHistory], typed: Sequence[str]) -> list[RunHistory]:
    """Keep the runs that addresses mean, in their order; without an address all of them."""
    if not typed:
        return list(histories)
    selection = Selection(typed)
    return [
        each
        for each in histories
        if selection.selects(ResourceKey("run", each.run.name), each.run.template.parent)
    ]


def _check_run_address(text: str) -> None:
    if problem := address_problem(text):
        raise bad_address(problem, advice="write a run's name, or `train*` for several")
    kind, slash, _ = text.partition("[")[0].partition("/")
    if slash and kind != "run":
        raise Refused(f"`{text}` is not a run", advice="write a run's name, or `run/NAME`")


def _means_none(reader: Reader, text: str) -> Refused:
    """Say that an address means no run: its document is unknown, or has no such element."""
    from fleetform.views.element_names import shorten_elements

    known = reader.read_runs()
    document, element = split_element(text.removeprefix("run/"))
    elements = [each.run.template.element for each in known if each.run.template.parent == document]
    if element and elements:
        return Refused(
            f"`{document}` has no element `{element}`",
            advice=f"its elements are {shorten_elements(elements).text}",
        )
    if "*" in text:
        return Refused(
            f"`{text}` matches no run", advice="`fleetform ps --all` lists every run by name"
        )
    names = {each.run.template.parent or each.run.name: None for each in known}
    return unknown("run", text, names)


# Names of runs as people type them: found, refused with the near ones, and completed.

DEFAULTS = frozenset({"ps", "logs", "why", "events", "stop", "rerun"})
"""Commands with names of runs that, outside an environment, are about those of the default one."""

# A refusal that lists a thousand elements is not read.
_NAMES_SHOWN_MAX = 5
# As many lines as one still looks through.
_LINES_MAX = 20


def one_run(reader: Reader, name: str) -> RunHistory:
    """Find the run `name`, current before archived; refuse with advice if there is none."""
    found = reader.read_runs([name])
    named = [history for history in found if history.run.name == name]
    if named:
        return min(named, key=lambda history: history.archived)
    if found:
        elements = sorted((history.run.name for history in found), key=natural_order)
        raise Refused(
            f"`{name}` has {counted(len(elements), 'element')}",
            advice=f"name one of them: {some(elements)}",
        )
    raise unknown("run", name, [history.run.name for history in reader.read_runs()])


def require_run(reader: Reader, name: str) -> None:
    """Refuse with advice if there is no run, sweep or array `name`; one that is archived is one."""
    if not reader.read_runs([name]):
        raise unknown("run", name, [history.run.name for history in reader.read_runs()])


def refuse_host(instances: Iterable[Instance], name: str) -> None:
    """Refuse the name of a host where another resource is asked for: the fleet shows its hosts."""
    last = name.rpartition("/")[2]
    for one in instances:
        if one.name == last:
            raise Refused(
                f"`{last}` is a host of fleet {one.fleet}",
                advice=f"`fleetform fleet show {one.fleet}` shows its state, its runs and why",
            )


def unknown(kind: str, name: str, known: Iterable[str]) -> Refused:
    """Say that there is no such name, and which ones are near."""
    import difflib

    names = sorted(known, key=natural_order)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        advice = f"did you mean {' or '.join(f'`{found}`' for found in near)}?"
    elif names:
        advice = f"there is: {some(names)}"
    else:
        advice = f"no {kind} has been applied yet; `fleetform plan` shows what would be"
    return Refused(f"there is no {kind} `{name}`", advice=advice)


def some(names: Sequence[str]) -> str:
    """List a few names, and say how many more there are."""
    return first_of([f"`{name}`" for name in names], _NAMES_SHOWN_MAX)


def say_of_each(out: Screen, names: Sequence[str], what: str) -> None:
    """Write `train: runs again` for each; of a thousand elements the first few and a count."""
    shown = names if len(names) <= _LINES_MAX else names[:_NAMES_SHOWN_MAX]
    for name in shown:
        out.line(f"{name}: {what}")
    if len(shown) < len(names):
        out.line(f"and {len(names) - len(shown)} more")


def complete_runs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of runs from the ledger."""
    from fleetform.app.workspace import default_root, root_around
    from fleetform.cli.tree import open_workspace

    # The shell is waiting with the person's line half typed: whatever is wrong with the configuration,
    # the answer is no completion, and never a message.
    try:
        path = ctx.params.get("path")
        root = (path or root_around() or default_root()) if ctx.command.name in DEFAULTS else path
        workspace = open_workspace(None if root is None else str(root))
        runs = workspace.read(lambda reader: reader.read_runs(), ())
    except Exception:  # noqa: BLE001 -- see above
        return []
    return [each.run.name for each in runs if each.run.name.startswith(incomplete)]


# Runs as people name them to have their documents changed: the document, and where its runs stand.
# An element of an array or a sweep has entries of its own in the fields `state` and `rerun`. What no
# document can say is refused with what can be done instead.


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

        return any(is_at_work(row) and row.parsed.get("state") != "stopped" for row in self.rows)

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
    return workspace.read(lambda reader: reader.read_live(), None)


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
