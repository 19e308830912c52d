"""A tree without resources: planning it would remove everything, which is seldom meant."""

from __future__ import annotations

from fleetform.spec.findings import Level, Problem
from fleetform.spec.references import Catalogue


def check(catalogue: Catalogue) -> Problem | None:
    """The problem of the tree as a whole, or None."""
    if catalogue.entries or catalogue.broken or catalogue.has_unread:
        return None
    return Problem(
        "empty-tree",
        (),
        "No document below this environment declares a fleet, a volume or a run.",
        "Add a document, or check that this is the right folder: documents end in `.yaml` or `.yml`.",
        level=Level.WARNING,
    )
