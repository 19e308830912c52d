"""
Runs on several nodes that no fleet joins.

Nodes of one run speak to each other all the time. A fleet of this machine, of a cluster, with
`placement: cluster`, or with a network of its own joins them; hosts of a cloud otherwise may
stand in different zones, where the run starts and then crawls or waits for itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.spec.checks.supply import candidates, pools
from fleetform.spec.findings import Level, Problem
from fleetform.spec.references import Catalogue, Entry


def check_interconnect(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """One warning a document, where the fleets that it may be placed on are all declared."""
    known = pools(catalogue)
    for entry in catalogue.of_kind("run") if known else ():
        if entry.key in catalogue.broken:
            continue
        for document in entry.documents:
            wanted = document.get("nodes", 1)
            names = candidates(document, known, catalogue) if wanted > 1 else ()
            # Fleets that are too small are told by `capacity`.
            large = [name for name in names if (known[name].nodes_max or wanted) >= wanted]
            if large and not any(known[name].is_joined for name in large):
                yield entry, _interconnect_problem(wanted, large)
                break


def _interconnect_problem(wanted: int, names: list[str]) -> Problem:
    listed = " and ".join(f"`{name}`" for name in names[:3])
    which = f"the hosts of {listed}" if len(names) <= 3 else f"the hosts of {len(names)} fleets"
    return Problem(
        "no-interconnect",
        ("nodes",),
        f"Its {wanted} nodes must reach each other, and no fleet declares that {which} can.",
        f"Add `placement: cluster` to {f'`{names[0]}`' if len(names) == 1 else 'one of them'}, or"
        " name a fleet that has it in `fleets`.",
        level=Level.WARNING,
    )
