"""
A gateway: the public address of services, under a domain of the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from fleetform.spec.field_facts import control, replaced
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Document, Flag, Model, Name, Whole, contradiction, refuse
from fleetform.spec.kinds.offers import Text
from fleetform.spec.quantities.ranges import exact_text, shown

# The name of the project may be a part of a label, and counts as one letter.
_PROJECT = r"\$\{\{\s*run\.project_name\s*\}\}"
_LETTER = f"(?:[A-Za-z0-9]|{_PROJECT})"
_LETTER_OR_DASH = f"(?:[A-Za-z0-9-]|{_PROJECT})"
_LABEL = f"{_LETTER}(?:{_LETTER_OR_DASH}{{0,61}}{_LETTER})?"
DOMAIN = rf"(?:\*\.)?(?:{_LABEL}\.)+{_LETTER_OR_DASH}{{2,63}}"

_DOMAIN = re.compile(DOMAIN)


def _domain(value: str) -> str:
    if _DOMAIN.fullmatch(value):
        return value.lower().removeprefix("*.")
    bare = re.sub(r"^https?://", "", value).rstrip("/.")
    advice = f"Write {shown(bare)}." if bare != value and _DOMAIN.fullmatch(bare) else ""
    raise refuse("bad-value", f"{shown(value)} is not a domain.", advice)


class Certificate(Model):
    """The certificate of the domain of a gateway."""

    type: Literal["lets-encrypt", "acm", "gcp-cm", "off"]
    """
    The issuer of the certificate. `lets-encrypt`: Let's Encrypt; the gateway requests and renews
    it. `acm`: AWS Certificate Manager. `gcp-cm`: Certificate Manager of Google Cloud. `off`: none;
    services use plain HTTP. Example: `lets-encrypt`.
    """

    arn: Text | None = None
    """
    The ARN of the certificate, with `acm`. Example:
    `arn:aws:acm:eu-west-1:123456789012:certificate/0f1e2d3c`.
    """

    name: Text | None = None
    """The name of the certificate, with `gcp-cm`. Example: `gateway`."""


_NEEDS = {"acm": "arn", "gcp-cm": "name"}


class LoadBalancer(Model):
    """A load balancer in front of the replicas of a gateway."""

    type: Literal["alb"]
    """The load balancer. `alb`: an Application Load Balancer of AWS. Example: `alb`."""


class Router(Model):
    """A router that chooses the replica for each request."""

    type: Literal["sglang"]
    """The router. `sglang`: the router of SGLang. Example: `sglang`."""

    policy: Literal["random", "round_robin", "cache_aware", "power_of_two"] | None = None
    """
    How the router chooses. `random`: at random. `round_robin`: in turn. `cache_aware`: the replica
    that has cached the beginning of the prompt. `power_of_two`: the less loaded one of two random
    replicas. Example: `cache_aware`.
    """


def _certificate(value: Any) -> Any:
    # dstack writes null for "no certificate". A field that is left out means the default.
    return {"type": "off"} if value is None or value is False or value == "off" else value


class Gateway(Document):
    """
    The public address of services.

    Example:
        type: gateway
        name: public
        backend: aws
        region: eu-west-1
        domain: "*.models.example.com"
    """

    type: Literal["gateway"]
    """The kind of the document: `gateway`."""

    backend: Annotated[Name, replaced()]
    """
    The backend of the gateway's host, by type or by the name of a declared backend. Example: `aws`.
    """

    region: Annotated[Text, replaced()]
    """The region of the gateway's host. Example: `eu-west-1`."""

    instance_type: Annotated[Text | None, replaced()] = None
    """
    The instance type of the gateway's host. Default: the smallest that suffices. Example:
    `t3.small`.
    """

    domain: (
        Annotated[
            str,
            AfterValidator(_domain),
            WithJsonSchema({"type": "string", "pattern": exact_text(DOMAIN)}),
            control(),
        ]
        | None
    ) = None
    """
    The domain under which services get their names, with or without a leading `*.`. Its DNS record
    must point to the gateway. `${{ run.project_name }}` is the project of the service. Example:
    `models.example.com`.
    """

    default: Annotated[Flag | None, control()] = None
    """Whether services that name no gateway use this one. Default: `false`. Example: `true`."""

    public_ip: Annotated[Flag | None, replaced(default=True)] = None
    """
    Whether the gateway has a public address. `false`: only its own network can reach it. Example:
    `false`.
    """

    certificate: Annotated[
        Certificate | None,
        BeforeValidator(
            _certificate, json_schema_input_type=Certificate | Literal["off", False] | None
        ),
        control(),
    ] = None
    """
    The certificate of the domain. `off` or null: plain HTTP. Default: Let's Encrypt. Example:
    `{type: lets-encrypt}`, `off`.
    """

    load_balancer: Annotated[LoadBalancer | None, replaced()] = None
    """A load balancer in front of the gateway. Default: none. Example: `{type: alb}`."""

    router: Annotated[Router | None, control()] = None
    """
    A router that chooses among the replicas. Default: none. Example: `{type: sglang, policy:
    cache_aware}`.
    """

    replicas: Annotated[Whole, Field(ge=1, le=100), control(default=1)] | None = None
    """Number of hosts of the gateway. Default: 1. Example: `2`."""

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
                yield contradiction(
                    ("certificate", name),
                    f"`{name}` does not go with a certificate of `{certificate.type}`.",
                    "Remove it.",
                )
