"""
Where a run may be placed: fleets, single hosts, and how its nodes lie to each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.kinds.base import Entries, Model, Name, Whole, each_once, one_or_many, refuse
from fleetform.spec.kinds.offers import Text
from fleetform.spec.names import NAME, name_problem
from fleetform.spec.quantities.patterns import EXPRESSION, exact_text
from fleetform.spec.quantities.ranges import shown, unfit

_PARTS = ("project", "name")


def _reference(value: Any, what: str) -> str:
    """`name`, `project/name` or a mapping of the two, as text."""
    if isinstance(value, Mapping):
        unknown = [key for key in value if key not in _PARTS]
        if unknown or not isinstance(value.get("name"), str):
            raise refuse(
                "wrong-type",
                f"A reference to a {what} has `name`, and `project` for that of another project.",
                "Write for example `{project: vision, name: gpus}`, or `vision/gpus`.",
            )
        parts = [str(value[key]) for key in _PARTS if value.get(key) is not None]
    elif isinstance(value, str):
        parts = value.split("/")
    else:
        raise refuse("wrong-type", str(unfit(value, f"a {what}'s name")))
    if len(parts) > len(_PARTS):
        raise refuse(
            "bad-name",
            f"{shown(value)} has more than a project and a name.",
            "Write `NAME`, or `PROJECT/NAME`.",
        )
    for part in parts:
        problem = name_problem(part)
        if problem is not None:
            raise refuse("bad-name", problem)
    return "/".join(parts)


class FleetReference(Model):
    """A fleet, possibly of another project."""

    project: Name | None = None
    """The project of the fleet. Default: the project of the run. Example: `vision`."""

    name: Name
    """The name of the fleet. Example: `gpus`."""


def _fleet(value: Any) -> str:
    return _reference(value, "fleet")


def _gateway(value: Any) -> Any:
    """A gateway's name, or whether there is one at all."""
    return value if isinstance(value, bool) else _reference(value, "gateway")


ReferenceText = Annotated[
    str,
    Field(pattern=f"{exact_text(f'(?:{NAME.pattern}/)?{NAME.pattern}')}|{EXPRESSION}"),
]
"""What a schema says of `NAME` or `PROJECT/NAME`."""


class GatewayReference(Model):
    """A gateway, possibly of another project."""

    project: Name | None = None
    """The project of the gateway. Default: the project of the service. Example: `vision`."""

    name: Name
    """The name of the gateway. Example: `public`."""


Gateway = Annotated[
    bool | str,
    BeforeValidator(_gateway, json_schema_input_type=bool | ReferenceText | GatewayReference),
]

FleetName = Annotated[
    str, BeforeValidator(_fleet, json_schema_input_type=ReferenceText | FleetReference)
]

Fleets = Annotated[
    tuple[FleetName, ...],
    Field(min_length=1),
    BeforeValidator(
        one_or_many,
        json_schema_input_type=ReferenceText
        | FleetReference
        | Entries[ReferenceText | FleetReference],
    ),
    AfterValidator(each_once("fleet")),
]


class InstanceSelector(Model):
    """An existing host: by `name`, by `hostname`, or by `fleet` and `instance`."""

    name: Text | None = None
    """The name of the instance. Example: `gpus-0`."""

    hostname: Text | None = None
    """The host name or address. Example: `gpu-node01.example.com`."""

    fleet: FleetName | None = None
    """The fleet of the instance; requires `instance`. Example: `gpus`."""

    instance: Whole | None = None
    """The number of the instance within the fleet, from 0. Example: `0`."""


def _selector(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) and value else value


def _check_selector(value: InstanceSelector) -> InstanceSelector:
    said = frozenset(value.to_canonical())
    if said not in {frozenset({"name"}), frozenset({"hostname"}), frozenset({"fleet", "instance"})}:
        raise refuse(
            "contradiction",
            "A host is named by `name`, by `hostname`, or by `fleet` and `instance`.",
            "Keep one of the three.",
        )
    return value


Instances = Annotated[
    tuple[
        Annotated[InstanceSelector, BeforeValidator(_selector), AfterValidator(_check_selector)],
        ...,
    ],
    Field(min_length=1),
    BeforeValidator(
        one_or_many, json_schema_input_type=str | InstanceSelector | Entries[str | InstanceSelector]
    ),
]
