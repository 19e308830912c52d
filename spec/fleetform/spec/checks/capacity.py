"""
Runs that no declared fleet can ever take, as far as the tree itself can tell.

A warning and not an error: a run that finished long ago stays in the tree, and a fleet that
shrinks afterwards must not break its document. Only what fleets declare is compared; what is
detected on a host is known to the scheduler alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetform.spec.findings import Level, Problem
from fleetform.spec.quantities import format_bytes, format_millicores
from fleetform.spec.references import Catalogue, Entry


def check(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """One warning a document, with the reason of each fleet."""
    if any(key.kind == "fleet" for key in catalogue.broken) or catalogue.has_unread:
        return
    fleets = {entry.key.name: entry.documents[0] for entry in catalogue.of_kind("fleet")}
    if not fleets:
        return
    for entry in catalogue.of_kind("run"):
        if entry.key in catalogue.broken:
            continue
        for document in entry.documents:
            problem = _problem(document, fleets)
            if problem is not None:
                yield entry, problem
                break


def _problem(
    document: Mapping[str, Any], fleets: Mapping[str, Mapping[str, Any]]
) -> Problem | None:
    names: Sequence[str] = document.get("fleets") or sorted(fleets)
    if not ("nodes" in document or "resources" in document) or any(
        name not in fleets for name in names
    ):
        return None
    reasons = []
    for name in names:
        field, reason = _misfit(document, fleets[name])
        if not reason:
            return None
        reasons.append((field, f"`{name}` {reason}"))
    return Problem(
        "never-placed",
        (reasons[0][0],),
        "; ".join(reason for _, reason in reasons[:5]) + ".",
        "Ask for less, or declare a fleet that has it.",
        level=Level.WARNING,
    )


def _misfit(document: Mapping[str, Any], fleet: Mapping[str, Any]) -> tuple[str, str]:
    """The run's field that the fleet cannot satisfy, and why; empty when it may."""
    wanted = document.get("nodes", 1)
    most = fleet.get("nodes", {}).get("max", 1)
    if most is not None and wanted > most:
        return (
            "nodes",
            f"has at most {most} {'node' if most == 1 else 'nodes'} of the {wanted} asked for",
        )
    return "resources", _lacking(document.get("resources", {}), fleet.get("local", {}))


def _lacking(resources: Mapping[str, Any], has: Mapping[str, Any]) -> str:
    for field, what, shown in (
        ("cpu", "CPUs", format_millicores),
        ("memory", "of memory", format_bytes),
        ("disk", "of disk", format_bytes),
    ):
        least = (resources.get(field) or {}).get("min")
        if least is not None and field in has and least > has[field]:
            return f"has {shown(has[field])} {what} of the {shown(least)} asked for"
    if "gpu" in resources and has:
        return _lacking_gpu(resources["gpu"], has)
    return ""


def _lacking_gpu(wanted: Mapping[str, Any], has: Mapping[str, Any]) -> str:
    least = (wanted.get("count") or {"min": 1}).get("min") or 0
    if not least or "gpu" not in has:
        # GPUs that are not declared are detected, whatever else is declared.
        return ""
    gpu = has["gpu"]
    count = gpu["count"]["min"]
    if count < least:
        return f"has {count} GPUs a node of the {least} asked for"
    names = {name.lower() for name in wanted.get("name", ())}
    mine = {name.lower() for name in gpu.get("name", ())}
    if names and mine and not names & mine:
        return f"has {'/'.join(gpu['name'])} and not {'/'.join(wanted['name'])}"
    memory = gpu.get("memory", {}).get("min")
    asked = wanted.get("memory") or {}
    if memory is not None and memory < (asked.get("min") or 0):
        return f"has {format_bytes(memory)} a GPU of the {format_bytes(asked['min'])} asked for"
    return ""
