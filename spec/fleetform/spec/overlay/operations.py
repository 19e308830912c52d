"""
Steps of change in a document, as RFC 6902 has them: add, remove, replace, move, copy, test.

All or nothing: a document to which one step cannot be applied is left as it was. A value that is
added keeps the place of the patch, one that is moved or copied the place it was written at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fleetform.spec.findings import Problem
from fleetform.spec.names import nearest
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, Span, plain
from fleetform.spec.overlay.documents import DEPTH_MAX, VALUES_MAX, depth_of, size_of
from fleetform.spec.quantities.ranges import shown

__all__ = [
    "Operation",
    "Pointer",
    "Refusal",
    "apply",
    "follow",
    "index_of",
    "parse_operations",
    "parse_pointer",
    "written",
]


# Pointers into a document: `/resources/gpu/count`, as RFC 6901 writes them.
#
# A pointer is read once and followed on nodes, so that what it leads to keeps its place.

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


class Operation(NamedTuple):
    """
    One step.

    Attributes:
        source: The pointer behind `from`, of `move` and `copy`.
        value: Of `add`, `replace` and `test`.
        place: Of the pointer behind `path`, where a field that is added gets its name.
        number: Its position in the patch.
    """

    verb: str
    path: Pointer
    source: Pointer
    value: Node | None
    place: Span
    number: int


# -- reading -----------------------------------------------------------------------------------


_NEEDS: Mapping[str, str] = {
    "add": "value",
    "remove": "",
    "replace": "value",
    "move": "from",
    "copy": "from",
    "test": "value",
}
"""What each step needs in addition to `op` and `path`."""


def parse_operations(node: Node) -> tuple[list[Operation], list[Problem]]:
    """The steps of a patch, and what is wrong with it, by path from `node`."""
    if not isinstance(node, SequenceNode):
        return [], [
            _bad(
                (),
                "A patch is a list of steps.",
                "Write `[{op: replace, path: /nodes, value: 2}]`.",
            )
        ]
    operations, problems = [], []
    for number, item in enumerate(node.items):
        wrong = list(_problems(item, number))
        problems.extend(wrong)
        if not wrong:
            operations.append(_operation(item, number))
    return operations, problems


def _problems(item: Node, number: int) -> Iterator[Problem]:
    if not isinstance(item, MappingNode):
        yield _bad(
            (number,),
            "A step of a patch is a mapping.",
            "Write `{op: replace, path: /nodes, value: 2}`.",
        )
        return
    verb = item.get("op")
    word = verb.value if isinstance(verb, ScalarNode) else None
    if not isinstance(word, str) or word not in _NEEDS:
        close = nearest(word, _NEEDS) if isinstance(word, str) else None
        listed = ", ".join(f"`{one}`" for one in _NEEDS)
        yield _bad(
            (number, "op"),
            f"{shown(word)} is not an operation of a patch." if verb else "The step has no `op`.",
            f"Did you mean `{close}`?" if close else f"Choose one of {listed}.",
        )
        return
    needed = tuple(name for name in ("path", _NEEDS[word]) if name)
    for name in needed:
        if item.get(name) is None:
            yield _bad((number,), f"`{word}` needs `{name}:`.", f"Add `{name}:` to the step.")
    for key, _ in item.entries:
        # Section 4 lets others be ignored; a field that means nothing is a slip.
        if key.raw not in {"op", *needed}:
            yield _bad((number, key.raw), f"`{word}` has no field {shown(key.raw)}.", "Remove it.")
    yield from _pointer_problems(item, number)


def _pointer_problems(item: MappingNode, number: int) -> Iterator[Problem]:
    for name in ("path", "from"):
        pointer = item.get(name)
        if pointer is None:
            continue
        if not isinstance(pointer, ScalarNode) or not isinstance(pointer.value, str):
            yield _bad((number, name), f"`{name}` is a pointer, such as `/nodes`.", "")
            continue
        try:
            parse_pointer(pointer.value)
        except Refusal as refusal:
            yield _bad((number, name), refusal.detail, refusal.advice)


def _bad(path: tuple[str | int, ...], detail: str, advice: str) -> Problem:
    return Problem("bad-patch", path, detail, advice)


def _operation(item: Node, number: int) -> Operation:
    assert isinstance(item, MappingNode), item
    path, source = item.get("path"), item.get("from")
    assert path is not None, item
    return Operation(
        str(plain(item.get("op") or item)),
        parse_pointer(plain(path)),
        parse_pointer(plain(source)) if source is not None else (),
        item.get("value"),
        path.place,
        number,
    )


# -- carrying out ------------------------------------------------------------------------------


def apply(node: Node, operations: Sequence[Operation]) -> tuple[Node, Problem | None]:
    """
    The document after all steps; or as it was, with the step that does not fit it.

    The problem's path begins with the step's position in the patch.
    """
    changed = node
    size = size_of(node)
    for operation in operations:
        try:
            size = _grown(size, changed, operation)
            changed = _CARRY_OUT[operation.verb](changed, operation)
        except Refusal as refusal:
            return node, Problem(
                "patch-failed", (operation.number, "path"), refusal.detail, refusal.advice
            )
    return changed, None


def _add(node: Node, operation: Operation) -> Node:
    assert operation.value is not None, operation
    return _put(node, operation.path, operation.value, operation.place)


def _replace(node: Node, operation: Operation) -> Node:
    assert operation.value is not None, operation
    return _exchange(node, operation.path, operation.value)


def _remove(node: Node, operation: Operation) -> Node:
    return _take(node, operation.path)


def _move(node: Node, operation: Operation) -> Node:
    if len(operation.path) > len(operation.source) and (
        operation.path[: len(operation.source)] == operation.source
    ):
        raise Refusal("A value cannot be moved into itself.")
    value = follow(node, operation.source)
    return _put(_take(node, operation.source), operation.path, value, operation.place)


def _copy(node: Node, operation: Operation) -> Node:
    return _put(node, operation.path, follow(node, operation.source), operation.place)


def _test(node: Node, operation: Operation) -> Node:
    assert operation.value is not None, operation
    there, wanted = follow(node, operation.path), operation.value
    if not _equal(plain(there), plain(wanted)):
        where = f"`{written(operation.path)}`" if operation.path else "the document"
        raise Refusal(
            f"The test fails: {where} is {_brief(there)}, and the patch was written for {_brief(wanted)}.",
            "Check whether the patch is still right, and change the test.",
        )
    return node


_CARRY_OUT: Mapping[str, Callable[[Node, Operation], Node]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _put(node: Node, path: Pointer, value: Node, at: Span) -> Node:
    """Section 4.1: set a field, or insert in front of a position."""
    if not path:
        return value

    def put(parent: Node, step: str, above: Pointer) -> Node:
        if isinstance(parent, SequenceNode):
            count = len(parent.items)
            index = count if step == "-" else index_of(step, count, above)
            return parent._replace(items=(*parent.items[:index], value, *parent.items[index:]))
        if not isinstance(parent, MappingNode):
            raise Refusal(f"`{written(above)}` is a single value, and nothing can be added to it.")
        key = ScalarNode(step, step, "", at)
        kept = tuple(
            (key, value) if name.raw == step else (name, old) for name, old in parent.entries
        )
        there = parent.get(step) is not None
        return parent._replace(entries=kept if there else (*kept, (key, value)))

    return _rebuilt(node, path, put)


def _take(node: Node, path: Pointer) -> Node:
    """Section 4.2."""
    if not path:
        raise Refusal(
            "The document as a whole cannot be removed by a step.",
            "To remove the document, write `delete: true` beside its `target`.",
        )
    follow(node, path)

    def take(parent: Node, step: str, above: Pointer) -> Node:
        if isinstance(parent, SequenceNode):
            index = int(step)
            return parent._replace(items=parent.items[:index] + parent.items[index + 1 :])
        assert isinstance(parent, MappingNode), parent
        return parent._replace(entries=tuple(one for one in parent.entries if one[0].raw != step))

    return _rebuilt(node, path, take)


def _exchange(node: Node, path: Pointer, value: Node) -> Node:
    """Section 4.3: what is replaced has to be there, and keeps its place among the others."""
    follow(node, path)
    if not path:
        return value

    def exchange(parent: Node, step: str, above: Pointer) -> Node:
        if isinstance(parent, SequenceNode):
            index = int(step)
            return parent._replace(items=(*parent.items[:index], value, *parent.items[index + 1 :]))
        assert isinstance(parent, MappingNode), parent
        return parent._replace(
            entries=tuple(
                (key._replace(place=value.place), value) if key.raw == step else (key, old)
                for key, old in parent.entries
            )
        )

    return _rebuilt(node, path, exchange)


def _rebuilt(node: Node, path: Pointer, change: Callable[[Node, str, Pointer], Node]) -> Node:
    """The document with the parent of what `path` names changed; all else is shared with it."""
    parents = [follow(node, path[:depth]) for depth in range(len(path))]
    changed = change(parents[-1], path[-1], path[:-1])
    for parent, step in zip(reversed(parents[:-1]), reversed(path[:-1]), strict=True):
        changed = _child_changed(parent, step, changed)
    return changed


def _child_changed(parent: Node, step: str, changed: Node) -> Node:
    if isinstance(parent, SequenceNode):
        index = int(step)
        return parent._replace(items=(*parent.items[:index], changed, *parent.items[index + 1 :]))
    assert isinstance(parent, MappingNode), parent
    return parent._replace(
        entries=tuple((key, changed if key.raw == step else value) for key, value in parent.entries)
    )


# -- comparing and measuring -------------------------------------------------------------------


def _equal(one: object, other: object) -> bool:
    """Section 4.6: numbers by value, so `1` is `1.0`; but a boolean is not a number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other


def _brief(node: Node) -> str:
    if isinstance(node, ScalarNode):
        return shown(node.value)
    return "another list" if isinstance(node, SequenceNode) else "another mapping"


def _grown(size: int, node: Node, operation: Operation) -> int:
    """At most how many values there are after the step, if there may be so many."""
    value = operation.value
    if operation.verb in {"move", "copy"}:
        value = follow(node, operation.source)
    if value is None or operation.verb == "test":
        return size
    size += size_of(value)
    if size > VALUES_MAX:
        raise Refusal(f"The document would have more than {VALUES_MAX} values.", "Copy less of it.")
    if len(operation.path) + depth_of(value) > DEPTH_MAX:
        raise Refusal(f"The document would be more than {DEPTH_MAX} levels deep.")
    return size
