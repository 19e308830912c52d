"""
One change of a text, as a piece of it that is replaced by another.

Each function looks at a layout and returns the new text. Nothing in here asks whether the result
says what was meant: `change` reads it and compares.
"""

from __future__ import annotations

from collections.abc import Sequence as Steps
from typing import Any, NamedTuple

from fleetform.spec.syntax.emit import (
    block_lines,
    flow_text,
    item_lines,
    mapping_lines,
    scalar_text,
)
from fleetform.spec.syntax.layout import (
    EditRefused,
    Entry,
    Item,
    Layout,
    Leaf,
    Mapping,
    Part,
    Sequence,
)

__all__ = ["Found", "append_item", "drop", "find", "insert_entry", "replace", "rewrite_key"]


class Found(NamedTuple):
    """
    How far a path leads into a document.

    Attributes:
        part: Where it ends.
        holder: The entry or item that `part` is the value of; None for a document's root.
        parents: The collections it leads through, outermost first.
        rest: Steps that lead nowhere yet.
    """

    part: Part
    holder: Entry | Item | None
    parents: tuple[Mapping | Sequence, ...]
    rest: Steps[str | int]

    @property
    def in_flow(self) -> bool:
        return any(parent.is_flow for parent in self.parents)


def find(root: Part, path: Steps[str | int]) -> Found:
    """Follow a path as far as it leads; a key that a merge brings in is not there."""
    part, holder = root, None
    parents: list[Mapping | Sequence] = []
    for number, step in enumerate(path):
        following = _child(part, step)
        if following is None:
            return Found(part, holder, tuple(parents), path[number:])
        assert isinstance(part, Mapping | Sequence)
        parents.append(part)
        part, holder = following.value, following
    return Found(part, holder, tuple(parents), ())


def _child(part: Part, step: str | int) -> Entry | Item | None:
    if isinstance(part, Mapping):
        return part.find(str(step))
    if isinstance(part, Sequence):
        if not isinstance(step, int):
            raise EditRefused(f"a list has no field `{step}`")
        return part.items[step] if 0 <= step < len(part.items) else None
    if part.style == "*":
        raise EditRefused(
            f"`*{part.value}` repeats a value, and the change would apply there too",
            "write the value out, then change it",
        )
    if not part.is_empty:
        raise EditRefused(f"there is nothing below `{_excerpt(part)}`")
    return None


def _excerpt(leaf: Leaf) -> str:
    return leaf.value if len(leaf.value) <= 40 else f"{leaf.value[:39]}…"


def replace(layout: Layout, found: Found, value: Any) -> str:
    """Write `value` where `found` leads, which is there."""
    part, holder = found.part, found.holder
    if holder is None:
        raise EditRefused("a document as a whole is not replaced")
    # An anchor stays where it is, so that aliases go on being read; whether they may mean the
    # new value is for the comparison to say.
    start = part.body if "&" in layout.text[part.start : part.body] else part.start
    if found.in_flow or (
        isinstance(part, Mapping | Sequence) and part.is_flow and _is_short(value)
    ):
        return _splice(layout, start, part.end, _spaced(layout, start, flow_text(value)))
    if isinstance(part, Leaf):
        return _replace_leaf(layout, holder, part, start, value)
    return _replace_block(layout, holder, part, value)


def _is_short(value: Any) -> bool:
    return len(flow_text(value)) <= 80


def _replace_leaf(layout: Layout, holder: Entry | Item, part: Leaf, start: int, value: Any) -> str:
    text = layout.text
    quote = part.style if part.style in {"'", '"'} else ""
    comment = _header_comment(layout, part)
    head, below = _block_value(layout, holder, value, quote)
    if not below:
        return _splice(layout, start, part.end, _spaced(layout, start, head + comment))
    # A comment on the line stays there, between the key and what comes to stand below it.
    line_end = layout.line_end(part.end)
    behind = comment + text[part.end : line_end].rstrip(" \t")
    if head:
        first = _spaced(layout, start, head) + behind
    else:
        first, start = behind, _trim(layout, start)
    return _splice(layout, start, line_end, layout.newline.join([first, *below]))


