"""
Which fields of a document the checks between documents look at.

Whoever changes another field of a run has changed nothing for the rest of the tree. A test holds
that no check looks at more than this.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CLAIMS", "FACTS"]

FACTS: Mapping[str, frozenset[str]] = {
    "run": frozenset(
        {
            "depends_on",
            "files",
            "fleets",
            "max_duration",
            "nodes",
            "queue",
            "resources",
            "volumes",
        }
    ),
    "volume": frozenset({"backend", "claim_name", "fleet", "path", "region", "volume_id"}),
}
"""
By kind, top-level fields. Kinds that are not among these are looked at as a whole; there are few
of them in a tree.
"""

CLAIMS: Mapping[str, frozenset[str]] = {
    "volume": frozenset({"claim_name", "path", "region", "volume_id"}),
}
"""
Of these, the fields that say what a document has to itself (`paths.places`), and that no other
check looks at: two documents matter to each other here only where they claim the same or lie
in each other.
"""
