"""Requests to a service: probes, rate limits, and scaling by their number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from fleetform.spec.field_facts import unit
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.amounts import Duration
from fleetform.spec.kinds.base import Flag, Model, Whole, one_or_many, refuse
from fleetform.spec.quantities.ranges import COUNT_MAX, shown, unfit


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


MICRO = 1_000_000
# One in a minute, and a billion in a second: outside of these it was meant in another unit.
_RATE_MIN = MICRO // 60
_RATE_MAX = 10**9 * MICRO
_RATE = re.compile(r"\d{1,10}(?:\.\d+)?", re.ASCII)


def parse_rate(value: Any) -> int:
    """Read requests a second, in millionths."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise unfit(value, "requests a second, such as 10")
    if isinstance(value, int) and abs(value) > COUNT_MAX:
        raise ValueError("The number is too large.")
    text = value.strip() if isinstance(value, str) else f"{Decimal(repr(value)):f}"
    if not _RATE.fullmatch(text):
        raise ValueError(f"{shown(value)} is not a number of requests a second, such as 10 or 0.5.")
    rate = int(Decimal(text) * MICRO)
    if not _RATE_MIN <= rate <= _RATE_MAX:
        raise ValueError(
            f"{shown(value)} requests a second cannot be counted; the least is one in a minute,"
            " 0.016667."
        )
    return rate


Rate = Annotated[
    int,
    PlainValidator(parse_rate),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*$"},
                {"type": "string", "pattern": r"\$\{\{"},
            ]
        }
    ),
    unit("millionths"),
]
"""Requests a second, held in millionths."""


class HeaderKey(Model):
    """The key by which requests are counted."""

    type: Literal["ip_address", "header"]
    """
    `ip_address`: the address of the client. `header`: the value of a header. Example: `header`.
    """

    header: Annotated[str, Field(max_length=500)] | None = None
    """The name of the header. Example: `X-API-Key`."""


def _check_key(value: HeaderKey) -> HeaderKey:
    if value.type == "header" and value.header is None:
        raise refuse("missing-field", "`header` is missing.", "Add `header: X-API-Key`.")
    if value.header is not None and value.type != "header":
        raise refuse("contradiction", "`header` goes with `type: header`.", "Remove it.")
    # It becomes part of a proxy's configuration.
    if value.header is not None and not re.fullmatch(r"[A-Za-z0-9_-]+", value.header, re.ASCII):
        raise refuse(
            "bad-value",
            f"{shown(value.header)} is no header's name.",
            "Use letters, digits, `-` and `_`.",
        )
    return value


def _prefix(value: str) -> str:
    # As above: neither spaces nor braces can be part of a proxy's configuration.
    if not re.fullmatch(r"/[^\s\\{}]*", value):
        raise refuse(
            "bad-path",
            f"{shown(value)} is not the beginning of a path.",
            "Begin with `/`, and use neither spaces nor braces.",
        )
    return value


class RateLimit(Model):
    """A limit on the rate of requests."""

    prefix: Annotated[str, Field(max_length=4000), AfterValidator(_prefix)] | None = None
    """
    The path prefix to which the limit applies. Of several matching prefixes, the longest applies.
    Default: all paths. Example: `/api/`.
    """

    key: Annotated[HeaderKey, AfterValidator(_check_key)] | None = None
    """
    The key by which requests are counted. Default: the address of the client. Example: `{type:
    header, header: X-API-Key}`.
    """

    rps: Rate
    """The number of requests per second. Example: `10`, `0.5`."""

    burst: Whole | None = None
    """The number of requests that may exceed the rate at a time. Example: `20`."""


RateLimits = Annotated[
    tuple[RateLimit, ...],
    BeforeValidator(one_or_many, json_schema_input_type=RateLimit | list[RateLimit]),
]


def rate_limit_problems(limits: Sequence[RateLimit]) -> Iterator[Problem]:
    """Two limits for one prefix."""
    seen: set[str] = set()
    for number, limit in enumerate(limits):
        prefix = limit.prefix or "/"
        if prefix in seen:
            yield Problem(
                "said-twice",
                ("rate_limits", number),
                f"Two limits hold for {shown(prefix)}.",
                "Keep one of them.",
            )
        seen.add(prefix)


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
