"""
One mapping over another, as RFC 7386 has it: fields replace fields, mappings are merged, null
removes, and a list is a value like any other.

One exception: variables. `env: [LR=0.1]` and `env: {LR: 0.1}` are two spellings of one thing, and
whoever patches one variable does not mean to lose the others; so they are merged by name, however
either side is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetform.spec.names import scalar_text
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, Span

__all__ = ["merge", "merge_document"]

_VARIABLES = "env"

Entry = tuple[ScalarNode, Node]


def merge_document(target: MappingNode, patch: MappingNode) -> MappingNode:
    """A document with a merge patch applied; each value keeps the place it was written at."""
    below, above = target.get(_VARIABLES), patch.get(_VARIABLES)
    if below is not None and above is not None:
        one, other = _variables(below), _variables(above)
        if one is not None and other is not None:
            merged = _joined(one, other, below.place)
            return MappingNode(
                tuple(_entries(_with(target, merged).entries, _without(patch))), target.place
            )
    return MappingNode(tuple(_entries(target.entries, patch)), target.place)


def merge(target: Node | None, patch: Node) -> Node:
    """RFC 7386, section 2: what `patch` makes of `target`, of which None is nothing at all."""
    if not isinstance(patch, MappingNode):
        return patch
    if isinstance(target, MappingNode):
        return MappingNode(tuple(_entries(target.entries, patch)), target.place)
    return MappingNode(tuple(_entries((), patch)), patch.place)


def _entries(entries: Sequence[Entry], patch: MappingNode) -> Iterator[Entry]:
    changes = {key.raw: (key, value) for key, value in patch.entries}
    for key, value in entries:
        change = changes.pop(key.raw, None)
        if change is None:
            yield key, value
        elif not _is_null(change[1]):
            into_it = isinstance(value, MappingNode) and isinstance(change[1], MappingNode)
            yield key if into_it else change[0], merge(value, change[1])
    for key, value in changes.values():
        if not _is_null(value):
            yield key, merge(None, value)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value is None


# -- variables -------------------------------------------------------------------------------

# `[TOKEN]`: a variable whose value is that of whoever applies. Known by its identity.
_TAKEN_OVER = ScalarNode("", "", "", Span(0, 0))


def _variables(node: Node) -> dict[str, Entry] | None:
    """
    The variables that a field says, by name.

    None for what is no set of variables: that is for the field's own model to judge.
    """
    if isinstance(node, MappingNode):
        return {key.raw: (key, value) for key, value in node.entries}
    if not isinstance(node, SequenceNode):
        return None
    variables: dict[str, Entry] = {}
    for item in node.items:
        if not isinstance(item, ScalarNode) or not isinstance(item.value, str):
            return None
        name, equals, text = item.value.partition("=")
        if name in variables:
            return None
        value = ScalarNode(text, text, "", item.place) if equals else _TAKEN_OVER
        variables[name] = (ScalarNode(name, name, "", item.place), value)
    return variables


def _joined(below: dict[str, Entry], above: dict[str, Entry], place: Span) -> Node:
    entries = [entry for entry in {**below, **above}.values() if not _is_null(entry[1])]
    if not any(value is _TAKEN_OVER for _, value in entries):
        return MappingNode(tuple(entries), place)
    # A mapping has no way to say a name alone.
    return SequenceNode(tuple(_assignment(name, value) for name, value in entries), place)


def _assignment(name: ScalarNode, value: Node) -> Node:
    if value is _TAKEN_OVER:
        return name
    if not isinstance(value, ScalarNode):
        return value
    text = f"{name.raw}={scalar_text(value.value)}"
    return ScalarNode(text, text, "", value.place)


def _with(target: MappingNode, variables: Node) -> MappingNode:
    entries = (
        (key, variables if key.raw == _VARIABLES else value) for key, value in target.entries
    )
    return MappingNode(tuple(entries), target.place)


def _without(patch: MappingNode) -> MappingNode:
    entries = (entry for entry in patch.entries if entry[0].raw != _VARIABLES)
    return MappingNode(tuple(entries), patch.place)
