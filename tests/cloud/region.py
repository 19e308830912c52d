"""The state of one account and region of EC2, and the way to moto, which has the rest of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from cloud import catalog as cat
from cloud.metadata import Metadata
from cloud.moto_calls import call_moto
from cloud.wire import Call

Parameters = dict[str, Any]


@dataclass
class Pace:
    """How a new instance comes up; faults change it for the calls that they meet."""

    pending_seconds: float = 0.0
    dies_seconds: float | None = None
    """After so long in `pending` the instance is terminated with `Server.InternalError`."""


@dataclass
class InstanceRecord:
    reservation: dict[str, Any]
    created: float
    pace: Pace
    address: str
    public: bool
    """An address was asked for, or is the default of its subnet."""
    extra: dict[str, Any]
    """Members of the description that moto loses."""
    cards: list[dict[str, Any]]
    """Network interfaces beyond the first one, which moto would mix up."""
    interface_tags: list[dict[str, str]]
    reason: tuple[str, str] | None = None
    seen: dict[str, Any] | None = None
    """moto's description, until a call changes it: reading one takes moto milliseconds."""
    ended: float | None = None


class Hosts(Protocol):
    """The hosts behind instances."""

    def address(self, tags: Mapping[str, str]) -> str:
        """Return an address for a new instance."""

    def boot(self, identity: str, metadata: Metadata) -> None:
        """Boot the host of a new instance."""

    def end(self, identity: str) -> None:
        """End the host of an instance."""

    def add_address(self, identity: str, address: str) -> None:
        """Give the host of an instance an Elastic IP."""

    def attach(self, identity: str, volume: str, size_gb: int) -> None:
        """Give the host of an instance the disk of a volume."""

    def detach(self, volume: str) -> None:
        """Take the disk of a volume from its host."""

    def resize(self, volume: str, size_gb: int) -> None:
        """Grow the disk of a volume."""

    def console(self, identity: str) -> str:
        """Return what the host has printed."""

    def metadata(self, identity: str) -> Metadata:
        """Return what the metadata service of the host knows."""


@dataclass
class Region:
    account: str
    name: str
    catalog: cat.Catalog
    address: Callable[[Mapping[str, str]], str]
    """Address of an instance or an elastic address, by its tags."""
    hosts: Hosts | None = None
    """What boots behind instances; None: nothing does."""
    clock: Callable[[], float] = time.monotonic
    lag_seconds: float = 0.0
    """For so long lists show neither a new instance nor the end of one."""
    instances: dict[str, InstanceRecord] = field(default_factory=dict)
    placement_groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    reservations: dict[str, dict[str, Any]] = field(default_factory=dict)
    spot_requests: dict[str, dict[str, Any]] = field(default_factory=dict)
    consoles: dict[str, str] = field(default_factory=dict)
    elastic: dict[str, str] = field(default_factory=dict)
    """Address by the address that moto drew for it, which exists."""
    stuck: set[str] = field(default_factory=set)
    """Volumes that their instances release by force only."""
    tokens: dict[str, tuple[Parameters, dict[str, Any]]] = field(default_factory=dict)
    """Parameters and result of calls by their client token."""
    templates: dict[tuple[str, int], Parameters] = field(default_factory=dict)
    """Data of launch templates as they were sent: moto loses interface types and cards."""

    def moto(self, call: Call, **changed: Any) -> dict[str, Any]:
        """Let moto answer the call, with parameters changed; None takes one away."""
        parameters = {**call.parameters, **changed}
        given = {name: value for name, value in parameters.items() if value is not None}
        return call_moto(replace(call, parameters=given), self.account)

    def other(self, call: Call, operation: str, **parameters: Any) -> dict[str, Any]:
        """Let moto answer another call of the same caller."""
        return call_moto(replace(call, operation=operation, parameters=parameters), self.account)


def tags_of(parameters: Parameters, kind: str) -> list[dict[str, str]]:
    return [
        tag
        for row in parameters.get("TagSpecifications", [])
        if row.get("ResourceType") == kind
        for tag in row["Tags"]
    ]
