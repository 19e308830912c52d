"""What providers report of the world, as values. Integers: bytes, millicores, milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleetform.agents.protocol.host_report import HostReport
    from fleetform.agents.protocol.messages import Cursor, JobRecord


@dataclass(frozen=True, slots=True)
class HostSeen:
    """
    One host that answered.

    `records` is the snapshot of its jobs, or None when events since the cursor tell the rest.
    `cursor` is where to read on from once `records` are taken in. `oldest` is the number of the
    oldest event that the agent keeps, 0 where it was not told: all before it were acknowledged.
    """

    instance_uid: str
    install_id: str
    boot_id: str
    machine_id: str
    ledger_id: str
    epoch: int
    cursor: Cursor
    records: tuple[JobRecord, ...] | None
    report: HostReport
    oldest: int = 0
    address: str = ""
    """Where the host's jobs are reached by other hosts of its fleet; empty: as the ledger has it."""
    host_key: str = ""
    """The key by which the host was recognised, in the format of `known_hosts`; empty: no SSH."""
    capabilities: tuple[str, ...] = ()
    """What its agent can do beyond the version of the protocol: `Welcome.capabilities`."""


@dataclass(frozen=True, slots=True)
class InstanceSeen:
    """
    One instance that exists in the world under our environment's uid.

    Found by inventory, not by ledger: this is how a lost ledger is told from a new one. `fence`
    is the highest that its agent has welcomed within `epoch`, as far as the provider has noted it.
    `commits` is how many the ledger had had when the agent was last told within `epoch` that
    something is written down; 0: nobody has noted it.
    """

    uid: str
    name: str
    fleet: str
    environment_uid: str
    ledger_id: str
    epoch: int
    alive: bool
    fence: int = 0
    resting: bool = False
    """Its agent has ended by itself, for there was nothing to do, and is started when needed."""
    commits: int = 0
    is_ending: bool = False
    """A cloud is deleting it: it cannot be adopted, and what runs there has not ended for certain."""
    provider: str = "local"
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    """With `host_key` and `declared` as in `hosts.InstanceRequest`: how its host was reached."""
    host_key: str = ""
    declared: Mapping[str, Any] = field(default_factory=dict)
    created_at_ms: int | None = None
    """When a cloud created it, Unix milliseconds; None: it is not of a cloud."""


@dataclass(frozen=True, slots=True)
class VolumeSeen:
    """One volume that exists in the world under our environment's uid."""

    uid: str
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class NeighbourSeen:
    """
    Another volume's place, around the one that was asked for or (`is_inside`) within it.

    `mark` is what lies there, with the absolute path as links lead to it.
    """

    mark: PlaceSeen
    is_inside: bool


@dataclass(frozen=True, slots=True)
class PlaceSeen:
    """
    What is at the place where a volume should be, whoever made it.

    The mark is empty where there is none. `identity` tells the directory from another one that was
    made in its place. `changed_at_ms` is when the directory itself last changed, or the folder
    around it where it is gone; None where nobody can tell.
    """

    path: str
    exists: bool
    environment_uid: str = ""
    volume_uid: str = ""
    volume_name: str = ""
    identity: str = ""
    owner: str = ""
    """The account that owns it, as `name` or as its number where it has no name."""
    mode: str = ""
    """Permission bits in octal, as `chmod` takes them."""
    is_empty: bool = True
    """Nothing lies in it but marks of ours."""
    changed_at_ms: int | None = None
    environment_name: str = ""
    """What people call the environment of the mark, where it says so."""
    marked_at_ms: int | None = None
    is_file: bool = False
    """Something lies there that is no directory."""
