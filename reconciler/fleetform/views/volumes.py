"""Volumes: where each lies, and which runs that are not over mount it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleetform.model import figures
from fleetform.model.drift import ATTACHED_TO_TEXT, ATTACHMENT
from fleetform.model.run import FINAL
from fleetform.model.volume import Snapshot, attached_to, disk_of, is_disk, volume_hosts
from fleetform.spec.names import natural_order
from fleetform.views.moments import moment
from fleetform.views.table import Column, Table, make_table, row_of

if TYPE_CHECKING:
    from fleetform.model.live import Live, LiveResource


@dataclass(frozen=True, slots=True)
class VolumeHostRow:
    """A host that should have the directory; `problem` says why it does not, and is empty where it does."""

    host: str
    problem: str


@dataclass(frozen=True, slots=True)
class VolumeRow:
    """
    One volume.

    `hosts` are those of a fleet with `ssh_config`; empty for other fleets, whose hosts all have it.

    `path` is as declared; a relative one lies below the environment's folder for volumes. A network volume
    has `backend`, `disk` (the cloud's id; empty before it exists), `zone` and `size_bytes` in place of `fleet` and `path`; `attached_to` is
    the host that has it now, `attached_elsewhere` the cloud's id of an instance that is no host and that `drift` found to have it. A shared file system has its kind as `file_system`, and neither zone, size nor host.
    `deletion_policy` is the default where the document does not say. `users` are runs by name.
    """

    name: str
    uid: str
    fleet: str
    path: str
    state: str
    deletion_policy: str
    protected: bool
    users: tuple[str, ...]
    description: str
    hosts: tuple[VolumeHostRow, ...] = ()
    backend: str = ""
    disk: str = ""
    zone: str = ""
    size_bytes: int = 0
    attached_to: str = ""
    attached_elsewhere: str = ""
    file_system: str = ""


def volume_rows(live: Live) -> tuple[VolumeRow, ...]:
    """Make the rows in order of name."""
    users = _users(live)
    return tuple(
        _volume_row(row, tuple(users.get(key.name, ())), live)
        for key in sorted(live.resources, key=lambda key: natural_order(str(key)))
        if key.kind == "volume"
        and (not (row := live.resources[key]).archived or row.is_being_created)
    )


def volumes_table(rows: Iterable[VolumeRow]) -> Table:
    columns: tuple[Column[VolumeRow], ...] = (
        Column("VOLUME", lambda row: row.name),
        Column("FLEET", lambda row: row.fleet, optional=True),
        Column("PATH", lambda row: row.path, optional=True),
        Column("HOSTS", _hosts_text, optional=True),
        Column("BACKEND", lambda row: row.backend, optional=True),
        Column("ID", lambda row: row.disk, optional=True),
        Column("KIND", _kind, optional=True),
        Column("ZONE", lambda row: row.zone, optional=True),
        Column("SIZE", _size, right=True, optional=True),
        Column("ATTACHED TO", _attachment, optional=True),
        Column("WHEN REMOVED", lambda row: row.deletion_policy),
        Column("PROTECTED", lambda row: "yes" if row.protected else "", optional=True),
        Column("USED BY", _used_by),
        Column("DESCRIPTION", lambda row: row.description, optional=True),
    )
    return make_table(columns, rows)


def _users(live: Live) -> dict[str, list[str]]:
    """Find the runs that mount each volume, in order of name."""
    users: dict[str, list[str]] = {}
    for key in sorted(live.resources, key=lambda key: natural_order(str(key))):
        resource = live.resources[key]
        if key.kind != "run" or resource.archived or _is_over(resource):
            continue
        # Most of ten thousand documents mount nothing: those are not parsed.
        if '"volumes"' in resource.document:
            document = resource.parsed
            for mount in document.get("volumes", ()):
                users.setdefault(mount["name"], []).append(key.name)
    return users


def _is_over(resource: LiveResource) -> bool:
    return resource.run is not None and resource.run.state in FINAL


def _volume_row(resource: LiveResource, users: tuple[str, ...], live: Live) -> VolumeRow:
    document = resource.parsed
    return VolumeRow(
        name=resource.key.name,
        uid=resource.uid,
        fleet=document.get("fleet", ""),
        path=document.get("path", ""),
        state=resource.state,
        deletion_policy=document.get("deletion_policy", "retain"),
        protected=resource.protected,
        users=users,
        description=document.get("description", ""),
        hosts=_host_rows(resource.outputs),
        **_disk_facts(resource, live),
    )


def _disk_facts(resource: LiveResource, live: Live) -> dict[str, Any]:
    if not is_disk(resource.parsed):
        return {}
    document, disk = resource.parsed, disk_of(resource.outputs)
    declared = {
        "backend": document["backend"],
        "file_system": document.get("aws", {}).get("file_system", ""),
    }
    if disk is None:
        zone, size = document.get("availability_zone", ""), document.get("size", 0)
        return {**declared, "zone": zone, "size_bytes": size}
    at = attached_to(resource.outputs)
    return {
        **declared,
        "disk": disk.id,
        "zone": disk.zone,
        "size_bytes": disk.size_gb << 30,
        "attached_to": next((one.name for one in live.instances if at and one.uid == at), ""),
        "attached_elsewhere": "" if at else _attached_elsewhere(resource, live),
    }


def _attached_elsewhere(resource: LiveResource, live: Live) -> str:
    drifts = (one.drift for one in live.recorded_drift if one.drift.resource == resource.key)
    seen = next((one.seen for one in drifts if one.field == ATTACHMENT), "")
    return seen.removeprefix(ATTACHED_TO_TEXT)


def _attachment(row: VolumeRow) -> str:
    """Write `gpus-0`, or `i-0f1e2d3c4b5a69788 (no host)`."""
    elsewhere = row.attached_elsewhere
    return row.attached_to or (f"{elsewhere} (no host)" if elsewhere else "")


def _kind(row: VolumeRow) -> str:
    """Write `disk`, or the kind of a shared file system; empty for a directory of hosts."""
    return row.file_system or ("disk" if row.backend else "")


def _size(row: VolumeRow) -> str:
    return figures.size(row.size_bytes) if row.size_bytes else ""


def _host_rows(outputs: str) -> tuple[VolumeHostRow, ...]:
    there = volume_hosts(outputs)
    if there is None:
        return ()
    problems = {**dict.fromkeys(there.made_on, ""), **there.not_on}
    return tuple(
        VolumeHostRow(name, problems[name]) for name in sorted(problems, key=natural_order)
    )


def _hosts_text(row: VolumeRow) -> str:
    """Write `node1, node2`, or `3 of 16` where some do not have it or there are many."""
    have = [one.host for one in row.hosts if not one.problem]
    if len(have) == len(row.hosts) <= _HOSTS_SHOWN:
        return ", ".join(have)
    return f"{len(have)} of {len(row.hosts)}"


_HOSTS_SHOWN = 3
"""Hosts that a table names; `volume show` lists all."""


def _used_by(row: VolumeRow) -> str:
    if len(row.users) <= 2:
        return ", ".join(row.users)
    return f"{row.users[0]} and {figures.counted(len(row.users) - 1, 'other run')}"


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """
    The snapshot of a volume.

    `place` is absolute. `there`: whether this machine has it; where the fleet is elsewhere, it
    need not.
    """

    volume: str
    volume_uid: str
    fleet: str
    place: str
    there: bool
    who: str
    taken_at_ms: int


def snapshot_rows(
    snapshots: Iterable[Snapshot], *, places: Mapping[str, str], there: Container[str]
) -> tuple[SnapshotRow, ...]:
    """Make the rows in the order of the snapshots; `places` are absolute, by the declared one."""
    return tuple(
        row_of(SnapshotRow, one, place=places[one.place], there=one.place in there)
        for one in snapshots
    )


def snapshots_table(rows: Iterable[SnapshotRow]) -> Table:
    columns: tuple[Column[SnapshotRow], ...] = (
        Column("VOLUME", lambda row: row.volume),
        Column("FLEET", lambda row: row.fleet),
        Column("TAKEN", lambda row: moment(row.taken_at_ms)),
        Column("WHO", lambda row: row.who),
        Column("PLACE", lambda row: row.place if row.there else f"{row.place} (not found here)"),
    )
    return make_table(columns, rows)
