"""
Which documents a patch means: `run/train`, `fleet/gpu-*`, `task/*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from fleetform.spec.findings import Problem
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import nearest
from fleetform.spec.nodes import MappingNode, Node, ScalarNode
from fleetform.spec.quantities.ranges import shown

__all__ = ["Address", "Index", "address", "matches", "matches_nothing"]


# What makes a pattern of a name.
_PATTERN = frozenset("*?[")


class Address(NamedTuple):
    """What a document says it is: `run`, `task`, `train`."""

    kind: str
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def address(node: Node) -> Address | None:
    """None for a document that does not say which resource it declares."""
    if not isinstance(node, MappingNode):
        return None
    said = [node.get("type"), node.get("name")]
    type_name, name = (part.value if isinstance(part, ScalarNode) else None for part in said)
    if not isinstance(type_name, str) or type_name not in KINDS:
        return None
    # A backend may leave its name out, and is then called by its type.
    name = type_name if said[1] is None else name
    return Address(KINDS[type_name].name, type_name, name) if isinstance(name, str) else None


class Index:
    """Addresses of documents, found by target; None for a document that has none."""

    def __init__(self, addresses: Sequence[Address | None]) -> None:
        self._addresses = addresses
        self._exact: dict[str, list[int]] = {}
        for number, one in enumerate(addresses):
            if one is not None:
                for kind in {one.kind, one.type}:
                    self._exact.setdefault(f"{kind}/{one.name}", []).append(number)

    def matching(self, target: str) -> list[int]:
        """Positions of the documents that a target means, in order."""
        # Nearly all targets are names, and a thousand of them would be compared ten million times.
        if not _PATTERN.intersection(target):
            return self._exact.get(target, [])
        return [
            number
            for number, one in enumerate(self._addresses)
            if one is not None and matches(target, one)
        ]


def matches(target: str, one: Address) -> bool:
    """Whether a target means a document; kinds are named by kind or by `type:`."""
    kind, _, name = target.partition("/")
    is_kind = fnmatchcase(one.kind, kind) or fnmatchcase(one.type, kind)
    return is_kind and fnmatchcase(one.name, name)


def matches_nothing(target: str, known: Iterable[Address]) -> Problem:
    """Why a target without a document is a mistake, with the one that was probably meant."""
    names = sorted({str(one) for one in known})
    close = nearest(target, names)
    if close:
        advice = f"Did you mean `{close}`?"
    elif names:
        advice = "There is " + ", ".join(f"`{name}`" for name in names[:10])
        advice += ", …" if len(names) > 10 else "."
    else:
        advice = "Kind and name are those of a document: `run/train`."
    return Problem(
        "patch-matches-nothing",
        ("target",),
        f"No document matches {shown(target)}, so the patch has no effect.",
        advice,
    )
