"""
Which changes of a plan are read as one.

A thousand elements of an array that all come into being are one fact. Elements of one sweep
with the same action, reasons and stakes make a group; what they have in common is shown once.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod

from fleetform.model.plan import Change, FieldChange, Held, HeldBy
from fleetform.spec.canonical import plain_json
from fleetform.spec.dataclass import dataclass
from fleetform.views.lines import printable

__all__ = ["GROUP_MIN", "Group", "HeldGroup", "group_changes", "group_held", "split_held"]

GROUP_MIN = 4
"""Elements from which on a group is shorter than its members and says as much."""

NAMES_MAX = 4

VALUES_MAX = 6
"""Values of one parameter, or names of elements, that a title has room for."""


@dataclass(frozen=True, slots=True)
class Group:
    """
    Changes shown as one, or a single one.

    `fields` are those that all members share; `varying` counts paths that differ among them.
    """

    changes: tuple[Change, ...]
    fields: tuple[FieldChange, ...]
    varying: int = 0

    @property
    def first(self) -> Change:
        return self.changes[0]

    @property
    def is_many(self) -> bool:
        return len(self.changes) > 1

    @property
    def title(self) -> str:
        """`task train`, or `task array[1-1000]  1000 elements`."""
        if not self.is_many:
            return f"{self.first.type} {printable(self.first.key.name)}"
        return f"{self.first.type} {elements_text(self.changes)}  {len(self.changes)} elements"


@dataclass(frozen=True, slots=True)
class HeldGroup:
    """Held changes with one group's looks and one cure."""

    group: Group
    held: Held


def group_changes(changes: Iterable[Change]) -> tuple[Group, ...]:
    """Groups in the order of their first members."""
    members: dict[tuple[object, ...], list[Change]] = {}
    groups: list[Group] = []
    for change in changes:
        if change.parent:
            members.setdefault(_looks(change), []).append(change)
        else:
            # A single resource looks like nothing else.
            groups.append(Group((change,), change.fields))
    for together in members.values():
        if len(together) >= GROUP_MIN:
            groups.append(_group(together))
        else:
            groups.extend(Group((change,), change.fields) for change in together)
    return tuple(sorted(groups, key=lambda group: group.changes[0].key))


def group_held(held: Iterable[Held]) -> tuple[HeldGroup, ...]:
    """The same of what is held, apart by what holds it and what would release it."""
    by_cause: dict[tuple[object, ...], list[Held]] = {}
    for one in held:
        by_cause.setdefault((one.by, one.detail, one.cure), []).append(one)
    groups = [
        HeldGroup(group, together[0])
        for together in by_cause.values()
        for group in group_changes(one.change for one in together)
    ]
    return tuple(sorted(groups, key=lambda one: one.group.first.key))


def split_held(held: Iterable[Held]) -> tuple[tuple[HeldGroup, ...], tuple[HeldGroup, ...]]:
    """
    What somebody can release, and what waits for another version of the program.

    A reader has to decide about the first; the second is to be known, and may be long.
    """
    waiting: list[Held] = []
    beyond: list[Held] = []
    for one in held:
        (beyond if one.by is HeldBy.NOT_CARRIED_OUT else waiting).append(one)
    return group_held(waiting), group_held(beyond)


def elements_text(changes: Iterable[Change]) -> str:
    """
    Name elements of one parent in short.

    `array[1-98,101]` for numbers, `sweep[batch=8|16,lr=0.1|0.2]` where each value goes with each,
    else the first few of them.
    """
    together = list(changes)
    parent = printable(together[0].parent)
    elements = [printable(change.element) for change in together]
    if all(_is_number(element) for element in elements):
        return f"{parent}[{_ranges(sorted(map(int, elements)))}]"
    if grid := _grid(elements):
        return f"{parent}[{grid}]"
    more = " | …" if len(elements) > NAMES_MAX else ""
    return f"{parent}[{' | '.join(elements[:NAMES_MAX])}{more}]"


def _grid(elements: list[str]) -> str:
    """The values of each parameter, if the elements are all of their combinations; else empty."""
    values: dict[str, list[str]] = {}
    for element in elements:
        for part in element.split(","):
            name, _, value = part.partition("=")
            if value not in values.setdefault(name, []):
                values[name].append(value)
    if prod(map(len, values.values())) != len(elements):
        return ""
    combinations = {
        ",".join(f"{name}={value}" for name, value in zip(values, row, strict=True))
        for row in product(*values.values())
    }
    # A value may hold a comma of its own; then taking apart and putting together differ.
    if combinations != set(elements):
        return ""
    return ",".join(f"{name}={_few(found)}" for name, found in values.items())


def _few(values: list[str]) -> str:
    values = sorted(values, key=_natural)
    return "|".join(values[:VALUES_MAX]) + ("|…" if len(values) > VALUES_MAX else "")


def _natural(value: str) -> tuple[float, str]:
    """Numbers by their size, and before words."""
    try:
        return (float(value), value)
    except ValueError:
        return (float("inf"), value)


def _is_number(element: str) -> bool:
    return element.isascii() and element.isdecimal()


def _looks(change: Change) -> tuple[object, ...]:
    same = (change.key.kind, change.parent, change.action, change.reasons)
    return (*same, change.destructive, bool(change.fields))


def _group(together: list[Change]) -> Group:
    counts: dict[str, int] = {}
    paths: set[str] = set()
    first: dict[str, FieldChange] = {}
    for change in together:
        for one in change.fields:
            paths.add(one.path)
            key = plain_json([one.path, one.before, one.after, one.before_set, one.after_set])
            counts[key] = counts.get(key, 0) + 1
            first.setdefault(key, one)
    shared = [one for key, one in first.items() if counts[key] == len(together)]
    return Group(tuple(together), tuple(shared), len(paths) - len(shared))


def _ranges(numbers: list[int]) -> str:
    """Write sorted numbers as `1-98,101`; a long list is cut."""
    parts: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], -1]:
        if number == previous + 1:
            previous = number
            continue
        parts.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = number
    shown = parts[:12]
    return ",".join(shown) + (",…" if len(parts) > len(shown) else "")
