"""
What `${{ namespace.key }}` may name at a place, and what it stands for there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fleetform.lsp.index import Index
from fleetform.lsp.meaning import listed
from fleetform.spec.identity import FILE_NAME
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, Span, plain
from fleetform.spec.plurals import counted
from fleetform.spec.syntax import read_documents

__all__ = ["NAMESPACES", "Known", "Said", "known"]

NAMESPACES: Mapping[str, str] = {
    "secrets": "a secret; filled in on the host and never shown",
    "env": "a variable of this document's `env`",
    "matrix": "the value of a parameter for this element",
    "run": "the run itself: its name, its index",
    "node": "the node of the job, known when the job starts",
    "dstack": "a value of dstack, known when the job starts",
    "values": "a value of the environment, from `environment.yaml`",
}
"""Every namespace, and what is in it."""


class Said(NamedTuple):
    """
    What one key stands for.

    Attributes:
        words: In words; may be empty.
        place: Where that is written: a span, and the file when it is another one.
    """

    words: str = ""
    place: Span | None = None
    file: str = ""


Known = Mapping[str, Mapping[str, Said]]
"""By namespace and key."""


def known(root: MappingNode, index: Index) -> Known:
    """All that an expression in the document `root` may name."""
    return {
        "secrets": {key.name: Said("a secret") for key in index.names("secret")},
        "env": dict(_variables(root.get("env"))),
        "matrix": dict(_parameters(root.get("matrix"))),
        "run": dict(_run(root)),
        "values": dict(_values(index)),
    }


def _variables(node: Node | None) -> list[tuple[str, Said]]:
    if isinstance(node, MappingNode):
        return [(key.raw, _said(value, key.place)) for key, value in node.entries]
    items = node.items if isinstance(node, SequenceNode) else ()
    texts = [item for item in items if isinstance(item, ScalarNode)]
    pairs = [(item.raw.partition("="), item.place) for item in texts]
    return [(name, Said(f"`{value}`", place)) for (name, _, value), place in pairs]


def _parameters(node: Node | None) -> list[tuple[str, Said]]:
    if not isinstance(node, MappingNode):
        return []
    return [(key.raw, _axis(value, key.place)) for key, value in node.entries]


def _axis(node: Node, place: Span) -> Said:
    items = node.items if isinstance(node, SequenceNode) else (node,)
    values = [item.value for item in items if isinstance(item, ScalarNode)]
    count = counted(len(values), "value")
    return Said(f"takes {count}: {listed(values)}" if values else "", place)


def _run(root: MappingNode) -> list[tuple[str, Said]]:
    name, array = root.get("name"), root.get("array")
    said = [("name", _said(name, name.place))] if isinstance(name, ScalarNode) else []
    if array is not None:
        said.append(("index", Said("the element's index in `array`", array.place)))
    return said


def _values(index: Index) -> list[tuple[str, Said]]:
    read = index.files.get(FILE_NAME)
    roots = read_documents(read.text.data, FILE_NAME)[0] if read else []
    found = roots[0].get("values") if roots and isinstance(roots[0], MappingNode) else None
    if not isinstance(found, MappingNode):
        return []
    return [
        (key.raw, _said(value, key.place)._replace(file=FILE_NAME)) for key, value in found.entries
    ]


def _said(node: Node, place: Span) -> Said:
    value = plain(node)
    return Said("" if isinstance(value, dict | list) else f"`{value}`", place)
