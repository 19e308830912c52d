"""
Which offers of clouds will do: for fleets that are made of them, and for profiles of runs.

A backend is named by its type, `aws`, or by the name of a document that declares one. A type
needs no document: most clouds are reached with the credentials that their own tools use.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from fleetform.spec.field_facts import control, execution, per_kind, unit
from fleetform.spec.kinds.amount_schemas import TIME_OR_OFF
from fleetform.spec.kinds.base import (
    Document,
    Entries,
    Model,
    Name,
    Whole,
    each_once,
    one_or_many,
    storable,
)
from fleetform.spec.quantities import parse_duration
from fleetform.spec.quantities.price import parse_price

Text = Annotated[str, Field(min_length=1, max_length=4000), AfterValidator(storable)]
"""A name that somebody else gave: of a region, an instance type, an account."""


def _listed(entry: Any, what: str) -> tuple[BeforeValidator, AfterValidator]:
    """`regions: eu-west-1` as a list of one, each entry once, in order of the alphabet."""
    return (
        BeforeValidator(one_or_many, json_schema_input_type=entry | Entries[entry]),
        AfterValidator(each_once(what)),
    )


Names = Annotated[tuple[Name, ...], Field(min_length=1), *_listed(Name, "name")]
"""One name, or several; their order means nothing."""
Texts = Annotated[tuple[Text, ...], Field(min_length=1), *_listed(Text, "entry")]
"""The same of names that others gave."""

Price = Annotated[
    int,
    PlainValidator(parse_price),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": r"^\s*\$?\s*[0-9]+(\.[0-9]{1,6})?\s*\$?\s*$"},
                {"type": "string", "pattern": r"\$\{\{"},
            ]
        }
    ),
    unit("micro-dollars"),
]
"""Dollars, held as micro-dollars."""

Offable = Annotated[
    int,
    PlainValidator(lambda value: parse_duration(value, off=True)),
    WithJsonSchema(TIME_OR_OFF),
    unit("seconds"),
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
_OFFER = per_kind(run=execution(), fleet=control(), profile=_LENT)
# Nothing creates other hosts for a run, and nobody takes back those that are there.
_UPKEEP = per_kind(run=control(essential=False), fleet=control(), profile=_LENT)


class OfferChoice(Document):
    """The fields that choose among the offers of backends."""

    backends: Annotated[Names | None, _OFFER] = None
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

    reservation: Annotated[Text | None, _OFFER] = None
    """
    The id of a capacity reservation at the cloud. Default: none. Example: `cr-0f1e2d3c4b5a69788`.
    """

    spot_policy: Annotated[
        Literal["spot", "on-demand", "auto"] | None,
        per_kind(
            run=execution(essential=False, default="on-demand"), fleet=control(), profile=_LENT
        ),
    ] = None
    """
    Whether to use spot instances, which cost less and which the cloud may take back at any time.
    `spot`: only spot instances. `on-demand`: no spot instances. `auto`: either, the cheaper first.
    Example: `auto`.
    """

    max_price: Annotated[Price | None, _UPKEEP] = None
    """The highest price of one host, in US dollars per hour. Default: no limit. Example: `2.5`."""

    idle_duration: Annotated[Offable | None, _UPKEEP] = None
    """
    How long a host without jobs is kept. `off`: it is kept without limit. Example: `1h`, `off`.
    """

    backend_options: (
        Annotated[
            tuple[BackendOptions, ...],
            Field(min_length=1),
            BeforeValidator(
                one_or_many, json_schema_input_type=BackendOptions | Entries[BackendOptions]
            ),
            _UPKEEP,
        ]
        | None
    ) = None
    """Options that only one backend has. Example: `[{type: vastai, min_reliability: 0.98}]`."""
