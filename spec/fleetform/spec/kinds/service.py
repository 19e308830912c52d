"""A service: replicas that answer requests until they are stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)

from fleetform.spec.field_facts import control, execution
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    FORM,
    Flag,
    Model,
    Whole,
    add_spellings,
    contradiction,
    listed,
    one_or_many,
    read_by,
    refuse,
)
from fleetform.spec.kinds.commands import Commands
from fleetform.spec.kinds.container import SOURCES, Image, Python, source_problems
from fleetform.spec.kinds.groups import GroupName, name_problems, only_in_groups
from fleetform.spec.kinds.offers import Gateway, Text
from fleetform.spec.kinds.ports import ServicePort
from fleetform.spec.kinds.resources import COUNT, WHOLE, Duration, Resources, decimal, text
from fleetform.spec.kinds.run import Run
from fleetform.spec.quantities import Range, parse_int_range
from fleetform.spec.quantities.ranges import COUNT_MAX, DIGITS, shown, unfit

# Requests to a service: probes, rate limits, and scaling by their number.


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


# Groups of equal replicas of a service.


def _replicas(value: Any) -> Range:
    count = parse_int_range(value)
    if count.max is None:
        raise ValueError(
            "The largest number of replicas is missing; write for example"
            f" `{count.min}..{(count.min or 0) + 4}`."
        )
    return Range(count.min or 0, count.max)


Replicas = Annotated[
    Range,
    *read_by(
        _replicas,
        {
            "anyOf": [
                WHOLE,
                text(rf"{DIGITS}|(?:{DIGITS})?\s*\.\.\s*{DIGITS}", "2", "0..4"),
                {
                    "type": "object",
                    "properties": {
                        "min": {"anyOf": [*COUNT["anyOf"], {"type": "null"}]},
                        "max": COUNT,
                    },
                    "required": ["max"],
                    "additionalProperties": False,
                },
            ]
        },
    ),
]


class Router(Model):
    """A router that distributes requests among the other groups."""

    type: Literal["smg", "dynamo"] | None = None
    """
    The router. `smg`: the Shepherd Model Gateway. `dynamo`: the frontend of NVIDIA Dynamo. Example:
    `smg`.
    """


class _OldRouter(Model):
    """The name of `smg` in dstack before 0.22.4."""

    type: Literal["sglang"]
    """The same router as `smg`. Example: `sglang`."""


def _router(value: Any) -> Any:
    # What dstack before 0.22.4 called it.
    if isinstance(value, Mapping) and value.get("type") == "sglang":
        return {**value, "type": "smg"}
    return value


def _add_count(schema: dict[str, Any]) -> None:
    add_spellings(schema, count="replicas")
    schema["required"].remove("replicas")
    if not schema["required"]:
        del schema["required"]
    schema["if"] = {"required": ["count"]}
    schema["then"] = {"not": {"required": ["replicas"]}}
    schema["else"] = {"required": ["replicas"]}


class ReplicaGroup(Model):
    """A group of equal replicas of a service."""

    model_config = ConfigDict(json_schema_extra=_add_count)

    name: GroupName | None = None
    """The name of the group. Default: its position in the list, from 0. Example: `prefill`."""

    replicas: Annotated[Replicas, control()]
    """
    Number of replicas, or a range together with `scaling`; `count` is the same field. Example: `2`,
    `0..4`.
    """

    scaling: Annotated[Scaling | None, control()] = None
    """
    When replicas are added and removed within the range of `replicas`. Example: `{metric: rps,
    target: 10}`.
    """

    resources: Resources | None = None
    """
    The resources that each replica requires. Default: `resources` of the service. Example: `{gpu:
    H100:80GB:8}`.
    """

    spot_policy: Literal["spot", "on-demand", "auto"] | None = None
    """
    Whether to use spot instances, which cost less and which the cloud may take back at any time.
    `spot`: only spot instances. `on-demand`: no spot instances. `auto`: either, the cheaper first.
    Example: `auto`.
    """

    reservation: Text | None = None
    """The id of a capacity reservation at the cloud. Example: `cr-0f1e2d3c4b5a69788`."""

    commands: Commands | None = None
    """The commands of each replica. Example: `[python serve.py]`."""

    image: Image | None = None
    """
    The image of the container. Default: `image` of the service. Example: `vllm/vllm-openai:v0.9.0`.
    """

    python: Python | None = None
    """The version of Python in the base image. Example: `"3.12"`."""

    nvcc: Flag | None = None
    """Whether the base image contains the CUDA compiler of NVIDIA. Example: `true`."""

    docker: Flag | None = None
    """Whether the replicas can start containers of their own. Example: `true`."""

    privileged: Flag | None = None
    """Whether the containers have all privileges of the host. Example: `true`."""

    router: (
        Annotated[Router, BeforeValidator(_router, json_schema_input_type=Router | _OldRouter)]
        | None
    ) = None
    """
    Use this group as the router that distributes requests among the other groups. Example: `{type:
    smg}`.
    """


def _group(value: Any) -> Any:
    # What dstack before 0.21 called it.
    if not isinstance(value, Mapping) or "count" not in value:
        return value
    if "replicas" in value:
        raise refuse("said-twice", "`replicas` and `count` are the same field.", "Keep `replicas`.")
    return {"replicas" if key == "count" else key: item for key, item in value.items()}


ReplicaGroups = Annotated[
    tuple[Annotated[ReplicaGroup, BeforeValidator(_group)], ...], *listed(ReplicaGroup)
]


def scaling_problems(
    replicas: Range | None, scaling: Scaling | None, above: tuple[str | int, ...] = ()
) -> Iterator[Problem]:
    """A number that may change needs a rule, and one that may not has none."""
    is_range = replicas is not None and replicas.min != replicas.max
    if is_range and scaling is None:
        yield Problem(
            "missing-field",
            (*above, "replicas"),
            "`replicas` is a range, but there is no `scaling`.",
            "Add `scaling: {metric: rps, target: 10}`, or write one number.",
            for_lack_of=("scaling",),
        )
    if scaling is not None and replicas is not None and not is_range:
        yield contradiction(
            (*above, "scaling"),
            "`scaling` changes the number of replicas, and `replicas` is one number.",
            "Write a range, such as `replicas: 1..4`, or remove `scaling`.",
        )


def router_problems(groups: Sequence[ReplicaGroup], field: str = "groups") -> Iterator[Problem]:
    """More routers than one."""
    routers = [number for number, group in enumerate(groups) if group.router is not None]
    for number in routers[1:]:
        yield Problem(
            "said-twice",
            (field, number, "router"),
            "Another group has a router already; a service has one router.",
            "Keep one of them.",
            at_key=True,
        )
    for number in routers:
        if groups[number].replicas != Range(1, 1):
            yield Problem(
                "contradiction",
                (field, number, "replicas"),
                "A group with a router has one replica.",
                "Write `replicas: 1`.",
            )


def group_sources(groups: Sequence[ReplicaGroup], field: str = "groups") -> Iterator[Problem]:
    """Two sources of one group's container."""
    for number, group in enumerate(groups):
        said = {name for name in group.model_fields_set if getattr(group, name)}
        yield from source_problems(said.__contains__, (field, number))
        if group.docker and group.privileged is False:
            yield contradiction(
                (field, number, "privileged"),
                "Starting containers requires all privileges of the host, but `privileged` is `false`.",
                "Remove one of the two.",
            )


