"""
Probes: requests that tell whether a replica works.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.amounts import Duration
from fleetform.spec.kinds.base import Flag, Model, Whole, one_or_many, refuse
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
    """Its name. Example: `X-Probe`."""

    value: Annotated[str, Field(min_length=1, max_length=2048)]
    """What it says. Example: `fleetform`."""


class Probe(Model):
    """A request that a working replica answers with success."""

    type: Literal["http"]
    """How is asked. Example: `http`."""

    url: Annotated[str, Field(max_length=2048), AfterValidator(_url)] | None = None
    """The path, `/` if not said. Example: `/health`."""

    method: Literal["get", "post", "put", "delete", "patch", "head"] | None = None
    """The request's method, `get` if not said. Example: `post`."""

    headers: Annotated[tuple[Header, ...], Field(max_length=16)] | None = None
    """Headers of the request. Example: `[{name: X-Probe, value: fleetform}]`."""

    body: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    """What is sent; not with `get` and `head`. Example: `ping`."""

    timeout: Annotated[Duration, AfterValidator(_second)] | None = None
    """How long the answer may take, 10 seconds if not said. Example: `5s`."""

    interval: Annotated[Duration, AfterValidator(_second)] | None = None
    """From one answer to the next request, 15 seconds if not said. Example: `30s`."""

    ready_after: Annotated[Whole, Field(ge=1)] | None = None
    """How many successes in a row make a replica ready, 1 if not said. Example: `3`."""

    until_ready: Flag | None = None
    """Whether nothing is asked any more once it is ready. Example: `true`."""


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
                "said-twice", ("probes", number), "The same probe stands above.", "Remove one."
            )
