"""
Documents on their way through the overlays, and what is told of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from fleetform.spec.findings import Problem
from fleetform.spec.nodes import MappingNode, Node

if TYPE_CHECKING:
    from fleetform.spec.overlay.operations import Operation

__all__ = ["Layer", "Mistake", "Patch", "Written"]


@dataclass(frozen=True, slots=True)
class Written:
    """
    One document.

    Attributes:
        file: Where it lies, relative to the environment's folder; parts of it that were
            written elsewhere have their own (`nodes.ForeignSpan`).
        own: What the environment's own tree says of it, before anything inherited; None for
            a document of a base.
        is_spoiled: Something inherited does not fit it, so nobody can tell what it means.
    """

    file: str
    node: Node
    own: Node | None
    is_spoiled: bool = False

    @property
    def is_inherited(self) -> bool:
        """Whether it means anything else than its own text says."""
        return self.own is not self.node

    def spoiled(self) -> Written:
        return replace(self, is_spoiled=True)


class Mistake(NamedTuple):
    """
    A problem and the document that it is in: one of the tree, an environment's, a patch.

    `is_general`: nobody can tell which documents are meant, so none of them can be trusted. Else
    those that are meant are spoiled.
    """

    file: str
    node: Node
    problem: Problem
    is_general: bool = False


@dataclass(frozen=True, slots=True)
class Patch:
    """
    One entry of `patches:`; one of `merge`, `operations` and `is_deletion` says what it does.

    Attributes:
        file: Of the environment's document that it stands in, which is `node`.
        number: Its position there.
        content_file: Where its steps stand: in that document, or in a file of their own.
        content: That file's document; `content_path` leads to the steps from there.
    """

    file: str
    node: Node
    number: int
    target: str
    content_file: str
    content: Node
    content_path: tuple[str | int, ...] = ()
    merge: MappingNode | None = None
    operations: tuple[Operation, ...] = ()
    is_deletion: bool = False


class Layer(NamedTuple):
    """An environment's tree or a base's: its documents, and what it changes of those below."""

    documents: tuple[Written, ...]
    patches: tuple[Patch, ...]
