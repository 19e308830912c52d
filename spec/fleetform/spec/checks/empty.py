"""A tree without resources: planning it would remove everything, which is seldom meant."""

from __future__ import annotations

from fleetform.spec.findings import Level, Problem
from fleetform.spec.references import Catalogue


def check_empty(catalogue: Catalogue) -> Problem | None:
    """The problem of the tree as a whole, or None."""
    is_lacking = catalogue.has_unread or catalogue.nameless
    if catalogue.entries or catalogue.broken or is_lacking:
        return None
    return Problem(
        "empty-tree",
        (),
        "No document below this environment declares a fleet, a volume or a run.",
        "Add a document, or check that this is the right folder: documents end in `.yaml` or `.yml`.",
        level=Level.WARNING,
    )
