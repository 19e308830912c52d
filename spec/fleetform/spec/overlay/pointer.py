"""
Pointers into a document: `/resources/gpu/count`, as RFC 6901 writes them.

A pointer is read once and followed on nodes, so that what it leads to keeps its place.
"""

from __future__ import annotations

import re

from fleetform.spec.names import nearest
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from fleetform.spec.quantities.ranges import shown

__all__ = ["Pointer", "Refusal", "follow", "index_of", "parse_pointer", "written"]

Pointer = tuple[str, ...]

_STRAY_TILDE = re.compile(r"~(?![01])")
# Section 4: no sign, no leading zero.
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


class Refusal(Exception):
    """Why a patch cannot be carried out: a sentence, and what to do."""

    def __init__(self, detail: str, advice: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.advice = advice


def parse_pointer(text: str) -> Pointer:
    """
    The names and positions that a pointer leads along; empty for the document itself.

    Raises:
        Refusal: It is none.
    """
    if not text:
        return ()
    if not text.startswith("/"):
        raise Refusal(
            f"{shown(text)} is not a pointer, which begins with `/`.",
            f"Write `/{text.replace('.', '/')}`.",
        )
    if _STRAY_TILDE.search(text):
        raise Refusal(
            f"In {shown(text)}, a `~` has no digit behind it.",
            "In a pointer `~0` is a `~`, and `~1` a `/`.",
        )
    # In this order: `~01` is `~1` and not a slash.
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/"))


def written(pointer: Pointer) -> str:
    """The pointer as it is written."""
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in pointer)


def follow(node: Node, pointer: Pointer) -> Node:
    """
    What stands at `pointer`.

    Raises:
        Refusal: Nothing does.
    """
    for depth, step in enumerate(pointer):
        node = _step(node, step, pointer[:depth])
    return node


def _step(node: Node, step: str, above: Pointer) -> Node:
    if isinstance(node, MappingNode):
        found = node.get(step)
        if found is None:
            raise _missing(step, [key.raw for key, _ in node.entries], above)
        return found
    if isinstance(node, SequenceNode):
        return node.items[index_of(step, len(node.items) - 1, above)]
    raise _no_inside(node, step, above)


def index_of(step: str, largest: int, above: Pointer) -> int:
    """
    The position that a step names in a list, `largest` being the last that there is.

    Raises:
        Refusal: It is no position, or lies behind the end.
    """
    if not _INDEX.fullmatch(step):
        raise Refusal(
            f"{_owner(above)} is a list, and {shown(step)} is no position in it.",
            "Positions count from 0; when adding, `-` is the end.",
        )
    if int(step) > largest:
        has = f"positions 0 to {largest}" if largest >= 0 else "nothing in it"
        raise Refusal(f"{_owner(above)} has no position {step}: it has {has}.")
    return int(step)


def _missing(step: str, names: list[str], above: Pointer) -> Refusal:
    close = nearest(step, names)
    return Refusal(
        f"{_owner(above)} has no field {shown(step)}.",
        f"Did you mean `{written((*above, close))}`?"
        if close
        else "An operation does not create missing parent fields; `merge:` does.",
    )


def _no_inside(node: Node, step: str, above: Pointer) -> Refusal:
    assert isinstance(node, ScalarNode), node
    return Refusal(f"{_owner(above)} is a single value and has no {shown(step)} inside.")


def _owner(above: Pointer) -> str:
    return f"`{written(above)}`" if above else "The document"
