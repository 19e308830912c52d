"""
Runs that are larger than a quota that is sure to hold for them.

Whose a run is, is known when somebody applies it, and not from the tree. What is known here are
quotas of its queue, those that each person or project has, and those of the project where there
is only one. A warning, as for runs that no fleet can take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fleetform.spec.findings import Level, Problem
from fleetform.spec.names import counted
from fleetform.spec.quantities import format_bytes, format_duration, format_millicores
from fleetform.spec.references import Catalogue, Entry

_ANY = "any"


class _Excess(NamedTuple):
    field: str
    wanted: str
    allowed: str


def check_quotas(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """The first quota that a run is beyond, with the amount."""
    quotas = [entry for entry in catalogue.of_kind("quota") if entry.key not in catalogue.broken]
    projects = catalogue.names("project")
    for entry in catalogue.of_kind("run") if quotas else ():
        if entry.key in catalogue.broken:
            continue
        for document in entry.documents:
            problem = _first(document, quotas, projects)
            if problem is not None:
                yield entry, problem
                break


def _first(document: Mapping[str, Any], quotas: list[Entry], projects: list[str]) -> Problem | None:
    for quota in quotas:
        if not _holds(quota.documents[0], document, projects):
            continue
        excess = next(_excesses(document, quota.documents[0]), None)
        if excess is not None:
            return Problem(
                "beyond-quota",
                (excess.field,),
                f"It needs {excess.wanted}, and the quota `{quota.key.name}`"
                f" ({quota.place.file}:{quota.place.line}) allows {excess.allowed}: it would wait forever.",
                "Require less, or raise the quota.",
                level=Level.WARNING,
            )
    return None


def _holds(quota: Mapping[str, Any], run: Mapping[str, Any], projects: list[str]) -> bool:
    if "queue" in quota and quota["queue"] != run.get("queue"):
        return False
    if "user" in quota:
        return False
    if "project" in quota:
        return projects == [quota["project"]]
    return "queue" in quota or "each" in quota


def _excesses(run: Mapping[str, Any], quota: Mapping[str, Any]) -> Iterator[_Excess]:
    nodes: int = run.get("nodes", 1)
    resources: Mapping[str, Any] = run.get("resources", {})
    for field in ("nodes", "jobs"):
        if quota.get(field, nodes) < nodes:
            yield _Excess(
                "nodes" if nodes > 1 else "commands",
                counted(nodes, field.removesuffix("s")),
                f"{quota[field]}",
            )
    for field, name, shown in (
        ("cpu", "cpus", format_millicores),
        ("memory", "memory", format_bytes),
    ):
        least = ((resources.get(field) or {}).get("min") or 0) * nodes
        if least and quota.get(name, least) < least:
            what = " CPUs" if field == "cpu" else " of memory"
            yield _Excess("resources", f"{shown(least)}{what}", shown(quota[name]))
    yield from _gpu_excesses(resources.get("gpu"), nodes, quota.get("gpus", {}))
    duration, longest = run.get("max_duration"), quota.get("max_duration")
    if duration is not None and longest is not None and duration > longest:
        yield _Excess("max_duration", format_duration(duration), format_duration(longest))


def _gpu_excesses(
    gpu: Mapping[str, Any] | None, nodes: int, allowed: Mapping[str, int]
) -> Iterator[_Excess]:
    if gpu is None:
        return
    wanted = ((gpu.get("count") or {"min": 1}).get("min") or 0) * nodes
    if allowed.get(_ANY, wanted) < wanted:
        yield _Excess("resources", counted(wanted, "GPU"), f"{allowed[_ANY]}")
    named = {name.lower(): count for name, count in allowed.items() if name != _ANY}
    asked = [name.lower() for name in gpu.get("name", ())]
    # Any of several names will do; only if none of them is allowed enough, it is too much.
    if asked and all(named.get(name, wanted) < wanted for name in asked):
        most = max(named[name] for name in asked)
        yield _Excess("resources", f"{wanted} {'/'.join(gpu['name'])}", f"{most}")
