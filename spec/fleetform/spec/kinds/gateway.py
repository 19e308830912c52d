"""
A gateway: where services are reached from outside, under names of one's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Document, Flag, Model, Name, Whole, refuse
from fleetform.spec.kinds.offers import Text
from fleetform.spec.quantities.ranges import shown

_DOMAIN = re.compile(
    r"(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}", re.IGNORECASE
)


# The project's name is a part of the domain's, or the whole of one.
_PROJECT = re.compile(r"\$\{\{\s*run\.project_name\s*\}\}", re.ASCII)


def _domain(value: str) -> str:
    if _DOMAIN.fullmatch(_PROJECT.sub("x", value)):
        return value.lower().removeprefix("*.")
    bare = re.sub(r"^https?://", "", value).rstrip("/.")
    advice = f"Write {shown(bare)}." if bare != value and _DOMAIN.fullmatch(bare) else ""
    raise refuse("bad-value", f"{shown(value)} is not a domain.", advice)


class Certificate(Model):
    """Where the certificate for the gateway's domain comes from."""

    type: Literal["lets-encrypt", "acm", "gcp-cm", "off"]
    """
    Who issued it. `lets-encrypt`: asked for and renewed by the gateway. `acm`: kept by AWS
    Certificate Manager. `gcp-cm`: kept by Google's Certificate Manager. `off`: there is none, and
    services are reached by plain HTTP. Example: `lets-encrypt`.
    """

    arn: Text | None = None
    """Which one, of `acm`. Example: `arn:aws:acm:eu-west-1:123456789012:certificate/0f1e2d3c`."""

    name: Text | None = None
    """Which one, of `gcp-cm`. Example: `gateway`."""


_NEEDS = {"acm": "arn", "gcp-cm": "name"}


class LoadBalancer(Model):
    """What stands in front of the gateway's replicas."""

    type: Literal["alb"]
    """Its make. `alb`: an Application Load Balancer of AWS. Example: `alb`."""


class Router(Model):
    """What chooses the replica that answers a request."""

    type: Literal["sglang"]
    """Its make. `sglang`: the router of SGLang. Example: `sglang`."""

    policy: Literal["random", "round_robin", "cache_aware", "power_of_two"] | None = None
    """
    How it chooses. `random`: by chance. `round_robin`: in turn. `cache_aware`: the one that has
    seen the beginning of the prompt. `power_of_two`: the less busy one of two.
    Example: `cache_aware`.
    """


def _certificate(value: Any) -> Any:
    # dstack spells "no certificate" as null; nobody who leaves the field out means that.
    return {"type": "off"} if value in (None, False, "off") else value


class Gateway(Document):
    """
    Where services are reached from outside.

    Example:
        type: gateway
        name: public
        backend: aws
        region: eu-west-1
        domain: "*.models.example.com"
    """

    type: Literal["gateway"]
    """The kind of the document: `gateway`."""

    backend: Name
    """
    Where its host is: a type of backend, or the name of a declared one. Example: `aws`.
    """

    region: Text
    """The region that it stands in. Example: `eu-west-1`."""

    instance_type: Text | None = None
    """What it runs on; the smallest that will do, if not said. Example: `t3.small`."""

    domain: Annotated[str, AfterValidator(_domain)] | None = None
    """
    The domain below which services have names, with or without `*.` in front; its DNS entry has
    to lead to the gateway. `${{ run.project_name }}` is the name of the service's project.
    Example: `models.example.com`.
    """

    default: Flag | None = None
    """Whether services that name no gateway are reached through this one. Example: `true`."""

    public_ip: Flag | None = None
    """Whether it can be reached from everywhere, or from its own network only. Example: `false`."""

    certificate: Annotated[
        Certificate | None,
        BeforeValidator(
            _certificate, json_schema_input_type=Certificate | Literal["off", False] | None
        ),
    ] = None
    """
    Where its certificate comes from; Let's Encrypt if not said. `off`, or no value, is plain HTTP.
    Example: `{type: lets-encrypt}`, `off`.
    """

    load_balancer: LoadBalancer | None = None
    """What stands in front of it. Example: `{type: alb}`."""

    router: Router | None = None
    """What chooses among replicas. Example: `{type: sglang, policy: cache_aware}`."""

    replicas: Annotated[Whole, Field(ge=1, le=100)] | None = None
    """How many hosts it has; one if not said. Example: `2`."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.certificate is not None:
            yield from self._certificate_problems(self.certificate)

    @staticmethod
    def _certificate_problems(certificate: Certificate) -> Iterator[Problem]:
        needed = _NEEDS.get(certificate.type)
        if needed and getattr(certificate, needed) is None:
            yield Problem(
                "missing-field",
                ("certificate",),
                f"`{needed}` is missing: which certificate of `{certificate.type}` it is.",
                f"Add `{needed}:`.",
                at_key=True,
            )
        for name in sorted({"arn", "name"} - {needed}):
            if getattr(certificate, name) is not None:
                yield Problem(
                    "contradiction",
                    ("certificate", name),
                    f"`{name}` does not go with a certificate of `{certificate.type}`.",
                    "Remove it.",
                    at_key=True,
                )
