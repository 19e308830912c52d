"""Probes of a service: requests that a working replica answers with success."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Flag, Model, Whole, one_or_many, refuse
from fleetform.spec.kinds.resources import Duration
from fleetform.spec.quantities.ranges import shown


def _url(value: str) -> str:
    if not value.startswith("/") or not value.isprintable():
        raise refuse(
            "bad-path",
            f"{shown(value)} is not a path of the service.",
            "Begin with `/`: the host and the port are the replica's own.",
        )
    return value


def _second(value: int) -> int:
    if value < 1:
        raise ValueError("It is too short; the least is `1s`.")
    return value


class Header(Model):
    """A header of the request."""

    name: Annotated[str, Field(min_length=1, max_length=256)]
    """The name of the header. Example: `X-Probe`."""

    value: Annotated[str, Field(min_length=1, max_length=2048)]
    """The value of the header. Example: `fleetform`."""


class Probe(Model):
    """A request that a working replica answers with success."""

    type: Literal["http"]
    """The protocol of the request. Example: `http`."""

    url: Annotated[str, Field(max_length=2048), AfterValidator(_url)] | None = None
    """The path. Default: `/`. Example: `/health`."""

    method: Literal["get", "post", "put", "delete", "patch", "head"] | None = None
    """The HTTP method. Default: `get`. Example: `post`."""

    headers: Annotated[tuple[Header, ...], Field(max_length=16)] | None = None
    """The headers of the request. Default: none. Example: `[{name: X-Probe, value: fleetform}]`."""

    body: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    """The body of the request; not with `get` and `head`. Example: `ping`."""

    timeout: Annotated[Duration, AfterValidator(_second)] | None = None
    """How long the answer may take. Default: 10 seconds. Example: `5s`."""

    interval: Annotated[Duration, AfterValidator(_second)] | None = None
    """The time between an answer and the next request. Default: 15 seconds. Example: `30s`."""

    ready_after: Annotated[Whole, Field(ge=1)] | None = None
    """The number of consecutive successes that make a replica ready. Default: 1. Example: `3`."""

    until_ready: Flag | None = None
    """Whether probing ends once the replica is ready. Default: `false`. Example: `true`."""


def _check_probe(value: Probe) -> Probe:
    if value.body is not None and (value.method or "get") in {"get", "head"}:
        raise refuse(
            "contradiction",
            f"A request with `{value.method or 'get'}` has no body.",
            "Add `method: post`, or remove `body`.",
        )
    return value


Probes = Annotated[
    tuple[Annotated[Probe, AfterValidator(_check_probe)], ...],
    BeforeValidator(one_or_many, json_schema_input_type=Probe | list[Probe]),
]


def probe_problems(probes: Sequence[Probe]) -> Iterator[Problem]:
    """One probe twice."""
    for number, probe in enumerate(probes):
        if probe in probes[:number]:
            yield Problem(
                "said-twice",
                ("probes", number),
                "The same probe is already in the list.",
                "Remove one.",
            )
