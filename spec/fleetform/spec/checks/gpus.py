"""
Names of GPUs that are neither known models nor on a declared fleet: mostly misspelt.

A warning and not an error, because new models appear: a name that a fleet or one of its hosts
declares is right whatever it is. A fleet that cannot be read may be the one that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.checks.supply import hosts_of
from fleetform.spec.findings import Level, Problem
from fleetform.spec.names import nearest
from fleetform.spec.quantities.gpu_names import GPU_NAMES, is_gpu_name, model_words
from fleetform.spec.references import Catalogue, Entry

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
