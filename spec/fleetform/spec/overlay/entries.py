"""
An entry of `patches:` as a value: which documents, and what becomes of them.
"""

from __future__ import annotations

from dataclasses import replace

from fleetform.spec.findings import Problem
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from fleetform.spec.overlay.foreign import foreign
from fleetform.spec.overlay.operations import parse_operations
from fleetform.spec.overlay.written import Mistake, Patch

__all__ = ["read_entry"]


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
