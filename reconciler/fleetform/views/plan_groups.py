"""
Which changes of a plan are read as one.

A thousand elements of an array that all come into being are one fact. Elements of one sweep
with the same action, reasons and stakes make a group; what they have in common is shown once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fleetform.model.plan import Action, Change, Held, HeldBy
from fleetform.spec.names import natural_order
from fleetform.views.element_names import element_of, name_elements
from fleetform.views.lines import printable

__all__ = [
    "ALL_OF_THEM",
    "GROUP_MIN",
    "Group",
    "HeldGroup",
    "group_changes",
    "group_held",
    "split_held",
]

ALL_OF_THEM = "`fleetform plan --format json` lists them"

NAMES_MAX = 10
"""Elements of a block that are named one by one, where its title names only the first."""

GROUP_MIN = 4
"""Elements from which on a group is shorter than its members and says as much."""


@dataclass(frozen=True, slots=True)
class Group:
    """
    Changes shown as one, or a single one.

    Values that members do not share are shown by template, or one by one: see `plan_folds`.
    """

    changes: tuple[Change, ...]

    @property
    def first(self) -> Change:
        return self.changes[0]

    @property
    def is_many(self) -> bool:
        return len(self.changes) > 1

    @property
    def may_force(self) -> bool:
        """Whether fields are the cause of a replacement: not where one element replaces another."""
        return self.first.action is Action.REPLACE and not self.first.replaces

    @property
    def title(self) -> str:
        """`task train`, or `task array[1-1000]  1000 elements`."""
        if not self.is_many:
            return f"{self.first.type} {printable(self.first.key.name)}"
        named = name_elements(self.changes)
        parent = printable(self.first.parent)
        return f"{self.first.type} {parent}{named.text}  {len(self.changes)} elements"

    @property
    def names(self) -> str:
        """The elements, or the first of them and how many follow; empty where the title has all."""
        if not self.is_many or self.first.replaces or name_elements(self.changes).is_complete:
            return ""
        shown = ", ".join(printable(element_of(one)) for one in self.changes[:NAMES_MAX])
        more = len(self.changes) - NAMES_MAX
        return shown if more <= 0 else f"{shown} and {more} more: {ALL_OF_THEM}"


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
            groups.append(Group((change,)))
    for unsorted in members.values():
        together = sorted(unsorted, key=lambda change: natural_order(change.key.name))
        if len(together) >= GROUP_MIN:
            groups.append(Group(tuple(together)))
        else:
            groups.extend(Group((change,)) for change in together)
    return tuple(sorted(groups, key=_order))


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
    return tuple(sorted(groups, key=lambda one: _order(one.group)))


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


def _order(group: Group) -> tuple[str, list[tuple[float, str]]]:
    """As people count: `arr[2]` stands before `arr[10]`."""
    return group.first.key.kind, natural_order(group.first.key.name)


def _looks(change: Change) -> tuple[object, ...]:
    same = (change.key.kind, change.parent, change.action, change.reasons)
    return (*same, change.destructive, bool(change.fields))
