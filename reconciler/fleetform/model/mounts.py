"""Which volumes a run has mounted, by its document: asked by plans, and by the ledger that enters them."""

from __future__ import annotations

import json

__all__ = ["mounted_volumes"]


def mounted_volumes(document: str) -> frozenset[str]:
    """
    Name the volumes that a run's document, as JSON, mounts.

    Of a mount that names several one is taken, and it may be any of them.
    """
    # Of ten thousand runs hardly one mounts something: the others are not parsed.
    if '"volumes"' not in document:
        return frozenset()
    found: set[str] = set()
    for mount in json.loads(document).get("volumes", ()):
        names = mount.get("name", ())
        found.update((names,) if isinstance(names, str) else names)
    return frozenset(found)