def _replace_block(
    layout: Layout, holder: Entry | Item, part: Part, value: Any, end: int | None = None
) -> str:
    """Write a value in the place of a block collection; comments on its key's line stay."""
    head, below = _block_value(layout, holder, value, "")
    behind = holder.colon if isinstance(holder, Entry) else holder.start + 1
    line_end = layout.line_end(behind)
    is_below = part.start > line_end
    between = layout.text[behind:line_end].rstrip(" \t") if is_below else ""
    first = f" {head}{between}" if head else between
    stop = part.end if end is None else end
    return _splice(layout, behind, stop, layout.newline.join([first, *below]))


def _block_value(
    layout: Layout, holder: Entry | Item, value: Any, quote: str
) -> tuple[str, list[str]]:
    """Return what stands behind the key or dash, and the indented lines below."""
    indent = " " * layout.column(holder.start)
    if isinstance(value, str) and quote and "\n" not in value:
        return scalar_text(value, quote=quote), []
    if isinstance(holder, Item):
        lines = item_lines(value, dash_offset=dash_offset(layout))
        first, *below = lines
        return first.removeprefix("- "), [indent + line if line else "" for line in below]
    head, below = block_lines(value, dash_offset=dash_offset(layout))
    return head, [indent + line if line else "" for line in below]


def dash_offset(layout: Layout) -> int:
    """Return how far lists are indented in this text: as its first one is."""
    for page in layout.pages:
        for offset in _dash_offsets(layout, page.root):
            return offset
    return 2


def _dash_offsets(layout: Layout, part: Part) -> list[int]:
    if not isinstance(part, Mapping) or part.is_flow:
        return []
    for entry in part.entries:
        if isinstance(entry.value, Sequence) and not entry.value.is_flow:
            return [layout.column(entry.value.body) - layout.column(entry.start)]
        below = _dash_offsets(layout, entry.value)
        if below:
            return below
    return []


def _header_comment(layout: Layout, part: Leaf) -> str:
    """Return the comment behind a block scalar's `|`, with the blanks before it."""
    if part.style not in {"|", ">"}:
        return ""
    header = layout.text[part.body : layout.line_end(part.body)]
    mark, hash_sign, comment = header.partition("#")
    return f"{mark[len(mark.rstrip()) :]}#{comment}" if hash_sign else ""


def insert_entry(layout: Layout, found: Found, key: str, value: Any, *, after: str = "") -> str:
    """Write a new field into the mapping that `found` leads to."""
    part = found.part
    if isinstance(part, Leaf):
        return replace(layout, found, {key: value})
    assert isinstance(part, Mapping)
    if not part.entries and found.holder is not None:
        return replace(layout, found, {key: value})
    if part.is_flow:
        text = f"{scalar_text(key, in_flow=True)}: {flow_text(value)}"
        return _add_to_flow(layout, part, text)
    before = part.find(after) if after else None
    before = before or part.entries[-1]
    indent = " " * layout.column(part.entries[0].start)
    lines = mapping_lines({key: value}, dash_offset=dash_offset(layout))
    return _insert_below(layout, before.end, [indent + line if line else "" for line in lines])


def append_item(layout: Layout, found: Found, value: Any, index: int | None) -> str:
    """Write a new item into the list that `found` leads to, behind the last or before `index`."""
    part = found.part
    if isinstance(part, Leaf) and part.is_empty:
        return replace(layout, found, [value])
    if not isinstance(part, Sequence):
        raise EditRefused("there is no list")
    if not part.items:
        return replace(layout, found, [value])
    if part.is_flow:
        return _add_to_flow(layout, part, flow_text(value), index)
    indent = " " * layout.column(part.items[0].start)
    lines = [
        f"{indent}{line}" if line else ""
        for line in item_lines(value, dash_offset=dash_offset(layout))
    ]
    if index is None or index >= len(part.items):
        return _insert_below(layout, part.items[-1].end, lines)
    item = part.items[index]
    if not layout.is_first(item.start):
        raise EditRefused("the list begins behind something else on its line")
    start = _with_comments(layout, item.start)
    return _splice(layout, start, start, "".join(line + layout.newline for line in lines))


