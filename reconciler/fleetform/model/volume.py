"""What is known of volumes: which runs mount them, which hosts have them, and data that was kept when one went."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fleetform.agents.protocol.naming import short_uid

__all__ = [
    "ATTACHED_TO",
    "DISK",
    "MADE_ON",
    "NOT_ON",
    "Claim",
    "Disk",
    "NetworkVolume",
    "RetainedData",
    "Snapshot",
    "VolumeHosts",
    "attached_to",
    "disk_of",
    "disk_place",
    "disk_request",
    "is_disk",
    "mounted_volumes",
    "mounts",
    "snapshot_place",
    "volume_hosts",
]


# Which volumes a run has mounted, by its document: asked by plans, and by the ledger that enters them.


def mounts(document: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the volumes that each mount of a run's document names: one of them is mounted."""
    for mount in document.get("volumes", ()):
        names = mount.get("name", ())
        yield (names,) if isinstance(names, str) else tuple(names)


def mounted_volumes(document: str) -> frozenset[str]:
    """
    Name the volumes that a run's document, as JSON, mounts.

    Of a mount that names several one is taken, and it may be any of them.
    """
    # Of ten thousand runs hardly one mounts something: the others are not parsed.
    if '"volumes"' not in document:
        return frozenset()
    return frozenset(name for names in mounts(json.loads(document)) for name in names)


# On which hosts the directory of a volume is, as steps have recorded it in the outputs of its row.
# Nothing is recorded of a fleet of one machine: all its hosts have one directory.

MADE_ON = "made_on"
"""In the outputs: names of the hosts that have the directory."""

NOT_ON = "not_on"
"""In the outputs: why the other hosts that should have it do not, by name."""


@dataclass(frozen=True, slots=True)
class VolumeHosts:
    """Which hosts have the directory, and why the other ones that should do not."""

    made_on: frozenset[str]
    not_on: Mapping[str, str]


def volume_hosts(outputs: str) -> VolumeHosts | None:
    """Read the hosts of a volume from the outputs of its row, as JSON; None: all of its fleet."""
    said = json.loads(outputs) if MADE_ON in outputs else {}
    if MADE_ON not in said:
        return None
    return VolumeHosts(frozenset(said[MADE_ON]), said.get(NOT_ON, {}))


# The disk of a network volume.

DISK = "disk"
"""In the outputs: what the cloud said of the disk."""


def is_disk(document: Mapping[str, Any]) -> bool:
    """Tell whether a volume is a disk of a cloud, and no directory of hosts."""
    return "backend" in document


def disk_place(document: Mapping[str, Any]) -> dict[str, Any]:
    """Say which disk a document declares: a disk with another place, or other first data, is another one."""
    said = document.get("aws", {})
    return {
        "provider": document["backend"],
        "account": said.get("account", ""),
        "region": document.get("region", ""),
        "zone": document.get("availability_zone", ""),
        "encrypted": said.get("encrypted", True),
        "snapshot": said.get("snapshot_id", ""),
        "registered": document.get("volume_id", ""),
        "file_system": said.get("file_system", ""),
    }


