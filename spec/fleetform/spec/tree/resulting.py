"""
The documents that a tree comes to, before they are read as their kinds: for whoever shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fleetform.spec.desired import Loaded
from fleetform.spec.nodes import Node
from fleetform.spec.overlay.profiles import TYPE as PROFILE
from fleetform.spec.overlay.targets import Address, address

__all__ = ["Resulting", "ResultingDocument", "load_resulting"]


class ResultingDocument(NamedTuple):
    """A document with all that it inherits; `file` is where its own text lies."""

    address: Address
    file: str
    node: Node


@dataclass(frozen=True, slots=True)
class Resulting:
    """
    What a tree comes to.

    Attributes:
        loaded: The same tree, read: with its findings.
        documents: In the order of the tree, a base's first. Profiles are parts of the runs that
            name them by now, and not among them.
        values: What `${{ values.x }}` stands for.
        patch_files: Where patches were written.
    """

    loaded: Loaded
    documents: tuple[ResultingDocument, ...]
    values: Mapping[str, Any]
    patch_files: frozenset[str]


def load_resulting(root: Path, *, buffers: Mapping[str, bytes] | None = None) -> Resulting:
    """
    Read the environment in the folder `root`, or the base that it is.

    `buffers` are as for `load_tree`: what stands for a file's content.
    """
    from fleetform.spec.tree.load import Loader

    with closing(Loader(Path(root), None, buffers)) as loader:
        loaded = loader.load()
        documents = []
        for file, node in loader.written():
            found = address(node)
            if found is not None and found.kind != PROFILE:
                documents.append(ResultingDocument(found, file, node))
        environments = loader.environments
        patches = {
            patch.content_file for folder in environments.folders for patch in folder.patches
        }
        return Resulting(loaded, tuple(documents), environments.values, frozenset(patches))
