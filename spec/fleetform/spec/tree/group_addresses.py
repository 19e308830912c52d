"""
`${{ groups[0].nodes[1].IP_ADDRESS }}`: whether a run has the node or the replica that is named.

Nothing fills addresses in yet. One that no host will ever have is a mistake all the same, and
the document is where it is corrected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.findings import Problem
from fleetform.spec.interpolate import group_address, references
from fleetform.spec.kinds.run import Run
from fleetform.spec.kinds.service import Service
from fleetform.spec.kinds.task import Task
from fleetform.spec.plurals import counted
from fleetform.spec.quantities import Range


def address_problems(run: Run, compiled: Mapping[str, Any]) -> Iterator[Problem]:
    """References to groups, nodes and replicas that the run does not have."""
    member, sizes = _sizes(run)
    for path, reference in references(compiled):
        address = group_address(reference)
        if address is None:
            continue
        group, said, number = address
        word = f"groups[{group}].{said}[{number}].IP_ADDRESS"
        detail = _problem(member, sizes, *address)
        if detail:
            yield Problem("unknown-expression", path, f"`${{{{ {word} }}}}`: {detail}", word=word)


def _sizes(run: Run) -> tuple[str, list[int]]:
    """What the parts of a group are called, and how many each group has when the run starts."""
    if isinstance(run, Task):
        if run.groups is not None:
            return "nodes", [group.nodes or 1 for group in run.groups]
        return "nodes", [run.nodes or 1]
    if isinstance(run, Service):
        if run.replica_groups:
            return "replicas", [group.replicas.min or 0 for group in run.replica_groups]
        return "replicas", [(run.replicas.min or 0) if isinstance(run.replicas, Range) else 1]
    return "", []


def _problem(member: str, sizes: list[int], group: int, said: str, number: int) -> str:
    if not member:
        return "a dev environment has no groups."
    if said != member:
        return f"a group has `{member}` here."
    if group >= len(sizes):
        return f"the run has {counted(len(sizes), 'group')}, counted from 0."
    if number >= sizes[group]:
        noun = "node" if member == "nodes" else "replica"
        return f"the group has {counted(sizes[group], noun)} at its start, counted from 0."
    return ""