def disk_request(document: Mapping[str, Any], disk: Disk | None) -> dict[str, Any]:
    """Return what a step says of a disk, as the fields of `contract.volumes.VolumeRequest`."""
    place = disk_place(document)
    size = document.get("size", 0)
    return {
        "provider": place.pop("provider"),
        "registered": place.pop("registered"),
        "id": "" if disk is None else disk.id,
        "place": {**place, "size_gb": -(-size // _GB)},
    }


_GB = 1 << 30


class Disk(NamedTuple):
    """
    The disk of a network volume that exists, by the cloud's id of it.

    `source` is what hosts mount of a shared file system; empty: it is a disk, which is attached.
    """

    id: str
    zone: str
    size_gb: int
    source: str = ""


def disk_of(outputs: str) -> Disk | None:
    """Read the disk of a volume from the outputs of its row, as JSON; None: it has none."""
    said = json.loads(outputs) if f'"{DISK}"' in outputs else {}
    return Disk(**said[DISK]) if DISK in said else None


ATTACHED_TO = "attached_to"
"""In the outputs: the uid of the instance that the disk is attached to, or is about to be."""


def attached_to(outputs: str) -> str:
    """Read the uid of the instance that has the disk from the outputs of a row, as JSON; or empty."""
    return str(json.loads(outputs).get(ATTACHED_TO, "")) if ATTACHED_TO in outputs else ""


@dataclass(frozen=True, slots=True)
class NetworkVolume:
    """
    A volume whose disk exists, as controllers attach it to hosts.

    `request` is as `disk_request` returns it. `attached_to` is an instance uid, or empty. `source` is what
    hosts mount of a shared file system.
    """

    name: str
    uid: str
    request: Mapping[str, Any]
    attached_to: str = ""
    source: str = ""

    @property
    def is_shared(self) -> bool:
        """Whether several hosts may have it at once: it is a file system, and no disk."""
        return self.source != ""

    @property
    def disk(self) -> str:
        """The cloud's id of the disk."""
        return str(self.request["registered"] or self.request["id"])

    @property
    def path(self) -> str:
        """Where it is mounted on its host, as a declared path."""
        return f".disks/{self.uid}"

    def may_be_at(self, provider: str, endpoint: Mapping[str, Any]) -> bool:
        """Tell whether an instance can have it: a disk only in its own zone, a file system in its region."""
        place = self.request["place"]
        names = ("account", "region") if self.is_shared else ("account", "region", "zone")
        return provider == self.request["provider"] and all(
            endpoint.get(name) == place[name] for name in names
        )


# A volume's data that was put aside when the volume went.


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    One of them, as the ledger remembers it; only a person removes it.

    `path` is where the volume lay, as declared, `place` where the data is now. `who` let it go. Of a
    disk `fleet` is empty, `path` is the region and `place` the cloud's id of the snapshot.
    """

    volume: str
    volume_uid: str
    fleet: str
    path: str
    place: str
    who: str
    taken_at_ms: int

    @property
    def is_of_disk(self) -> bool:
        return not self.fleet


def snapshot_place(path: str, name: str, uid: str) -> str:
    """
    Return the path of a volume's snapshot: next to the volume, so that it is a rename.

    By the volume's uid, since another of its name may have been put aside before.
    """
    return f"{path.rstrip('/')}.snapshot-{name}-{uid[:12]}"


# Data of a volume that was let go and that stays in its directory.


@dataclass(frozen=True, slots=True)
class RetainedData:
    """
    One directory, as the ledger remembers it: its marker has `uid`.

    `path` is as it was declared, in the one spelling of documents. Whether the data is still there
    is the host's to say.
    """

    volume: str
    uid: str
    path: str


# The other owner of a path that a document asks for.
# Whoever makes a plan may look at what lies on this machine and hand it in: the plan is still a
# function of values. Elsewhere the agent finds out, and refuses.


@dataclass(frozen=True, slots=True)
class Claim:
    """
    A path of this machine that cannot be used: it has another owner's marker, is too near to
    one that does, is a file, or is missing and so cannot be adopted.

    Attributes:
        what: The thing, as people find it: the absolute path of a directory.
        owner_uid: The environment that owns it; empty where its mark cannot be read.
        owner_name: What people call that environment; empty where the mark does not say.
        holds: What it is over there: `volume data`.
        since_ms: When it was marked, Unix milliseconds, or None where the mark does not say.
        marker_path: Where the mark lies, if not at `what` itself but around or within it; else empty.
        is_inside: It lies within `what`, and not around it.
        is_file: `what` is no directory; nobody owns it then.
        missing: The address of what is to be taken in, and does not exist; else empty. Whoever makes
            it anew is not kept from that.
    """

    what: str
    owner_uid: str
    owner_name: str = ""
    holds: str = ""
    since_ms: int | None = None
    marker_path: str = ""
    is_inside: bool = False
    is_file: bool = False
    missing: str = ""

    @property
    def sentence(self) -> str:
        if self.is_file:
            return f"{self.what} is not a directory, and a volume must be one"
        if self.missing:
            return f"{self.what} does not exist, so there is nothing to import"
        uid = short_uid(self.owner_uid) or "with an unreadable uid"
        owner = f"{self.owner_name} ({uid})" if self.owner_name else uid
        since = ""
        if self.since_ms is not None:
            day = dt.datetime.fromtimestamp(self.since_ms // 1000, dt.UTC)
            since = f" since {day:%Y-%m-%dT%H:%M:%SZ}"
        relation = f"is {self.holds} of" if self.holds else "belongs to"
        whose = f"{relation} environment {owner}{since}"
        if not self.marker_path:
            return f"{self.what} {whose}"
        if self.is_inside:
            return f"{self.marker_path}, inside {self.what}, {whose}"
        return f"{self.what} is inside {self.marker_path}, which {whose}"

    @property
    def cure(self) -> str:
        if self.is_file:
            return "declare the path of a directory"
        if self.missing:
            return (
                f"declare the path where it is, or remove {self.missing} from `import:`; then the"
                " volume is created"
            )
        if not self.marker_path:
            return (
                "declare another path; to use this one, release the volume in that environment"
                " (`removed:`), then delete the marker `.fleetform-volume` there"
            )
        return (
            f"declare a path that neither contains {self.marker_path} nor is inside it: a directory belongs"
            " to one volume, with everything in it"
        )
