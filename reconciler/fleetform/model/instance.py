"""Fleets' instances as the ledger knows them, and what is free on them."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fleetform.model.offers import is_given_up, lacks_offer
from fleetform.model.rollout import EXCHANGED_TEXTS

if TYPE_CHECKING:
    from fleetform.agents.protocol.keys import Cursor
    from fleetform.providers.contract.hosts import InstanceRequest
    from fleetform.spec.quantities.devices import DetectedGpu


LOCAL = "local"
"""The provider of shares of this machine; all others have hosts elsewhere."""


SSH = "ssh"
"""The provider of hosts that exist already, and that documents list by name."""


CLOUDS = frozenset({"aws"})
"""Providers of hosts that are bought: they exist from their creation to their release, and cost as long."""


class InstanceState(enum.StrEnum):
    """
    `PROVISIONING` is wanted and not yet reached; `READY` takes jobs. `RECOVERING` has lost its
    connection a moment ago, and its runs keep their state; `UNREACHABLE` has been silent for longer:
    its rows and allocations stay. `SUSPECT` answers and has failed run after run: it takes no
    jobs until it says hello again or some minutes have passed. A host with a quarantine in force
    is shown as `QUARANTINED`, a host for which its cloud has refused all offers as `WAITING_FOR_CAPACITY`, or as `REFUSED` once
    its fleet has given up, and an instance of a cloud that was found to exist no longer as `GONE`; views show these four, and
    the ledger never has them. A `TERMINATING` host gets no jobs.
    `UNCREATED` is a host that a fleet may get by demand; it has no row. A host whose creation failed is shown as that too.
    """

    PROVISIONING = "provisioning"
    READY = "ready"
    RECOVERING = "recovering"
    UNREACHABLE = "unreachable"
    SUSPECT = "suspect"
    QUARANTINED = "quarantined"
    WAITING_FOR_CAPACITY = "waiting for capacity"
    REFUSED = "refused"
    GONE = "gone"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    UNCREATED = "not created"


SHOWN_AS_QUARANTINED = frozenset({InstanceState.READY, InstanceState.SUSPECT})
"""States of a host that answers and stays; silence and leaving stay visible under a quarantine."""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """A process that uses a GPU and is of no job of fleetform."""

    pid: int
    user: str
    program: str

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid}, user {self.user})"


@dataclass(frozen=True, slots=True)
class Gpu:
    """`used_by` is a process outside fleetform; no run gets the GPU while there is one."""

    uuid: str
    name: str
    memory_bytes: int
    index: int = 0
    vendor: str = "nvidia"
    used_by: GpuUse | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """
    One host of a fleet. Capacity is what the fleet declares, else what the agent reports.

    `sharing` is `whole`, `blocks` or `exact`; `blocks` how many equal shares it has.
    `declared` is kept for the provider; `number` is its place in the fleet, from 0.
    `generation` goes up when state or capacity changes: a placement names the one it saw.
    """

    uid: str
    name: str
    fleet: str
    number: int
    state: InstanceState
    generation: int = 1
    sharing: str = "exact"
    blocks: int = 1
    cpu_millicores: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    gpus: tuple[Gpu, ...] = ()
    address: str = "127.0.0.1"
    boot_id: str = ""
    install_id: str = ""
    cursor: Cursor | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)
    parts: int = 1
    message: str = ""
    template_digest: str = ""
    """What it was made from; empty where that is unknown."""
    drained: str = ""
    """Why it gets nothing more, though it may be ready; empty: it does. What runs there goes on."""
    seen_at_ms: int | None = None
    """When it said something last that was written down, Unix milliseconds."""
    provider: str = LOCAL
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    """How the provider reaches the host; see `providers.contract.hosts.InstanceRequest`."""
    host_key: str = ""
    run_as: str = ""
    """The field of the fleet; empty: as `model.account` says."""
    agent_account: str = ""
    """The account that its agent runs as; empty: it has not reported that."""
    accounts: frozenset[str] | None = None
    """All accounts that the host has; None where it cannot list them, or has not."""
    idle_since_ms: int | None = None
    """Since when it has no jobs and leaves after a while, Unix milliseconds; None: it stays."""
    ended_at_ms: int | None = None
    """Of an instance of a cloud: since when it is known to exist no longer, Unix milliseconds; None: it may exist."""

    @property
    def is_named(self) -> bool:
        """Whether a document lists it by name, so that its directories are found there again."""
        return self.provider == SSH

    @property
    def is_bought(self) -> bool:
        """Whether it is an instance of a cloud: it is created for the fleet, and must be released."""
        return self.provider in CLOUDS

    @property
    def has_ended(self) -> bool:
        """Whether it is an instance of a cloud that no longer exists, and only a record of it is left."""
        return self.number < 0

    @property
    def is_gone(self) -> bool:
        """Whether it was found to exist no longer although its fleet wants it: its place waits for another."""
        return self.ended_at_ms is not None and self.state is not InstanceState.TERMINATING

    @property
    def is_created(self) -> bool:
        """Whether the cloud has said which instance it is."""
        return "id" in self.endpoint

    @property
    def is_missing(self) -> bool:
        """Whether its fleet wants it, and its cloud has not created it."""
        return self.is_bought and self.is_joining and not self.is_created

    @property
    def has_failed(self) -> bool:
        """Whether it is an instance whose creation failed; a controller tries again, which may never help."""
        is_wanted = self.state is InstanceState.PROVISIONING and self.is_missing
        return is_wanted and bool(self.message) and not self.waits_for_capacity

    @property
    def waits_for_capacity(self) -> bool:
        """Whether its cloud has refused all offers, so that it exists only once that is asked again."""
        return lacks_offer(self.endpoint) and not self.is_created

    @property
    def is_refused(self) -> bool:
        """Whether its cloud has refused all offers and its fleet does not retry, or no longer: an apply asks again."""
        return is_given_up(self.endpoint)

    @property
    def is_joining(self) -> bool:
        """Whether it is a host of another machine that has never answered, and is asked until it does."""
        is_leaving = self.state in {InstanceState.TERMINATING, InstanceState.TERMINATED}
        return self.provider != LOCAL and not self.install_id and not is_leaving

    @property
    def is_silent(self) -> bool:
        """Whether it is a host of another machine that was set up and does not answer now."""
        if self.provider == LOCAL or not self.install_id:
            return False
        if self.state is InstanceState.TERMINATING:
            # Of a host that leaves the message says what keeps it, or else for whom it makes room.
            return self.message not in {"", *EXCHANGED_TEXTS}
        return self.state is InstanceState.UNREACHABLE


@dataclass(frozen=True, slots=True)
class Allocation:
    """What one job holds of an instance until its end is proved."""

    instance_uid: str
    job_uid: str
    run_uid: str
    cpu_millicores: int
    memory_bytes: int
    disk_bytes: int
    gpus: tuple[str, ...] = ()
    blocks: int = 0


def missing_devices_text(declared: Mapping[str, Any], gpus: Sequence[DetectedGpu]) -> str:
    """
    Return a sentence that names the declared devices that a host lacks; empty if it lacks none.

    Args:
        declared: The capacity of the host in its fleet; without `devices` the host lacks none.
        gpus: The GPUs that the host reported.
    """
    if "devices" not in declared:
        return ""
    # Here: most commands parse no amounts.
    from fleetform.spec.quantities.devices import missing_devices

    missing = missing_devices(gpus, declared.get("devices"))
    names = ", ".join(f"GPU {one}" if isinstance(one, int) else one for one in missing)
    return f"the host has no {names}, which `devices` declares" if names else ""


def request_of(instance: Instance) -> InstanceRequest:
    """What a provider is asked for, to have or to reach this instance."""
    # Here: plans read instances, and ask no provider.
    from fleetform.providers.contract.hosts import InstanceRequest

    is_share = instance.provider == LOCAL
    return InstanceRequest(
        uid=instance.uid,
        name=instance.name,
        fleet=instance.fleet,
        declared=instance.declared,
        share=(instance.parts, instance.number) if is_share else (1, 0),
        provider=instance.provider,
        endpoint=instance.endpoint,
        host_key=instance.host_key,
    )