class ChatModel(Model):
    """A language model, and the protocol of its service."""

    type: Literal["chat"] | None = None
    """The type of the model. Example: `chat`."""

    name: Text
    """The name of the model, as clients send it. Example: `meta-llama/Llama-3.1-8B-Instruct`."""

    format: Literal["openai", "tgi"]
    """
    The protocol of the service. `openai`: the API of OpenAI. `tgi`: the API of Text Generation
    Inference. Example: `openai`.
    """

    prefix: Text | None = None
    """The path prefix of the API, with `format: openai`. Default: `/v1`. Example: `/v1`."""

    chat_template: Text | None = None
    """
    The chat template, with `format: tgi`. Default: the template of the model. Example: `"{% for m
    in messages %}{{ m.content }}{% endfor %}"`.
    """

    eos_token: Text | None = None
    """
    The token that ends an answer, with `format: tgi`. Default: the token of the model. Example:
    `</s>`.
    """


def _chat_model(value: Any) -> Any:
    if isinstance(value, str):
        return {"name": value, "format": "openai"}
    if isinstance(value, Mapping | ChatModel):
        return value
    raise refuse("wrong-type", str(unfit(value, "a model's name")))


def _check_chat_model(value: ChatModel) -> ChatModel:
    others = {"openai": ("chat_template", "eos_token"), "tgi": ("prefix",)}[value.format]
    for name in others:
        if getattr(value, name) is not None:
            raise refuse(
                "contradiction",
                f"`{name}` does not go with `format: {value.format}`.",
                "Remove one of the two.",
            )
    return value


ChatModelSpec = Annotated[
    ChatModel,
    BeforeValidator(_chat_model, json_schema_input_type=str | ChatModel),
    AfterValidator(_check_chat_model),
]

# Said for the whole service or for its groups.
_ONCE = ("image", "docker", "privileged", "python", "nvcc", "spot_policy", "reservation")


_COUNT, _GROUPS = f"{FORM}count", f"{FORM}groups"


def _form(value: Any) -> str:
    return _GROUPS if isinstance(value, list | tuple) else _COUNT


