"""
A fleet: a pool of hosts of one make, and how runs share each of them.

This version makes fleets on the machine it runs on. Each node of a local fleet is an agent of
its own, with an equal part of what the machine has, or with the capacity declared here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.amounts import CapacityCpu, CapacityGpu, Size
from fleetform.spec.kinds.base import Document, Model, Whole, refuse
from fleetform.spec.quantities import Range, parse_int_range
from fleetform.spec.quantities.ranges import unfit


class Nodes(Model):
    """How many hosts: at least `min`, `target` when it is first made, at most `max`."""

    min: int
    target: int
    max: int | None

    def to_canonical(self) -> dict[str, Any]:
        # An open upper end is a value here, not a field left out.
        return {"min": self.min, "target": self.target, "max": self.max}


_COUNT = {"type": "integer", "minimum": 0}
_NODES_SCHEMA = {
    "anyOf": [
        _COUNT,
        {"type": "string", "pattern": r"^\s*[0-9]*\s*(\.\.\s*[0-9]*)?\s*$", "examples": ["0..2"]},
        {
            "type": "object",
            "properties": {"min": _COUNT, "target": _COUNT, "max": _COUNT},
            "additionalProperties": False,
            "minProperties": 1,
        },
    ]
}


def _nodes(value: Any) -> Nodes:
    if not isinstance(value, Mapping) or "target" not in value:
        count = parse_int_range(value)
        least = count.min or 0
        return _ordered(least, least, count.max)
    rest = {key: item for key, item in value.items() if key != "target"}
    target = parse_int_range(value["target"]).min or 0
    count = parse_int_range(rest) if rest else Range(0, None)
    return _ordered(count.min or 0, target, count.max)


def _ordered(least: int, target: int, most: int | None) -> Nodes:
    if target < least or (most is not None and target > most):
        raise refuse("bad-value", "`target` is not between `min` and `max`.")
    return Nodes(min=least, target=target, max=most)


class Local(Model):
    """What each node of a local fleet has; what is left out is detected and divided equally."""

    cpu: CapacityCpu | None = None
    """CPUs of a node. They may be more than the machine has. Example: `256`, `0.5`."""

    memory: Size | None = None
    """Memory of a node. Example: `256GB`."""

    disk: Size | None = None
    """Disk of a node. Example: `1TB`."""

    gpu: CapacityGpu | None = None
    """GPUs of a node: name, memory of one, and number. Example: `A100:80GB:8`."""


def _local(value: Any) -> Any:
    if value is True:
        return {}
    if isinstance(value, Mapping | Local):
        return value
    raise refuse(
        "wrong-type",
        str(unfit(value, "`true`, or what each node has: `{cpu: 8, memory: 32GB}`")),
        "Leave out the whole document if there shall be no such fleet." if value is False else "",
    )


class Fleet(Document):
    """
    A pool of hosts that runs are placed on.

    Example:
        type: fleet
        name: local
        local: true
    """

    type: Literal["fleet"]
    """The kind of the document: `fleet`."""

    nodes: Annotated[Nodes, PlainValidator(_nodes), WithJsonSchema(_NODES_SCHEMA)] | None = None
    """
    How many hosts, or from how many to how many. One if it is not said. A host is taken away
    only once nothing runs on it. Example: `2`, `0..2`, `{min: 1, target: 2, max: 4}`.
    """

    local: Annotated[Local, BeforeValidator(_local, json_schema_input_type=Literal[True] | Local)]
    """
    The hosts are this machine: `true` for what it is found to have, or what each node has.
    Example: `true`, `{cpu: 256, memory: 256GB, gpu: "A100:80GB:8"}`.
    """

    sharing: Literal["whole", "blocks", "exact"] | None = None
    """
    How runs share a host. `whole`: one at a time. `blocks`: in the equal parts of `blocks`.
    `exact`: each is given the least it asks for. Example: `exact`.
    """

    blocks: Annotated[Whole, Field(ge=1, le=1024)] | None = None
    """Into how many equal parts each host is divided, with `sharing: blocks`. Example: `8`."""

    def problems(self) -> Iterator[Problem]:
        if self.sharing == "blocks" and self.blocks is None:
            yield Problem(
                "contradiction",
                ("sharing",),
                "`sharing: blocks` does not say into how many parts a host is divided.",
                "Add `blocks:` with their number.",
            )
        if self.blocks is not None and self.sharing not in {None, "blocks"}:
            yield Problem(
                "contradiction",
                ("blocks",),
                f"`blocks` has no effect with `sharing: {self.sharing}`.",
                "Remove one of the two.",
            )
        if self.nodes is not None and self.nodes.max is None:
            yield Problem(
                "bad-value",
                ("nodes",),
                "A local fleet without an upper end would never be complete.",
                f"Write a number, or a range such as `{self.nodes.min}..{self.nodes.min + 1}`.",
            )
