"""Two volumes at one path: what one run writes to the first, another would find in the second."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.spec.findings import Problem
from fleetform.spec.references import Catalogue, Entry


def check(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Volumes of one fleet at one path."""
    claimed: dict[tuple[str, str], Entry] = {}
    for entry in catalogue.of_kind("volume"):
        document = entry.documents[0]
        if "fleet" not in document or "path" not in document:
            continue
        first = claimed.setdefault((document["fleet"], document["path"]), entry)
        # One that is declared twice is told as a duplicate.
        if first is not entry and first.key != entry.key:
            yield (
                entry,
                Problem(
                    "path-claimed-twice",
                    ("path",),
                    f"The volume `{first.key.name}` ({first.place.file}:{first.place.line}) lies at"
                    " the same path of the same fleet; deleting one would delete the other's data.",
                    "Give one of them another path, or mount the same volume in both runs.",
                ),
            )
