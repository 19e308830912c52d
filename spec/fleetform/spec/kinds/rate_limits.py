"""Limits on the rate of requests to a service, and the rate itself: requests a second."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Model, Whole, one_or_many, read_by, refuse
from fleetform.spec.kinds.resources import decimal
from fleetform.spec.quantities.ranges import COUNT_MAX, shown, unfit

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


Rate = Annotated[int, *read_by(parse_rate, decimal(r"^\s*[0-9]+(\.[0-9]+)?\s*$"), "millionths")]
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
