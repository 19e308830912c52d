"""
Runs that a command is about, by the addresses that people type.

`model.selection` reads an address; here it is looked up in the ledger, and one that means no run
is refused with the names that are near.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from fleetform.cli.failure import Refused, bad_address
from fleetform.cli.names import unknown
from fleetform.model.selection import Selection, address_problem
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import split_element

if TYPE_CHECKING:
    from fleetform.model.ports import Reader, RunHistory

__all__ = ["Reread", "select_histories", "select_runs"]

T = TypeVar("T")


class Reread(Generic[T]):
    """
    Calls `read` again only if the ledger has changed since, and returns its last answer.

    A command that follows runs looks several times a second; the rows of a thousand elements take
    tens of milliseconds to read, and most of the time none has changed.
    """

    def __init__(self, reader: Reader, read: Callable[[], T]) -> None:
        self._reader = reader
        self._read = read
        self._known: tuple[int, T] | None = None

    def __call__(self) -> T:
        # Before it is read: a commit meanwhile has it read once more.
        serial = self._reader.serial()
        if self._known is None or self._known[0] != serial:
            self._known = (serial, self._read())
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
