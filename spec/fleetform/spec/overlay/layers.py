"""
Lay the layers of an environment over each other, from its lowest base to the profiles.

Patches are applied in the order they are written: each sees what those before it left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fleetform.spec.findings import Problem
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from fleetform.spec.overlay import operations, targets
from fleetform.spec.overlay.documents import (
    WORK_MAX,
    Layer,
    Mistake,
    Patch,
    Written,
    foreign,
    size_of,
)
from fleetform.spec.overlay.merge import merge_document
from fleetform.spec.overlay.operations import parse_operations
from fleetform.spec.overlay.profiles import with_profiles
from fleetform.spec.overlay.targets import address

__all__ = ["overlay", "patched", "read_entry"]


def read_entry(
    file: str, node: Node, number: int, *, content_file: str = "", content: Node | None = None
) -> tuple[Patch | None, list[Mistake]]:
    """
    The patch at position `number` of an environment's document, which its model accepts.

    Args:
        file: Of the environment's document.
        node: That document.
        number: From 0.
        content_file: The file that the entry names for its steps.
        content: What that holds.

    Returns:
        None for one that cannot be carried out, and why.
    """
    entry = _entry(node, number)
    patch = Patch(file, node, number, _text(entry, "target"), file, node)
    if content is not None:
        return _with_content(replace(patch, content_file=content_file, content=content), content)
    for name in ("merge", "patch"):
        said = entry.get(name)
        if said is not None:
            path = ("patches", number, name)
            return _with_content(replace(patch, content_path=path), said)
    return replace(patch, is_deletion=True), []


def _with_content(patch: Patch, said: Node) -> tuple[Patch | None, list[Mistake]]:
    """What a mapping merges, and what a list of steps does."""
    lent = foreign(said, patch.content_file)
    if isinstance(lent, MappingNode):
        return replace(patch, merge=lent), []
    operations, problems = parse_operations(lent)
    if not problems:
        return replace(patch, operations=tuple(operations)), []
    mistakes = [
        Mistake(patch.content_file, patch.content, _below(problem, patch.content_path))
        for problem in problems
    ]
    return None, mistakes


def _below(problem: Problem, path: tuple[str | int, ...]) -> Problem:
    return replace(problem, path=(*path, *problem.path))


def _entry(node: Node, number: int) -> MappingNode:
    assert isinstance(node, MappingNode), "its model has read it"
    patches = node.get("patches")
    assert isinstance(patches, SequenceNode), "its model has read it"
    entry = patches.items[number]
    assert isinstance(entry, MappingNode), "its model has read it"
    return entry


def _text(entry: MappingNode, name: str) -> str:
    said = entry.get(name)
    assert isinstance(said, ScalarNode), "its model has read it"
    return str(said.value)


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


def overlay(
    layers: Sequence[Layer], *, is_complete: bool = True
) -> tuple[list[Written], list[Mistake]]:
    """
    The documents that an environment declares with its bases, and what is wrong.

    Args:
        layers: From the lowest base to the environment itself.
        is_complete: Every document could be read; if not, none is missed.
    """
    documents: list[Written] = []
    mistakes: list[Mistake] = []
    for layer in layers:
        documents = _joined(documents, layer.documents, mistakes)
        documents, wrong = patched(documents, layer.patches, is_complete=is_complete)
        mistakes.extend(wrong)
    documents, wrong = with_profiles(documents, is_complete=is_complete)
    return documents, [*mistakes, *wrong]


def _joined(below: list[Written], own: Sequence[Written], mistakes: list[Mistake]) -> list[Written]:
    """Both layers' documents; one that both declare is a mistake of the upper one."""
    if not below:
        return list(own)
    declared = {found: one for one in below if (found := address(one.node)) is not None}
    by_name = {str(found): one for found, one in declared.items()}
    taken = set()
    kept = []
    for document in own:
        found = address(document.node)
        other = by_name.get(str(found)) if found is not None else None
        if other is None:
            kept.append(document)
            continue
        taken.add(id(other))
        kept.append(document.spoiled())
        mistakes.append(Mistake(document.file, document.node, _declared_below(str(found), other)))
    return [*(one for one in below if id(one) not in taken), *kept]


def _declared_below(name: str, other: Written) -> Problem:
    line = other.node.place.line
    return Problem(
        "declared-in-base",
        ("name",),
        f"The base declares {name} too, in {other.file}:{line}; a resource can be declared only once.",
        f"Patch the base's in `environment.yaml`: `patches: [{{target: {name}, merge: {{…}}}}]`;"
        " or choose another name.",
    )
