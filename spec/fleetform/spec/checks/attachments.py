"""
Volumes that a run cannot have together, or not where it may be placed.

A directory of a fleet is on that fleet's hosts and nowhere else. A warning: what is mounted may
be moved after a run has finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level, Problem
from fleetform.spec.references import Catalogue, Entry


def check_attachments(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Told at the first volume that does not go with the rest."""
    for entry in catalogue.of_kind("run"):
        if entry.key in catalogue.broken:
            continue
        for document in entry.documents:
            problem = _attachment_problem(document, catalogue)
            if problem is not None:
                yield entry, problem
                break


def _attachment_problem(document: Mapping[str, Any], catalogue: Catalogue) -> Problem | None:
    fleets = set(document.get("fleets", ()))
    first: tuple[str, str] | None = None
    for name in _attached(document):
        key = ResourceKey("volume", name)
        volume = catalogue.by_key.get(key)
        if volume is None or key in catalogue.broken or "fleet" not in volume.documents[0]:
            continue
        fleet = volume.documents[0]["fleet"]
        if fleets and fleet not in fleets:
            return _apart(
                name,
                f"The volume `{name}` is on the hosts of `{fleet}`, and the run may be placed on"
                f" {' and '.join(f'`{one}`' for one in sorted(fleets))} only.",
                f"Add `{fleet}` to `fleets`, or mount a volume of these hosts.",
            )
        if first is not None and fleet != first[1]:
            return _apart(
                name,
                f"The volume `{name}` is on the hosts of `{fleet}`, and `{first[0]}` on those of"
                f" `{first[1]}`; no host has both.",
                "Mount volumes of one fleet.",
            )
        first = first or (name, fleet)
    return None


def _attached(document: Mapping[str, Any]) -> Iterator[str]:
    """Volumes that have to be there; of several names any one will do."""
    for mount in document.get("volumes", ()):
        if isinstance(mount.get("name"), str) and not mount.get("instance"):
            yield mount["name"]


def _apart(name: str, detail: str, advice: str) -> Problem:
    return Problem("never-placed", ("volumes",), detail, advice, level=Level.WARNING, word=name)
