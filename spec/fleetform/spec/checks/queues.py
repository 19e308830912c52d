"""
Runs that their queue would never let in, and two queues for those that name none.

A warning: a queue's bounds may be drawn closer when a run has long finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level, Problem
from fleetform.spec.names import counted
from fleetform.spec.quantities import format_duration
from fleetform.spec.references import Catalogue, Entry


def check_queues(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Each bound that a run is beyond; then queues and gateways that are both the default."""
    for entry in catalogue.of_kind("run"):
        if entry.key not in catalogue.broken:
            yield from ((entry, problem) for problem in _refusals(entry, catalogue))
    for kind in ("gateway", "queue"):
        yield from _defaults(catalogue, kind)


def _refusals(entry: Entry, catalogue: Catalogue) -> Iterator[Problem]:
    told: set[str] = set()
    for document in entry.documents:
        key = ResourceKey("queue", document.get("queue", ""))
        queue = catalogue.by_key.get(key)
        if queue is None or key in catalogue.broken:
            continue
        for field, detail, advice in _beyond(document, queue.documents[0], key.name):
            if field not in told:
                yield Problem("queue-refuses", (field,), detail, advice, level=Level.WARNING)
            told.add(field)


def _beyond(
    run: Mapping[str, Any], queue: Mapping[str, Any], name: str
) -> Iterator[tuple[str, str, str]]:
    """Fields of the run with what the queue says against them, and what to do."""
    duration, longest = run.get("max_duration"), queue.get("max_duration")
    if duration is not None and longest is not None and duration > longest:
        yield (
            "max_duration",
            (
                f"`{name}` takes runs of {format_duration(longest)} at most, and this one may take"
                f" {format_duration(duration)}."
            ),
            f"Write `max_duration: {format_duration(longest)}`, or choose a queue for longer runs.",
        )
    nodes, bounds = run.get("nodes", 1), queue.get("nodes", {})
    least, most = bounds.get("min"), bounds.get("max")
    if most is not None and nodes > most:
        yield (
            "nodes" if "nodes" in run else "queue",
            f"`{name}` takes runs on {counted(most, 'node')} at most, and this one is on {nodes}.",
            "Use fewer nodes, or choose a queue for larger runs.",
        )
    if least is not None and nodes < least:
        yield (
            "nodes" if "nodes" in run else "queue",
            f"`{name}` takes runs on {counted(least, 'node')} at least, and this one is on {nodes}.",
            "Choose a queue for smaller runs.",
        )
    fleets, leads = set(run.get("fleets", ())), set(queue.get("fleets", ()))
    if fleets and leads and not fleets & leads:
        yield (
            "fleets",
            f"`{name}` leads to {_listed(leads)} only.",
            "Name one of these fleets, or a queue that leads to yours.",
        )


def _defaults(catalogue: Catalogue, kind: str) -> Iterator[tuple[Entry, Problem]]:
    chosen = [entry for entry in catalogue.of_kind(kind) if entry.documents[0].get("default")]
    for entry in chosen if len(chosen) > 1 else ():
        other = chosen[0] if entry is not chosen[0] else chosen[1]
        if other.key == entry.key:
            continue  # Told as a duplicate.
        yield (
            entry,
            Problem(
                "two-defaults",
                ("default",),
                f"The {kind} `{other.key.name}` ({other.place.file}:{other.place.line}) is the default too; only one can be the default.",
                "Keep `default: true` in one of them.",
                at_key=True,
            ),
        )


def _listed(names: set[str]) -> str:
    return " and ".join(f"`{name}`" for name in sorted(names))
