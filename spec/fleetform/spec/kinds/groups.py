"""
Groups: nodes of one task, or replicas of one service, that are not alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Protocol

from pydantic import (
    AfterValidator,
    Field,
    WithJsonSchema,
)

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Model, Whole, contradiction, listed, refuse
from fleetform.spec.kinds.commands import Commands
from fleetform.spec.kinds.ports import Ports
from fleetform.spec.kinds.resources import Resources
from fleetform.spec.quantities.ranges import EXPRESSION, exact_text, shown

GROUP_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


def group_name(value: str) -> str:
    """A group's name; digits may stand in front, since positions are names as well."""
    if not GROUP_NAME.fullmatch(value):
        raise refuse(
            "bad-name",
            f"{shown(value)} cannot be a group's name.",
            "Use 1 to 40 lower-case letters, digits and dashes, with no dash in front.",
        )
    return value


GroupName = Annotated[
    str,
    AfterValidator(group_name),
    WithJsonSchema(
        {"type": "string", "pattern": rf"{exact_text(GROUP_NAME.pattern)}|{EXPRESSION}"}
    ),
]


class NodeGroup(Model):
    """A group of equal nodes of a task."""

    name: GroupName | None = None
    """The name of the group. Default: its position in the list, from 0. Example: `workers`."""

    nodes: Annotated[Whole, Field(ge=1, le=100_000)] | None = None
    """Number of nodes. Default: 1. Example: `4`."""

    resources: Resources | None = None
    """
    The resources that each node of the group requires. Default: `resources` of the task. Example:
    `{gpu: A100:80GB:8}`.
    """

    commands: Commands | None = None
    """The commands of each node of the group. Example: `[python worker.py]`."""

    ports: Ports | None = None
    """Ports on which the programs of the group listen. Example: `[8000]`."""


NodeGroups = Annotated[tuple[NodeGroup, ...], *listed(NodeGroup)]


class _Named(Protocol):
    """What the two sorts of groups have in common."""

    @property
    def name(self) -> str | None: ...


def group_title(number: int, group: _Named) -> str:
    """What the group is called."""
    return group.name if group.name is not None else str(number)


def name_problems(groups: Sequence[_Named], field: str = "groups") -> Iterator[Problem]:
    """Two groups of one name."""
    seen: set[str] = set()
    for number, group in enumerate(groups):
        name = group_title(number, group)
        if name in seen:
            yield Problem(
                "said-twice",
                (field, number),
                f"Two groups are called `{name}`.",
                "Rename one of them.",
            )
        seen.add(name)


def only_in_groups(
    is_set: Callable[[str], bool], names: Sequence[str], reason: str
) -> Iterator[Problem]:
    """Fields that belong into the groups where there are some."""
    for name in names:
        if is_set("groups") and is_set(name):
            yield contradiction(
                name, f"With `groups`, {reason} `{name}`.", "Move it into the groups."
            )
