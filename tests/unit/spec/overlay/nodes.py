"""Documents as nodes, from YAML and from plain values."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, Span
from fleetform.spec.syntax import read_documents

AT = Span(1, 1)


def nodes(text: str, file: str = "tree.yaml") -> list[Node]:
    read, findings = read_documents(text.encode(), file)
    assert not findings
    return read


def node(text: str, file: str = "tree.yaml") -> Node:
    (one,) = nodes(text, file)
    return one


def mapping(text: str) -> MappingNode:
    read = node(text)
    assert isinstance(read, MappingNode)
    return read


def from_value(value: Any) -> Node:
    """The node that says a JSON value."""
    if isinstance(value, dict):
        return MappingNode(
            tuple((ScalarNode(key, key, "", AT), from_value(item)) for key, item in value.items()),
            AT,
        )
    if isinstance(value, list):
        return SequenceNode(tuple(from_value(item) for item in value), AT)
    return ScalarNode(value, str(value), "", AT)


KEYS = st.sampled_from(["a", "b", "c", "a/b", "m~n", "", "0", "-"])
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0, "x", ""])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)
MAPPINGS = st.dictionaries(KEYS, VALUES, max_size=4)