def _add_to_flow(
    layout: Layout, part: Mapping | Sequence, text: str, index: int | None = None
) -> str:
    children = part.children
    if not children:
        return _splice(layout, part.body + 1, part.end - 1, text)
    if index is None or index >= len(children):
        return _splice(layout, children[-1].end, children[-1].end, f", {text}")
    start = children[index].start
    return _splice(layout, start, start, f"{text}, ")


def _insert_below(layout: Layout, end: int, lines: list[str]) -> str:
    """Write lines below the one in which `end` lies, comments on that line left there."""
    at = layout.line_end(end)
    return _splice(layout, at, at, "".join(layout.newline + line for line in lines))


def drop(layout: Layout, found: Found) -> str:
    """Take out the field or item that `found` leads to, with the comments right above it."""
    holder = found.holder
    if holder is None:
        raise EditRefused("a document as a whole is not a field")
    parent = found.parents[-1]
    children: Steps[Entry | Item] = parent.children
    if len(children) == 1:
        return _empty(layout, found)
    number = next(place for place, child in enumerate(children) if child.start == holder.start)
    following = children[number + 1] if number + 1 < len(children) else None
    if parent.is_flow:
        if following is not None:
            return _splice(layout, holder.start, following.start, "")
        return _splice(layout, children[number - 1].end, holder.end, "")
    if not layout.is_first(holder.start):
        assert following is not None, "what follows on a dash's line is the first of several"
        return _splice(layout, holder.start, following.start, "")
    # Above a document's first field stands what is about the document.
    is_top = number == 0 and len(found.parents) == 1
    start = layout.line_start(holder.start) if is_top else _with_comments(layout, holder.start)
    return _drop_lines(layout, start, holder.end)


def _drop_lines(layout: Layout, start: int, end: int) -> str:
    """Take out the lines from `start`, which begins one, to the one in which `end` lies."""
    stop = layout.line_end(end)
    rest = layout.text[stop:]
    for newline in ("\r\n", "\n"):
        if rest.startswith(newline):
            return _splice(layout, start, stop + len(newline), "")
    return _splice(layout, start, stop, "")


def _empty(layout: Layout, found: Found) -> str:
    """Leave `{}` or `[]` where the last field or item is taken out."""
    parent = found.parents[-1]
    nothing: dict[str, Any] | list[Any] = {} if isinstance(parent, Mapping) else []
    if parent.is_flow:
        return _splice(layout, parent.body, parent.end, flow_text(nothing))
    if len(found.parents) == 1:
        raise EditRefused("the document would be empty", "remove the document")
    # A comment behind what goes would stand behind what never had it.
    end = layout.line_end(parent.end)
    return _replace_block(layout, _holder_of(found), parent, nothing, end)


def _holder_of(found: Found) -> Entry | Item:
    """Return the entry or item whose value is the innermost of the parents."""
    outer, inner = found.parents[-2], found.parents[-1]
    children: Steps[Entry | Item] = outer.children
    return next(child for child in children if child.value is inner)


def _with_comments(layout: Layout, start: int) -> int:
    """Return where the comments begin that stand right above `start`, at its column."""
    column = layout.column(start)
    line = layout.line_start(start)
    for comment in reversed(layout.comments):
        if comment.start >= line:
            continue
        above = layout.line_start(comment.start)
        is_next = layout.line_start(line - 1) == above if line else False
        if not (comment.is_alone and comment.column == column and is_next):
            break
        line = above
    return line


def rewrite_key(layout: Layout, found: Found, name: str) -> str:
    """Write another name for the field that `found` leads to."""
    holder = found.holder
    if not isinstance(holder, Entry):
        raise EditRefused("only a field has a name")
    key = holder.key
    quote = key.style if key.style in {"'", '"'} else ""
    return _splice(layout, key.body, key.end, scalar_text(name, in_flow=found.in_flow, quote=quote))


def _spaced(layout: Layout, start: int, text: str) -> str:
    """Return `text` with a blank before it where a colon or dash stands right before `start`."""
    is_tight = start > 0 and layout.text[start - 1] in ":-"
    return f" {text}" if text and is_tight else text


def _trim(layout: Layout, index: int) -> int:
    """Return the index behind the last character before `index` that is no blank."""
    return len(layout.text[:index].rstrip(" \t"))


def _splice(layout: Layout, start: int, end: int, text: str) -> str:
    return layout.text[:start] + text + layout.text[end:]
