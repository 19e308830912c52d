"""On which hosts a volume may be used, and where disks are attached, read from rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fleetform.model.volume import (
    DISK,
    MADE_ON,
    NetworkVolume,
    attached_to,
    disk_of,
    disk_request,
    volume_hosts,
)

if TYPE_CHECKING:
    from fleetform.store.database import Transaction
    from fleetform.store.statements import Statements

__all__ = [
    "leaving_volumes",
    "read_network_volumes",
    "read_volume_hosts",
]


def leaving_volumes(connection: Statements | Transaction) -> frozenset[str]:
    """
    Volumes that an accepted plan removes, keeps as a snapshot, releases or withdraws from hosts, and
    that are still there.

    A run that started with one mounted in between would lose it, and no plan has shown that.
    """
    rows = connection.execute(
        "SELECT resource_name FROM operations INDEXED BY operations_open"
        " WHERE state IN ('planned', 'intended') AND resource_kind = 'volume'"
        " AND verb IN ('volume.remove', 'volume.snapshot', 'volume.forget', 'volume.withdraw')"
    )
    return frozenset(name for (name,) in rows)


def read_volume_hosts(connection: Statements | Transaction) -> dict[str, frozenset[str]]:
    """Name the hosts that have each volume; one that all hosts of its fleet have is missing."""
    rows = connection.execute(
        "SELECT name, outputs, document FROM resources WHERE kind = 'volume' AND archived = 0"  # noqa: S608 -- MADE_ON is a constant
        f" AND (outputs LIKE '%\"{MADE_ON}\"%' OR document LIKE '%\"hosts\"%')"
    )
    found = {}
    for name, outputs, document in rows:
        there = volume_hosts(outputs)
        # A rebuilt ledger knows of no step that made it, and its document says where it may be.
        listed = json.loads(document).get("hosts") if there is None else there.made_on
        if listed is not None:
            found[name] = frozenset(listed)
    return found


def read_network_volumes(connection: Statements) -> dict[str, NetworkVolume]:
    """Read the volumes whose disks exist, by name."""
    rows = connection.execute(
        "SELECT name, uid, document, outputs FROM resources WHERE kind = 'volume'"  # noqa: S608 -- DISK is a constant
        f" AND archived = 0 AND outputs LIKE '%\"{DISK}\"%' ORDER BY name"
    )
    return {
        name: NetworkVolume(
            name,
            uid,
            disk_request(json.loads(document), disk),
            attached_to(outputs),
            disk.source,
        )
        for name, uid, document, outputs in rows
        for disk in (disk_of(outputs),)
        if disk is not None
    }
