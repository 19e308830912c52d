"""
The few scalars of a document by which overlays choose it, kept in place of its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from fleetform.spec.nodes import MappingNode, Node, ScalarNode, Span
from fleetform.spec.overlay.written import Written
from fleetform.spec.tree.cache import Header, KeptFile

__all__ = ["Given", "header_of", "is_overlaid", "standing_for"]

Given: TypeAlias = KeptFile | list[Written]
"""A file's documents: as they were read before, or as they are."""

# What `overlay` asks of a document before it changes it.
_CHOSEN_BY = frozenset({"type", "name", "profile"})
_NO_SPAN = Span(0, 0, 0)


def header_of(node: Node) -> Header | None:
    """What overlays ask of a document; None where that takes its nodes."""
    if not isinstance(node, MappingNode):
        return ()
    said = [(key.raw, value) for key, value in node.entries if key.raw in _CHOSEN_BY]
    if any(not isinstance(value, ScalarNode) for _, value in said):
        return None
    header = tuple(
        (key, value.value, value.raw) for key, value in said if isinstance(value, ScalarNode)
    )
    # A profile becomes a part of others.
    return None if ("type", "profile") in {(key, raw) for key, _, raw in header} else header


def standing_for(header: Header) -> Node:
    """A node that overlays may look at."""
    entries = [
        (ScalarNode(key, key, "", _NO_SPAN), ScalarNode(value, raw, "", _NO_SPAN))
        for key, value, raw in header
    ]
    return MappingNode(tuple(entries), _NO_SPAN)


def is_overlaid(files: Iterable[Given]) -> bool:
    """Whether documents may come to anything else than what is written: some is or has a profile."""
    return any(
        any(_has_profile(one.header) for one in file.documents)
        if isinstance(file, KeptFile)
        else any(_is_overlaying(one.node) for one in file)
        for file in files
    )


def _is_overlaying(node: Node) -> bool:
    """Whether a document is a profile, or names one."""
    return isinstance(node, MappingNode) and any(
        key.raw == "profile" or (key.raw == "type" and value[0] == "profile")
        for key, value in node.entries
    )


def _has_profile(header: Header) -> bool:
    return any(key == "profile" for key, _, _ in header)
