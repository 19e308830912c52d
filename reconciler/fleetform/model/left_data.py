"""Data of a volume that was let go and that stays in its directory."""

from __future__ import annotations

import posixpath

from fleetform.spec.dataclass import dataclass

__all__ = ["LeftData", "is_within", "place_of"]


@dataclass(frozen=True, slots=True)
class LeftData:
    """
    One directory, as the ledger remembers it: its mark bears `uid`.

    `path` is as it was declared. Whether the data is still there is the host's to say.
    """

    volume: str
    uid: str
    path: str


def place_of(path: str) -> str:
    """
    Say which directory a path means, so that two spellings of it are equal.

    Whatever is not absolute lies in the environment's own folder, which nobody leaves with `..`.
    """
    if path.startswith("/"):
        return posixpath.normpath(path)
    return posixpath.normpath(f"/{path}")[1:]


def is_within(inner: str, outer: str) -> bool:
    """Tell whether one place, as `place_of` says it, lies in another."""
    return inner.startswith(f"{outer.rstrip('/')}/")