class Service(Run):
    """
    A service: replicas that answer requests.

    Example:
        type: service
        name: chat
        image: vllm/vllm-openai:v0.9.0
        commands:
          - vllm serve Qwen/Qwen3-8B
        port: 8000
        resources:
          gpu: 24GB..
    """

    type: Literal["service"]
    """The kind of the document: `service`."""

    commands: Annotated[Commands | None, execution("agents.host")] = None
    """
    Shell commands, run in order. Default: the command of the image. Example: `[python serve.py]`.
    """

    entrypoint: Annotated[Text | None, execution()] = None
    """
    The entry point of the container, in place of the one of the image. Default: the entry point of
    the image. Example: `/bin/bash`.
    """

    port: Annotated[ServicePort, execution()]
    """The port on which the replicas listen. Example: `8000`."""

    replicas: (
        Annotated[
            Annotated[Replicas, Tag(_COUNT)] | Annotated[ReplicaGroups, Tag(_GROUPS)],
            Discriminator(_form),
            control(default=1),
        ]
        | None
    ) = None
    """Number of replicas, or a range together with `scaling`. Example: `2`, `0..4`."""

    groups: Annotated[ReplicaGroups | None, execution()] = None
    """
    Groups of replicas with different commands or resources, in place of `replicas`. Example:
    `[{name: small, replicas: 1, commands: [python serve.py]}]`.
    """

    scaling: Annotated[Scaling | None, control()] = None
    """
    When replicas are added and removed within the range of `replicas`. Example: `{metric: rps,
    target: 10}`.
    """

    gateway: Annotated[Gateway | None, control()] = None
    """
    The gateway of the service. Default: the default gateway, if there is one. `true`: the default
    gateway. `false`: no gateway. Example: `public`, `false`.
    """

    https: Annotated[Flag | Literal["auto"] | None, control(default=True)] = None
    """
    Whether the gateway uses HTTPS. `auto`: as the gateway is configured. Example: `true`, `auto`.
    """

    auth: Annotated[Flag | None, control(default=True)] = None
    """Whether only members of the project may send requests. Example: `false`."""

    strip_prefix: Annotated[Flag | None, control(default=True)] = None
    """
    Whether the path prefix of the service is removed from requests. Only without a gateway.
    Example: `false`.
    """

    model: Annotated[ChatModelSpec | None, control()] = None
    """
    The language model of the service: its name, or a mapping with its format. Example:
    `meta-llama/Llama-3.1-8B-Instruct`, `{name: qwen, format: openai, prefix: /v1}`.
    """

    rate_limits: Annotated[RateLimits | None, control()] = None
    """
    Limits on the rate of requests. Default: no limit. Example: `[{prefix: /api/, rps: 10, burst:
    20}]`.
    """

    probes: Annotated[Probes | None, control()] = None
    """
    Requests that check whether a replica works. Default: none. Example: `[{type: http, url:
    /health}]`.
    """

    @property
    def replica_groups(self) -> tuple[ReplicaGroup, ...]:
        """The groups, also where they stand in `replicas`, as dstack had them before 0.21."""
        if self.groups is not None:
            return self.groups
        return self.replicas if isinstance(self.replicas, tuple) else ()

    @property
    def _groups_field(self) -> str:
        """The field that the groups are written in."""
        return "groups" if self.groups is not None else "replicas"

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        if isinstance(self.replicas, tuple) and self.groups is None:
            canonical["groups"] = canonical.pop("replicas")
        return canonical

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if not self.replica_groups:
            yield from self._needs_commands()
        count = self.replicas if isinstance(self.replicas, Range) else None
        if not self.replica_groups:
            yield from scaling_problems(count, self.scaling)
        yield from only_in_groups(
            self._conflicts_with_groups,
            ("replicas", "scaling", "commands"),
            "each group has its own",
        )
        yield from self._group_problems()
        yield from rate_limit_problems(self.rate_limits or ())
        yield from probe_problems(self.probes or ())

    def _conflicts_with_groups(self, name: str) -> bool:
        if name == "groups":
            return bool(self.replica_groups)
        return self.is_set(name) and name != self._groups_field

    def _group_problems(self) -> Iterator[Problem]:
        groups = self.replica_groups
        yield from name_problems(groups, self._groups_field)
        yield from group_sources(groups, self._groups_field)
        yield from router_problems(groups, self._groups_field)
        for number, group in enumerate(groups):
            yield from scaling_problems(group.replicas, group.scaling, (self._groups_field, number))
            if not group.commands and group.image is None and self.image is None:
                yield Problem(
                    "missing-field",
                    (self._groups_field, number),
                    "The group has neither `commands` nor an `image` to run.",
                    "Add `commands:` with a list of shell commands.",
                    for_lack_of=("image",),
                )
            yield from self._said_twice(number, group)

    def _said_twice(self, number: int, group: ReplicaGroup) -> Iterator[Problem]:
        for name in _ONCE:
            others = [name, *_excluded_by(name)]
            for other in others:
                if self.is_set(name) and getattr(group, other, None) is not None:
                    yield contradiction(
                        (self._groups_field, number, other),
                        f"The service sets `{name}` for all of its groups.",
                        "Set it for the service, or in each group.",
                    )


def _excluded_by(name: str) -> list[str]:
    """Sources of a container that do not go with `name`."""
    behind = [one for one, others in SOURCES.items() if name in others]
    return sorted({*SOURCES.get(name, ()), *behind})
