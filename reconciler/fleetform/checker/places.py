"""That no volume comes where another one still is."""

from __future__ import annotations

import json
from collections.abc import Iterator

from fleetform.checker.context import Reading
from fleetform.checker.invariant import Invariant, Violation
from fleetform.model.rows import restless_rows
from fleetform.spec.desired import ResourceKey
from fleetform.spec.folders import folders_of

_TAKES = frozenset({"volume.make", "volume.adopt"})
_EMPTIES = frozenset({"volume.remove", "volume.snapshot"})


def check_places_free(reading: Reading) -> Iterator[Violation]:
    """A directory is one volume's; only what is let go leaves it to whoever takes it in as it is."""
    taking = [step for _, step in reading.steps if step.verb in _TAKES]
    if not taking:
        return
    there = _staying(reading)
    around = {folder: key for path, key in there.items() for folder in folders_of(path)}
    for step in taking:
        path = str(step.arguments.get("path", ""))
        has_it = there.get(path)
        if has_it is not None and step.verb == "volume.adopt" and _is_let_go(reading, has_it):
            has_it = None
        near = [has_it, around.get(path), *(there.get(folder) for folder in folders_of(path))]
        for other in near:
            if other is not None and other != step.resource:
                yield Violation(
                    Invariant.PLACE_IS_FREE, f"{step.resource} would be at {path}, where {other} is"
                )


def _staying(reading: Reading) -> dict[str, ResourceKey]:
    """By their directories, volumes whose data is there after the plan; no two have one place."""
    found: dict[str, ResourceKey] = {}
    # What is as declared is in nobody's way: the language lets no two come to one place.
    for key, row in restless_rows(reading.rows).items():
        if key.kind != "volume" or row.archived:
            continue
        path = json.loads(row.document).get("path")
        emptied = any(f"{verb}:{key}" in reading.steps_by_key for verb in _EMPTIES)
        if path is not None and not emptied:
            found[path] = key
    return found


def _is_let_go(reading: Reading, key: ResourceKey) -> bool:
    return f"volume.forget:{key}" in reading.steps_by_key
