"""
Runs that no declared fleet can ever take, as far as the tree itself can tell.

A warning and not an error: a run that finished long ago stays in the tree, and a fleet that
shrinks afterwards must not break its document. Only what fleets declare is compared; what is
detected on a host is known to the scheduler alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.checks.supply import Pool, Supply, candidates, pools
from fleetform.spec.findings import Level, Problem
from fleetform.spec.plurals import counted
from fleetform.spec.quantities import format_bytes, format_millicores
from fleetform.spec.references import Catalogue, Entry

_FIELDS = frozenset({"fleets", "nodes", "queue", "resources", ""})
"""What is compared: a document with an error in one of these is not judged."""


def check_capacity(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """One warning a document, with the reason of each fleet."""
    known = pools(catalogue)
    if not known:
        return
    # Most runs of a tree ask for what another one asks for, of as many fleets.
    judged: dict[str, Problem | None] = {}
    for entry in catalogue.of_kind("run"):
        if not entry.wrong.isdisjoint(_FIELDS):
            continue
        for document in entry.documents:
            if not ("nodes" in document or "resources" in document):
                continue
            asked = repr([document.get(name) for name in ("fleets", "queue", "nodes", "resources")])
            if asked not in judged:
                judged[asked] = _capacity_problem(document, known, catalogue)
            problem = judged[asked]
            if problem is not None:
                yield entry, problem
                break


def _capacity_problem(
    document: Mapping[str, Any], known: Mapping[str, Pool], catalogue: Catalogue
) -> Problem | None:
    names = candidates(document, known, catalogue)
    if not names:
        return None
    reasons = []
    for name in names:
        field, reason = _misfit(document, known[name])
        if not reason:
            return None
        reasons.append((field, f"`{name}` {reason}"))
    return Problem(
        "never-placed",
        (reasons[0][0],),
        "; ".join(reason for _, reason in reasons[:5]) + ".",
        "Require less, or declare a fleet that has it.",
        level=Level.WARNING,
    )


def _misfit(document: Mapping[str, Any], fleet: Pool) -> tuple[str, str]:
    """The run's field that the fleet cannot satisfy, and why; empty when it may."""
    wanted = document.get("nodes", 1)
    most = fleet.nodes_max
    if most is not None and wanted > most:
        return (
            "nodes",
            f"has at most {counted(most, 'node')} of the {wanted} asked for",
        )
    resources = document.get("resources", {})
    reason = ""
    for has in fleet.hosts:
        lacking = _lacking(resources, has)
        if not lacking:
            # One sort of host that will do is enough; which of several, is for the scheduler.
            return "resources", ""
        reason = reason or lacking
    return "resources", reason


def _lacking(resources: Mapping[str, Any], has: Supply) -> str:
    for field, what, shown in (
        ("cpu", "CPUs", format_millicores),
        ("memory", "of memory", format_bytes),
        ("disk", "of disk", format_bytes),
    ):
        least = (resources.get(field) or {}).get("min")
        most = getattr(has, field)
        if least is not None and most is not None and least > most:
            return f"has {shown(most)} {what} of the {shown(least)} asked for"
    return _lacking_gpu(resources["gpu"], has) if "gpu" in resources else ""


def _lacking_gpu(wanted: Mapping[str, Any], has: Supply) -> str:
    least = (wanted.get("count") or {"min": 1}).get("min") or 0
    # Of slices, a GPU may have several.
    if not least or "slice" in wanted:
        return ""
    if has.gpus is not None and has.gpus < least:
        return f"has {counted(has.gpus, 'GPU')} a node of the {least} asked for"
    names = {name.lower() for name in wanted.get("name", ())}
    if names and has.gpu_names and not names & has.gpu_names:
        return f"has {_listed(has.gpu_names)} and not {'/'.join(wanted['name'])}"
    asked = (wanted.get("memory") or {}).get("min") or 0
    if has.gpu_memory is not None and has.gpu_memory < asked:
        return f"has {format_bytes(has.gpu_memory)} a GPU of the {format_bytes(asked)} asked for"
    return ""


def _listed(names: frozenset[str]) -> str:
    return "/".join(sorted(name.upper() for name in names))
