"""A service: replicas that answer requests until they are stopped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag

from fleetform.spec.field_facts import control, execution
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import FORM, Flag, contradiction
from fleetform.spec.kinds.chat_model import ChatModelSpec
from fleetform.spec.kinds.commands import Commands
from fleetform.spec.kinds.container import SOURCES
from fleetform.spec.kinds.groups import name_problems, only_in_groups
from fleetform.spec.kinds.offers import Gateway, Text
from fleetform.spec.kinds.ports import ServicePort
from fleetform.spec.kinds.probes import Probes, probe_problems
from fleetform.spec.kinds.rate_limits import RateLimits, rate_limit_problems
from fleetform.spec.kinds.replicas import (
    ReplicaGroup,
    ReplicaGroups,
    Replicas,
    Scaling,
    group_sources,
    router_problems,
    scaling_problems,
)
from fleetform.spec.kinds.run import Run
from fleetform.spec.quantities import Range

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
