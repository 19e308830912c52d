"""
Groups: nodes of one task, or replicas of one service, that are not alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
)

from fleetform.spec.field_facts import control
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.amounts import COUNT, WHOLE, text
from fleetform.spec.kinds.base import Entries, Flag, Model, Whole, one_or_many, refuse
from fleetform.spec.kinds.commands import Commands
from fleetform.spec.kinds.container import Image, Python, source_problems
from fleetform.spec.kinds.offers import Text
from fleetform.spec.kinds.ports import Ports
from fleetform.spec.kinds.requests import Scaling
from fleetform.spec.kinds.resources import Resources
from fleetform.spec.quantities import Range, parse_int_range
from fleetform.spec.quantities.patterns import DIGITS, EXPRESSION, exact_text
from fleetform.spec.quantities.ranges import shown

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


NodeGroups = Annotated[
    tuple[NodeGroup, ...],
    Field(min_length=1),
    BeforeValidator(one_or_many, json_schema_input_type=NodeGroup | Entries[NodeGroup]),
]


def _replicas(value: Any) -> Range:
    count = parse_int_range(value)
    if count.max is None:
        raise ValueError(
            "The largest number of replicas is missing; write for example"
            f" `{count.min}..{(count.min or 0) + 4}`."
        )
    return Range(count.min or 0, count.max)


Replicas = Annotated[
    Range,
    PlainValidator(_replicas),
    WithJsonSchema(
        {
            "anyOf": [
                WHOLE,
                text(rf"{DIGITS}|(?:{DIGITS})?\s*\.\.\s*{DIGITS}", "2", "0..4"),
                {
                    "type": "object",
                    "properties": {
                        "min": {"anyOf": [*COUNT["anyOf"], {"type": "null"}]},
                        "max": COUNT,
                    },
                    "required": ["max"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


class Router(Model):
    """A router that distributes requests among the other groups."""

    type: Literal["smg", "dynamo"] | None = None
    """
    The router. `smg`: the Shepherd Model Gateway. `dynamo`: the frontend of NVIDIA Dynamo. Example:
    `smg`.
    """


class _OldRouter(Model):
    """The name of `smg` in dstack before 0.22.4."""

    type: Literal["sglang"]
    """The same router as `smg`. Example: `sglang`."""


def _router(value: Any) -> Any:
    # What dstack before 0.22.4 called it.
    if isinstance(value, Mapping) and value.get("type") == "sglang":
        return {**value, "type": "smg"}
    return value


def _add_count(schema: dict[str, Any]) -> None:
    replicas = schema["properties"]["replicas"]
    schema["properties"]["count"] = {**replicas, "x-same-as": "replicas"}
    schema["required"].remove("replicas")
    if not schema["required"]:
        del schema["required"]
    schema["if"] = {"required": ["count"]}
    schema["then"] = {"not": {"required": ["replicas"]}}
    schema["else"] = {"required": ["replicas"]}


class ReplicaGroup(Model):
    """A group of equal replicas of a service."""

    model_config = ConfigDict(json_schema_extra=_add_count)

    name: GroupName | None = None
    """The name of the group. Default: its position in the list, from 0. Example: `prefill`."""

    replicas: Annotated[Replicas, control()]
    """
    Number of replicas, or a range together with `scaling`; `count` is the same field. Example: `2`,
    `0..4`.
    """

    scaling: Annotated[Scaling | None, control()] = None
    """
    When replicas are added and removed within the range of `replicas`. Example: `{metric: rps,
    target: 10}`.
    """

    resources: Resources | None = None
    """
    The resources that each replica requires. Default: `resources` of the service. Example: `{gpu:
    H100:80GB:8}`.
    """

    spot_policy: Literal["spot", "on-demand", "auto"] | None = None
    """
    Whether to use spot instances, which cost less and which the cloud may take back at any time.
    `spot`: only spot instances. `on-demand`: no spot instances. `auto`: either, the cheaper first.
    Example: `auto`.
    """

    reservation: Text | None = None
    """The id of a capacity reservation at the cloud. Example: `cr-0f1e2d3c4b5a69788`."""

    commands: Commands | None = None
    """The commands of each replica. Example: `[python serve.py]`."""

    image: Image | None = None
    """
    The image of the container. Default: `image` of the service. Example: `vllm/vllm-openai:v0.9.0`.
    """

    python: Python | None = None
    """The version of Python in the base image. Example: `"3.12"`."""

    nvcc: Flag | None = None
    """Whether the base image contains the CUDA compiler of NVIDIA. Example: `true`."""

    docker: Flag | None = None
    """Whether the replicas can start containers of their own. Example: `true`."""

    privileged: Flag | None = None
    """Whether the containers have all privileges of the host. Example: `true`."""

    router: (
        Annotated[Router, BeforeValidator(_router, json_schema_input_type=Router | _OldRouter)]
        | None
    ) = None
    """
    Use this group as the router that distributes requests among the other groups. Example: `{type:
    smg}`.
    """


def _group(value: Any) -> Any:
    # What dstack before 0.21 called it.
    if not isinstance(value, Mapping) or "count" not in value:
        return value
    if "replicas" in value:
        raise refuse("said-twice", "`replicas` and `count` are the same field.", "Keep `replicas`.")
    return {"replicas" if key == "count" else key: item for key, item in value.items()}


ReplicaGroups = Annotated[
    tuple[Annotated[ReplicaGroup, BeforeValidator(_group)], ...],
    Field(min_length=1),
    BeforeValidator(one_or_many, json_schema_input_type=ReplicaGroup | Entries[ReplicaGroup]),
]


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
            yield Problem(
                "contradiction",
                (name,),
                f"With `groups`, {reason} `{name}`.",
                "Move it into the groups.",
                at_key=True,
            )


def scaling_problems(
    replicas: Range | None, scaling: Scaling | None, above: tuple[str | int, ...] = ()
) -> Iterator[Problem]:
    """A number that may change needs a rule, and one that may not has none."""
    is_range = replicas is not None and replicas.min != replicas.max
    if is_range and scaling is None:
        yield Problem(
            "missing-field",
            (*above, "replicas"),
            "`replicas` is a range, but there is no `scaling`.",
            "Add `scaling: {metric: rps, target: 10}`, or write one number.",
            for_lack_of=("scaling",),
        )
    if scaling is not None and replicas is not None and not is_range:
        yield Problem(
            "contradiction",
            (*above, "scaling"),
            "`scaling` changes the number of replicas, and `replicas` is one number.",
            "Write a range, such as `replicas: 1..4`, or remove `scaling`.",
            at_key=True,
        )


def router_problems(groups: Sequence[ReplicaGroup], field: str = "groups") -> Iterator[Problem]:
    """More routers than one."""
    routers = [number for number, group in enumerate(groups) if group.router is not None]
    for number in routers[1:]:
        yield Problem(
            "said-twice",
            (field, number, "router"),
            "Another group has a router already; a service has one router.",
            "Keep one of them.",
            at_key=True,
        )
    for number in routers:
        if groups[number].replicas != Range(1, 1):
            yield Problem(
                "contradiction",
                (field, number, "replicas"),
                "A group with a router has one replica.",
                "Write `replicas: 1`.",
            )


def group_sources(groups: Sequence[ReplicaGroup], field: str = "groups") -> Iterator[Problem]:
    """Two sources of one group's container."""
    for number, group in enumerate(groups):
        said = {name for name in group.model_fields_set if getattr(group, name)}
        yield from source_problems(said.__contains__, (field, number))
        if group.docker and group.privileged is False:
            yield Problem(
                "contradiction",
                (field, number, "privileged"),
                "Starting containers requires all privileges of the host, but `privileged` is `false`.",
                "Remove one of the two.",
                at_key=True,
            )
