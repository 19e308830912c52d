"""
Patches on documents, in the order they are written: each sees what those before it left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fleetform.spec.findings import Problem
from fleetform.spec.nodes import MappingNode
from fleetform.spec.overlay import operations, targets
from fleetform.spec.overlay.measure import WORK_MAX, size_of
from fleetform.spec.overlay.merge import merge_document
from fleetform.spec.overlay.written import Mistake, Patch, Written

__all__ = ["patched"]

# Whoever has mistaken that many targets has mistaken something else.
_SUGGESTIONS_MAX = 20


def patched(
    documents: Sequence[Written], patches: Sequence[Patch], *, is_complete: bool
) -> tuple[list[Written], list[Mistake]]:
    """
    The documents as the patches leave them, and what is wrong.

    Args:
        documents: In any order, which is kept.
        patches: In order.
        is_complete: Every document is known. If not, a target that nothing matches may be
            one of those that could not be read.
    """
    if not patches:
        return list(documents), []
    kept: list[Written | None] = list(documents)
    addresses = [targets.address(one.node) for one in documents]
    found = targets.Index(addresses)
    mistakes: list[Mistake] = []
    work = 0
    for patch in patches:
        hit = [number for number in found.matching(patch.target) if kept[number] is not None]
        if not hit and is_complete:
            known = addresses if len(mistakes) < _SUGGESTIONS_MAX else ()
            problem = targets.matches_nothing(patch.target, filter(None, known))
            mistakes.append(_in_entry(patch, problem))
        work += len(hit) * _size(patch)
        if work > WORK_MAX:
            mistakes.append(_in_entry(patch, _too_much()))
            break
        for number in hit:
            before = kept[number]
            assert before is not None, "what is left out is not hit"
            kept[number] = _apply(before, patch, mistakes)
    return [one for one in kept if one is not None], mistakes


def _size(patch: Patch) -> int:
    """At most how many values it puts into a document."""
    if patch.merge is not None:
        return size_of(patch.merge)
    steps = sum(size_of(one.value) if one.value is not None else 1 for one in patch.operations)
    return max(1, steps)


def _apply(document: Written, patch: Patch, mistakes: list[Mistake]) -> Written | None:
    if patch.is_deletion:
        return None
    if document.is_spoiled:
        # What a step makes of a document that another step did not fit is nobody's intent.
        return document
    assert isinstance(document.node, MappingNode), "it has an address"
    if patch.merge is not None:
        return replace(document, node=merge_document(document.node, patch.merge))
    node, problem = operations.apply(document.node, patch.operations)
    if problem is None:
        return replace(document, node=node)
    mistakes.append(_in_content(patch, problem, document))
    return document.spoiled()


def _in_entry(patch: Patch, problem: Problem) -> Mistake:
    path = ("patches", patch.number, *problem.path)
    return Mistake(patch.file, patch.node, _at(problem, path), is_general=True)


def _in_content(patch: Patch, problem: Problem, document: Written) -> Mistake:
    where = f"{targets.address(document.node)} ({document.file})"
    told = replace(problem, detail=f"For {where}: {problem.detail}")
    return Mistake(
        patch.content_file, patch.content, _at(told, (*patch.content_path, *problem.path))
    )


def _at(problem: Problem, path: tuple[str | int, ...]) -> Problem:
    return replace(problem, path=path)


def _too_much() -> Problem:
    return Problem(
        "patch-failed",
        ("target",),
        f"With this one, patches put more than {WORK_MAX} values into documents.",
        "Name fewer documents, or write less into each.",
    )
