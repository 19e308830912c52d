"""Secrets that nothing mentions: one that nobody needs is one too many."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.spec.findings import Level, Problem
from fleetform.spec.references import Catalogue, Entry


def check_unused(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Notes, and only where everything else of the tree could be read."""
    secrets = catalogue.whole("secret")
    if not secrets or catalogue.broken:
        return
    used = {
        reference.name
        for entry in catalogue.entries
        for reference in entry.references
        if reference.kind == "secret" and reference.field != "grants"
    }
    if not used.issubset(secrets):
        # What is misspelt, and told already, may be what uses it.
        return
    for entry in catalogue.of_kind("secret"):
        if entry.key.name not in used:
            yield (
                entry,
                Problem(
                    "unused",
                    ("name",),
                    f"No document mentions `${{{{ secrets.{entry.key.name} }}}}`.",
                    "Remove it if it is no longer needed.",
                    level=Level.NOTE,
                ),
            )
