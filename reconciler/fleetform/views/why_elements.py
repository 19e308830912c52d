"""
Why the elements of an array or a sweep are where they are: one paragraph for all with the same reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fleetform.model import figures
from fleetform.model.run import RunState
from fleetform.views.element_names import shorten_elements
from fleetform.views.lines import printable
from fleetform.views.run_list import counts_text
from fleetform.views.runs import RunRow, WaitingRow, row_message
from fleetform.views.why import Why, why_lines

__all__ = ["WhyElement", "why_elements_lines"]


@dataclass(frozen=True, slots=True)
class WhyElement:
    """The answer for one element, with its row."""

    row: RunRow
    why: Why


def why_elements_lines(elements: Sequence[WhyElement]) -> Iterator[str]:
    """Write the counts of each array or sweep, then a paragraph for each group of elements."""
    by_parent: dict[str, list[WhyElement]] = {}
    for one in elements:
        by_parent.setdefault(one.row.parent or one.row.name, []).append(one)
    for parent, members in by_parent.items():
        rows = [one.row for one in members]
        yield f"{parent}: {figures.counted(len(rows), 'run')}: {counts_text(rows)}"
        for group in _alike(members):
            yield ""
            yield from why_lines(group[0].why) if len(group) == 1 else _group_lines(parent, group)


def _alike(elements: Iterable[WhyElement]) -> Iterator[list[WhyElement]]:
    groups: dict[tuple[str, str, tuple[WaitingRow, ...], tuple[str, ...]], list[WhyElement]] = {}
    for one in elements:
        message = "" if one.why.reasons else row_message(one.row)
        key = (one.why.state, message, one.why.reasons, one.why.at_work)
        groups.setdefault(key, []).append(one)
    yield from groups.values()


def _group_lines(parent: str, group: Sequence[WhyElement]) -> Iterator[str]:
    why = group[0].why
    names = shorten_elements(one.row.element for one in group)
    message = row_message(group[0].row)
    head = f"elements {names.text} are {why.state}"
    if why.reasons:
        yield f"{head}, for {figures.counted(len(why.reasons), 'reason')}:"
    else:
        yield printable(f"{head}: {message}." if message else f"{head}.")
    yield from (printable(f"  - {reason.detail}") for reason in why.reasons)
    yield from (printable(f"  - {sentence}") for sentence in why.at_work)
    if why.reasons:
        yield from (f"help: {sentence}" for sentence in why.advice)
    elif why.state in _AGAIN:
        address = f"{parent}{names.text}" if names.is_address else group[0].row.name
        yield f"help: `fleetform logs '{address}'` prints output, `fleetform rerun '{address}'` runs again"


_AGAIN = frozenset({RunState.FAILED, RunState.STOPPED, RunState.ABORTED, RunState.UNSCHEDULABLE})
