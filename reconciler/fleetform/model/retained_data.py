"""Data of a volume that was let go and that stays in its directory."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LeftData"]


@dataclass(frozen=True, slots=True)
class LeftData:
    """
    One directory, as the ledger remembers it: its mark bears `uid`.

    `path` is as it was declared, in the one spelling of documents. Whether the data is still there
    is the host's to say.
    """

    volume: str
    uid: str
    path: str
