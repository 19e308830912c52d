"""Which volumes a run has mounted, by its document: asked by plans, and by the ledger that enters them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["mounted_volumes", "mounts"]


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
