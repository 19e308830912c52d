"""A volume's data that was put aside when the volume went."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Snapshot", "snapshot_place"]


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
    Say where a volume's data is put aside: beside it, so that it is a rename.

    By the volume's uid, since another of its name may have been put aside before.
    """
    return f"{path.rstrip('/')}.snapshot-{name}-{uid[:12]}"
