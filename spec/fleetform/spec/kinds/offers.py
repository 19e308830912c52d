"""
Where a run may start: offers of clouds, fleets and hosts.

A backend is named by its type, `aws`, or by the name of a document that declares one. A type
needs no document: most clouds are reached with the credentials that their own tools use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.field_facts import OnChange, control, execution, of_hosts, per_kind, unit
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    Document,
    Entries,
    Model,
    Name,
    Whole,
    each_once,
    listed,
    one_or_many,
    read_by,
    refuse,
    storable,
)
from fleetform.spec.kinds.cloud_names import unknown_regions, unknown_types
from fleetform.spec.kinds.resources import TIME_OR_OFF, decimal
from fleetform.spec.names import NAME, name_problem
from fleetform.spec.quantities import parse_duration
from fleetform.spec.quantities.price import parse_price
from fleetform.spec.quantities.ranges import EXPRESSION, exact_text, shown, unfit

Text = Annotated[str, Field(min_length=1, max_length=4000), AfterValidator(storable)]
"""A name from another party: of a region, an instance type, an account."""


Names = Annotated[tuple[Name, ...], *listed(Name, "name")]
"""One name, or several; their order means nothing."""
Texts = Annotated[tuple[Text, ...], *listed(Text, "entry")]
"""The same of names that others gave."""

Price = Annotated[
    int,
    *read_by(parse_price, decimal(r"^\s*\$?\s*[0-9]+(\.[0-9]{1,6})?\s*\$?\s*$"), "micro-dollars"),
]
"""Dollars, held as micro-dollars."""

Offable = Annotated[
    int, *read_by(lambda value: parse_duration(value, off=True), TIME_OR_OFF, "seconds")
]
"""A duration or `off`, where `off` is not what leaving the field out would mean."""


class BackendOptions(Model):
    """Options that only one backend has."""

    type: Literal["vastai"]
    """The type of the backend. `vastai`: options of Vast.ai. Example: `vastai`."""

    offer_order: Literal["price", "score"] | None = None
    """
    The order of the offers. `price`: the cheapest first. `score`: the highest score of the
    marketplace first. Example: `score`.
    """

    min_reliability: Annotated[float, Field(ge=0, le=1), unit("millionths")] | None = None
    """
    The least reliability of a host, from 0 to 1: the share of time in which it was reachable.
    Example: `0.98`.
    """

    min_score: Whole | None = None
    """The least score of a host. Example: `300`."""

    def to_canonical(self) -> dict[str, object]:
        canonical = super().to_canonical()
        if self.min_reliability is not None:
            # Canonical numbers are whole; the market counts in no finer steps than this.
            canonical["min_reliability"] = round(self.min_reliability * 1_000_000)
        return canonical


# What a run takes over from a profile is judged as a field of the run.
_LENT = control("spec.overlay")
_BACKENDS = per_kind(run=execution(), fleet=control("plan"), profile=_LENT)
_OFFER = per_kind(run=execution(), fleet=of_hosts("plan", OnChange.UNFIT_HOSTS), profile=_LENT)
_RESERVED = per_kind(run=execution(), fleet=of_hosts("providers"), profile=_LENT)
# Nothing creates other hosts for a run, and nobody takes back those that are there.
_UPKEEP = per_kind(run=control(essential=False), fleet=control(), profile=_LENT)


class OfferChoice(Document):
    """The fields that choose among the offers of backends."""

    backends: Annotated[Names | None, _BACKENDS] = None
    """
    The backends that may provide hosts, by type or by the name of a declared backend. Default: all
    declared backends. Example: `[aws, gcp]`.
    """

    regions: Annotated[Texts | None, _OFFER] = None
    """
    The regions that may be used, by the names of the backend. Default: all regions of the backend.
    Example: `[eu-west-1]`.
    """

    availability_zones: Annotated[Texts | None, _OFFER] = None
    """The availability zones that may be used. Default: all zones. Example: `[eu-west-1a]`."""

    instance_types: Annotated[Texts | None, _OFFER] = None
    """
    The instance types that may be used, by the names of the backend. Default: all types that
    satisfy the resources. Example: `[p4d.24xlarge]`.
    """

    reservation: Annotated[Text | None, _RESERVED] = None
    """
    The id of a capacity reservation at the cloud; a fleet needs one zone and one instance type for it.
    Default: none. Example: `cr-0f1e2d3c4b5a69788`.
    """

    spot_policy: Annotated[
        Literal["spot", "on-demand", "auto"] | None,
        per_kind(
            run=execution(essential=False, default="on-demand"),
            fleet=of_hosts("plan", OnChange.NEW_HOSTS, default="on-demand"),
            profile=_LENT,
        ),
    ] = None
    """
    Whether to use spot instances, which cost less and which the cloud may take back at any time.
    `spot`: only spot instances. `on-demand`: no spot instances. `auto`: either, the cheaper first.
    Example: `auto`.
    """

    max_price: Annotated[
        Price | None,
        per_kind(
            run=control(essential=False),
            fleet=of_hosts("plan", OnChange.NEW_HOSTS),
            profile=_LENT,
        ),
    ] = None
    """The highest price of one host, in US dollars per hour. Default: no limit. Example: `2.5`."""

    idle_duration: Annotated[
        Offable | None,
        per_kind(run=control(essential=False), fleet=control("schedule"), profile=_LENT),
    ] = None
    """
    How long a host without jobs is kept in a fleet whose `nodes` are a range; as many as its least
    number stay. `off`: it is kept without limit. Default: `5m`. Example: `1h`, `off`.
    """

    backend_options: (
        Annotated[tuple[BackendOptions, ...], *listed(BackendOptions), _UPKEEP] | None
    ) = None
    """Options that only one backend has. Example: `[{type: vastai, min_reliability: 0.98}]`."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        # Other clouds have other names; a fleet with `aws` is there without `backends`.
        if self.backends == ("aws",) or getattr(self, "aws", None) is not None:
            yield from unknown_regions("regions", self.regions or ())
            yield from unknown_types(self.instance_types or (), self.regions or ())


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
    *listed(str | InstanceSelector),
]
