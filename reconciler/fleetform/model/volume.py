"""What is known of volumes: which runs mount them, and data that was kept when one went."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["RetainedData", "Snapshot", "mounted_volumes", "mounts", "snapshot_place"]

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


# A volume's data that was put aside when the volume went.


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    One of them, as the ledger remembers it; only a person removes it.

    `path` is where the volume lay, as declared, `place` where the data is now. `who` let it go.
    """

    volume: str
    volume_uid: str
    fleet: str
    path: str
    place: str
    who: str
    taken_at_ms: int


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
