"""
Warn of runs that no declared fleet can ever take: too large, on nodes that nothing joins, or with an unknown GPU.

These are warnings and not errors: a run that finished long ago stays in the tree, and a fleet that
shrinks afterwards must not break its document. Only what fleets declare is compared; what is detected
on a host is known to the scheduler alone.

Nodes of one run speak to each other all the time. A fleet of this machine, of a cluster, with
`placement: cluster`, or with a network of its own joins them; hosts of a cloud otherwise may stand in
different zones, where the run starts and then crawls or waits for itself.

A name of a GPU that is neither a known model nor on a declared fleet is mostly misspelt. New models
appear, so a name that a fleet or one of its hosts declares is right whatever it is; and a fleet that
cannot be read may be the one that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.checks.hosts import Pool, Supply, candidates, hosts_of, pools
from fleetform.spec.findings import Level, Problem
from fleetform.spec.names import counted, nearest
from fleetform.spec.quantities import format_bytes, format_millicores
from fleetform.spec.quantities.gpu import GPU_NAMES, is_gpu_name, model_words
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


def check_interconnect(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """One warning a document, where the fleets that it may be placed on are all declared."""
    known = pools(catalogue)
    for entry in catalogue.of_kind("run") if known else ():
        if entry.key in catalogue.broken:
            continue
        for document in entry.documents:
            wanted = document.get("nodes", 1)
            names = candidates(document, known, catalogue) if wanted > 1 else ()
            # Fleets that are too small are told by `capacity`.
            large = [name for name in names if (known[name].nodes_max or wanted) >= wanted]
            if large and not any(known[name].is_joined for name in large):
                yield entry, _interconnect_problem(wanted, large)
                break


def _interconnect_problem(wanted: int, names: list[str]) -> Problem:
    listed = " and ".join(f"`{name}`" for name in names[:3])
    which = f"the hosts of {listed}" if len(names) <= 3 else f"the hosts of {len(names)} fleets"
    return Problem(
        "no-interconnect",
        ("nodes",),
        f"Its {wanted} nodes must reach each other, and no fleet declares that {which} can.",
        f"Add `placement: cluster` to {f'`{names[0]}`' if len(names) == 1 else 'one of them'}, or"
        " name a fleet that has it in `fleets`.",
        level=Level.WARNING,
    )


# Comparing one name with all models takes a millisecond.
_SUGGESTIONS_MAX = 50

# Digits that look like letters.
_LOOKALIKE = str.maketrans("oil", "011")
_ALIKE = {name.translate(_LOOKALIKE): written for name, written in GPU_NAMES.items()}


def check_gpus(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """One warning for each such name in a document."""
    if not catalogue.is_whole("fleet"):
        return
    offered = {_bare(name) for entry in catalogue.of_kind("fleet") for name in _offered(entry)}
    judged: dict[str, Problem | None] = {}
    for kind in ("run", "fleet"):
        for entry in catalogue.of_kind(kind):
            for name in dict.fromkeys(_asked(entry)):
                if name not in judged:
                    is_right = _bare(name) in offered or is_gpu_name(name)
                    judged[name] = None if is_right else _gpu_problem(name, len(judged))
                problem = judged[name]
                if problem is not None:
                    yield entry, problem


def close_gpu_name(name: str) -> str | None:
    """Return the model of which a name is most likely a slip; None where none is close."""
    wrong = _bare(name)
    return _ALIKE.get(wrong.translate(_LOOKALIKE)) or nearest(wrong, GPU_NAMES.values(), cutoff=0.7)


def _offered(entry: Entry) -> Iterator[str]:
    """The names that a fleet has of its own or its hosts have; `resources` only asks for one."""
    for fleet in entry.documents:
        yield from _gpu_names(fleet.get("local"))
        for host in hosts_of(fleet):
            yield from _gpu_names(host.get("capacity"))


def _asked(entry: Entry) -> Iterator[str]:
    for document in entry.documents:
        yield from _gpu_names(document.get("resources"))


def _gpu_names(resources: Mapping[str, Any] | None) -> Iterator[str]:
    gpu = (resources or {}).get("gpu")
    # An expression that the start of the run fills in is none of these.
    yield from gpu.get("name", ()) if isinstance(gpu, Mapping) else ()


def _bare(name: str) -> str:
    return "".join(model_words(name))


def _gpu_problem(name: str, judged_count: int) -> Problem:
    close = close_gpu_name(name) if judged_count < _SUGGESTIONS_MAX else None
    return Problem(
        "unknown-gpu",
        ("resources", "gpu"),
        f"`{name}` is neither a GPU that fleetform knows nor one that a fleet declares.",
        f"Did you mean `{close}`?"
        if close
        else "Correct the name, or declare it under `gpu` of the fleet that has it.",
        level=Level.WARNING,
        word=name,
    )
