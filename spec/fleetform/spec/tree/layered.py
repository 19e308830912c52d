"""
What overlays make of documents of which most are stood for by a reading.

They see of those the few scalars by which they choose. Whatever they do more to is laid open, and
they are asked once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fleetform.spec.overlay.layers import overlay
from fleetform.spec.overlay.written import Layer, Mistake, Written
from fleetform.spec.tree.bases import Folder
from fleetform.spec.tree.cache import KeptFile
from fleetform.spec.tree.header import Given
from fleetform.spec.tree.sources import Sources

__all__ = ["overlaid"]


def overlaid(
    sources: Sources, folders: Sequence[Folder], given: Sequence[Sequence[Given]], touched: set[int]
) -> tuple[list[Written], list[Mistake]]:
    """
    The documents that all folders come to, those that are touched with all their nodes.

    Args:
        sources: Where they are written.
        folders: The lowest base first.
        given: For each folder, its files.
        touched: Takes the ids of nodes that are not as their file has them.
    """
    layers = [
        Layer(tuple(_documents(sources, files)), folder.patches)
        for files, folder in zip(given, folders, strict=True)
    ]
    while True:
        documents, mistakes = overlay(layers, is_complete=not sources.unread)
        untouched = {id(one) for one in documents}
        wrong = {id(mistake.node) for mistake in mistakes}
        opened = [_opened(sources, layer, untouched, wrong) for layer in layers]
        if all(one is two for one, two in zip(opened, layers, strict=True)):
            known = {id(one) for layer in layers for one in layer.documents}
            touched.update(
                id(one.node) for one in documents if id(one) not in known or one.is_spoiled
            )
            return documents, mistakes
        layers = opened


def _documents(sources: Sources, files: Iterable[Given]) -> Iterator[Written]:
    for file in files:
        yield from sources.stubs(file) if isinstance(file, KeptFile) else file


def _opened(sources: Sources, layer: Layer, untouched: set[int], wrong: set[int]) -> Layer:
    """The layer with nodes where an overlay did more than to look; itself where it did not."""
    documents = []
    is_opened = False
    for one in layer.documents:
        stub = sources.stub(one)
        if stub is None or (id(one) in untouched and id(one.node) not in wrong):
            documents.append(one)
            continue
        # What has changed meanwhile is left out: nobody can tell what it declares.
        found = sources.lay_open(stub.file, stub.number)
        documents.extend([found] if found else [])
        is_opened = True
    return Layer(tuple(documents), layer.patches) if is_opened else layer
