"""
Which offers of clouds will do: for fleets that are made of them, and for profiles of runs.

A backend is named by its type, `aws`, or by the name of a document that declares one. A type
needs no document: most clouds are reached with the credentials that their own tools use.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

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


def _listed(what: str) -> tuple[BeforeValidator, AfterValidator]:
    """`regions: eu-west-1` as a list of one, each entry once, in order of the alphabet."""
    return (
        BeforeValidator(one_or_many, json_schema_input_type=str | Entries[str]),
        AfterValidator(each_once(what)),
    )


Names = Annotated[tuple[Name, ...], Field(min_length=1), *_listed("name")]
"""One name, or several; their order means nothing."""
Texts = Annotated[tuple[Text, ...], Field(min_length=1), *_listed("entry")]
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
]
"""Dollars, held as micro-dollars."""

Offable = Annotated[
    int,
    PlainValidator(lambda value: parse_duration(value, off=True)),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": -1, "description": "Seconds."},
                {"type": "string", "examples": ["5m", "2h", "1d"], "minLength": 1},
                {"enum": ["off", False]},
            ]
        }
    ),
]
"""A duration or `off`, where `off` is not what leaving the field out would mean."""


class BackendOptions(Model):
    """What only one backend knows."""

    type: Literal["vastai"]
    """The backend's type. `vastai`: the market of that name. Example: `vastai`."""

    offer_order: Literal["price", "score"] | None = None
    """
    Which offers come first. `price`: the cheapest. `score`: those that the market thinks best.
    Example: `score`.
    """

    min_reliability: Annotated[float, Field(ge=0, le=1)] | None = None
    """The least part of the time that a host was reachable. Example: `0.98`."""

    min_score: Whole | None = None
    """The least score of a host. Example: `300`."""

    def to_canonical(self) -> dict[str, object]:
        canonical = super().to_canonical()
        if self.min_reliability is not None:
            # Canonical numbers are whole; the market counts in no finer steps than this.
            canonical["min_reliability"] = round(self.min_reliability * 1_000_000)
        return canonical


class OfferChoice(Document):
    """A document that says which offers will do."""

    backends: Names | None = None
    """
    Where hosts may come from: types of backends, or names of declared ones. All that are
    declared, if not said. Example: `[aws, gcp]`.
    """

    regions: Texts | None = None
    """Regions, by the names that their backend gives them. Example: `[eu-west-1]`."""

    availability_zones: Texts | None = None
    """Zones inside of regions. Example: `[eu-west-1a]`."""

    instance_types: Texts | None = None
    """Instance types, by the names that their backend gives them. Example: `[p4d.24xlarge]`."""

    reservation: Text | None = None
    """Capacity that was reserved with the cloud, by its id there. Example: `cr-0f1e2d3c4b5a69788`."""

    spot_policy: Literal["spot", "on-demand", "auto"] | None = None
    """
    Whether a host may be taken back by its cloud at any time. `spot`: only such hosts, which
    cost less. `on-demand`: none of them. `auto`: either, the cheaper first. Example: `auto`.
    """

    max_price: Price | None = None
    """The most that one host may cost, in dollars an hour. Example: `2.5`."""

    idle_duration: Offable | None = None
    """How long a host is kept on which nothing runs; `off`: for ever. Example: `1h`, `off`."""

    backend_options: (
        Annotated[
            tuple[BackendOptions, ...],
            Field(min_length=1),
            BeforeValidator(
                one_or_many, json_schema_input_type=BackendOptions | Entries[BackendOptions]
            ),
        ]
        | None
    ) = None
    """What only one backend knows. Example: `[{type: vastai, min_reliability: 0.98}]`."""
