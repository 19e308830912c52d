"""
Elements of one sweep or array, named in short: `[1-98,101]`, `[batch=8|16,lr=0.1|0.2]`.

A title has no room for a thousand names. Whether all of them can be read from the short form is
part of the answer, so that a view lists the names where it has left some out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from fleetform.spec.names import natural_order, split_element
from fleetform.views.lines import printable

if TYPE_CHECKING:
    from fleetform.model.plan import Change

NAMES_MAX = 4

VALUES_MAX = 6
"""Values of one parameter that a title has room for."""

RANGES_MAX = 12


class ElementNames(NamedTuple):
    """
    `text` has its brackets; `is_complete` where it names every element.

    `is_address`: behind the parent's name it selects these elements and no others.
    """

    text: str
    is_complete: bool
    is_address: bool


def element_of(change: Change) -> str:
    """Return what stands in the brackets of the element's name."""
    return change.element or split_element(change.key.name)[1]


def name_elements(changes: Iterable[Change]) -> ElementNames:
    """Name the elements of one parent that changes are about."""
    return shorten_elements(element_of(change) for change in changes)


def shorten_elements(names: Iterable[str]) -> ElementNames:
    """
    Name elements of one parent in short, in the order in which people count.

    Numbers are ranges. Where each value of each parameter goes with each of the others, the values
    are named; else the first few elements.
    """
    elements = sorted(map(printable, names), key=natural_order)
    is_address = True
    if all(_is_number(element) for element in elements):
        text, is_complete = _ranges([int(element) for element in elements])
    elif grid := _grid(elements):
        text, is_complete = grid
    else:
        is_complete = len(elements) <= NAMES_MAX
        is_address = len(elements) == 1
        text = " | ".join((*elements[:NAMES_MAX], *([] if is_complete else ["…"])))
    return ElementNames(f"[{text}]", is_complete, is_complete and is_address)


def _grid(elements: Sequence[str]) -> tuple[str, bool] | None:
    """The values of each parameter, if the elements are all of their combinations."""
    values: dict[str, list[str]] = {}
    for element in elements:
        for part in element.split(","):
            name, _, value = part.partition("=")
            if value not in values.setdefault(name, []):
                values[name].append(value)
    if prod(map(len, values.values())) != len(elements):
        return None
    combinations = {
        ",".join(f"{name}={value}" for name, value in zip(values, row, strict=True))
        for row in product(*values.values())
    }
    # A value may hold a comma of its own; then taking apart and putting together differ.
    if combinations != set(elements):
        return None
    text = ",".join(f"{name}={_few(found)}" for name, found in values.items())
    return text, max(map(len, values.values())) <= VALUES_MAX


def _few(values: list[str]) -> str:
    values = sorted(values, key=_by_size)
    return "|".join(values[:VALUES_MAX]) + ("|…" if len(values) > VALUES_MAX else "")


def _by_size(value: str) -> tuple[float, str]:
    """Numbers by their size, and before words."""
    try:
        return (float(value), value)
    except ValueError:
        return (float("inf"), value)


def _is_number(element: str) -> bool:
    return element.isascii() and element.isdecimal()


def _ranges(numbers: Sequence[int]) -> tuple[str, bool]:
    """Write sorted numbers as `1-98,101`."""
    parts: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], -1]:
        if number == previous + 1:
            previous = number
            continue
        parts.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = number
    is_complete = len(parts) <= RANGES_MAX
    return ",".join((*parts[:RANGES_MAX], *([] if is_complete else ["…"]))), is_complete
