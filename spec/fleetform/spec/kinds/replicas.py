"""The replicas of a service: how many there are, when they scale, and their groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict

from fleetform.spec.field_facts import control
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    Flag,
    Model,
    add_spellings,
    contradiction,
    listed,
    read_by,
    refuse,
)
from fleetform.spec.kinds.commands import Commands
from fleetform.spec.kinds.container import Image, Python, source_problems
from fleetform.spec.kinds.groups import GroupName
from fleetform.spec.kinds.offers import Text
from fleetform.spec.kinds.rate_limits import Rate
from fleetform.spec.kinds.resources import COUNT, WHOLE, Duration, Resources, text
from fleetform.spec.quantities import Range, parse_int_range
from fleetform.spec.quantities.ranges import DIGITS

# dstack keeps counts for these three and no others.
WINDOWS_SECONDS = (30, 60, 300)


def _window(value: int) -> int:
    if value not in WINDOWS_SECONDS:
        listed = ", ".join(f"`{seconds}s`" for seconds in WINDOWS_SECONDS)
        raise ValueError(f"Requests are counted over one of {listed}.")
    return value


class Scaling(Model):
    """When replicas are added and removed."""

    metric: Literal["rps"]
    """The metric. `rps`: requests per second. Example: `rps`."""

    target: Rate
    """The value of the metric per replica. Example: `10`."""

    window: Annotated[Duration, AfterValidator(_window)] | None = None
    """The period over which the metric is measured: `30s`, `60s` or `300s`. Example: `60s`."""

    scale_up_delay: Duration | None = None
    """
    The least time between a change of the number of replicas and adding a replica. Example: `5m`.
    """

    scale_down_delay: Duration | None = None
    """
    The least time between a change of the number of replicas and removing a replica. Example:
    `10m`.
    """


# Groups of equal replicas of a service.


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
    *read_by(
        _replicas,
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
        },
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
    add_spellings(schema, count="replicas")
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
    tuple[Annotated[ReplicaGroup, BeforeValidator(_group)], ...], *listed(ReplicaGroup)
]


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
        yield contradiction(
            (*above, "scaling"),
            "`scaling` changes the number of replicas, and `replicas` is one number.",
            "Write a range, such as `replicas: 1..4`, or remove `scaling`.",
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
            yield contradiction(
                (field, number, "privileged"),
                "Starting containers requires all privileges of the host, but `privileged` is `false`.",
                "Remove one of the two.",
            )
