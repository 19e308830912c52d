"""
Runs on several nodes that no fleet joins.

Nodes of one run speak to each other all the time. A fleet of this machine, of a cluster, with
`placement: cluster`, or with a network of its own joins them; hosts of a cloud otherwise may
stand in different zones, where the run starts and then crawls or waits for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.checks.capacity import candidates
from fleetform.spec.checks.supply import nodes_max
from fleetform.spec.findings import Level, Problem
from fleetform.spec.references import Catalogue, Entry


def check(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """One warning a document, where the fleets that it may be placed on are all declared."""
    fleets = catalogue.whole("fleet")
    for entry in catalogue.of_kind("run"):
        if entry.key in catalogue.broken:
            continue
        for document in entry.documents:
            wanted = document.get("nodes", 1)
            names = candidates(document, fleets) if wanted > 1 else ()
            # Fleets that are too small are told by `capacity`.
            large = [name for name in names if (nodes_max(fleets[name]) or wanted) >= wanted]
            if large and not any(_is_joined(fleets[name]) for name in large):
                yield entry, _problem(wanted, large)
                break


def _is_joined(fleet: Mapping[str, Any]) -> bool:
    if fleet.get("placement") == "cluster":
        return True
    if "ssh_config" in fleet:
        return "network" in fleet["ssh_config"]
    return any(name in fleet for name in ("local", "kubernetes", "slurm"))


def _problem(wanted: int, names: list[str]) -> Problem:
    listed = " and ".join(f"`{name}`" for name in names[:3])
    which = f"the hosts of {listed}" if len(names) <= 3 else f"the hosts of {len(names)} fleets"
    return Problem(
        "no-interconnect",
        ("nodes",),
        f"Its {wanted} nodes have to reach each other, and nothing says that {which} can.",
        f"Add `placement: cluster` to {f'`{names[0]}`' if len(names) == 1 else 'one of them'}, or"
        " name a fleet that has it in `fleets`.",
        level=Level.WARNING,
    )
