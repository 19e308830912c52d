"""
One document written again: order, indentation, quotes and blank lines as they should be.

Comments go with what they describe. One above a field or an item moves with it, one behind a
value stays behind it, and one that is indented as a block's fields below its last of them stays
at that block's end. What stands at the top of a document, a blank line below it, is about the
document. Between fields one blank line is kept where there were any.

The document is read once from top to bottom; comments are taken as they are passed.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from fleetform.spec.syntax.field_order import Hints, arrange, hints_of_item
from fleetform.spec.syntax.layout import (
    Comment,
    EditRefused,
    Entry,
    Item,
    Layout,
    Leaf,
    Mapping,
    Page,
    Part,
    Sequence,
)

__all__ = ["page_lines"]

_STEP = "  "
# Lines for programs: they are read at the top or not at all.
_MODELINE: Final = re.compile(r"#\s*(?:yaml-language-server\s*:|-\*-|vim?:|!)")
_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")
_COMMENT: Final = re.compile(r"(?<=\s)#[^\n]*")
_DIGIT: Final = re.compile(r"[1-9]")
# What double quotes would read differently from single ones.
_ESCAPES: Final = re.compile(
    r'["\\]|[^ -~\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]'
)


class _Bound(NamedTuple):
    """What follows a block: where the next field or item starts, and its column."""

    start: int
    column: int


class _Chunk(NamedTuple):
    """
    A field or an item as it is written.

    Attributes:
        above: Comments before it, with blank lines between them.
        lines: What it is.
        is_apart: A blank line stands before it.
    """

    above: list[str]
    lines: list[str]
    is_apart: bool


class _Block(NamedTuple):
    """`end` is what stands at the end of the block, and is moved by nothing."""

    chunks: list[_Chunk]
    end: list[str]

    def lines(self) -> list[str]:
        lines: list[str] = []
        for chunk in self.chunks:
            if chunk.is_apart and lines:
                lines.append("")
            lines += chunk.above
            lines += chunk.lines
        return lines + self.end


def page_lines(layout: Layout, page: Page, hints: Hints, *, sort: bool = True) -> list[str]:
    """
    Return the lines of a document, without what marks its beginning and end.

    Args:
        layout: The text.
        page: The document: a block mapping.
        hints: What its type says about it.
        sort: Whether fields are put in order.

    Raises:
        EditRefused: It is written in a way that is better left alone.
    """
    assert isinstance(page.root, Mapping)
    return _Writer(layout, page, sort=sort).page(hints)


class _Writer:
    def __init__(self, layout: Layout, page: Page, *, sort: bool) -> None:
        self._layout = layout
        self._text = layout.text
        self._page = page
        self._sort = sort
        # Behind `---` on its line stands what belongs to the mark.
        start = layout.line_end(page.opened) if page.opened > page.start else page.start
        self._comments = [one for one in layout.comments if start <= one.start < page.closed]
        self._comments.append(Comment(len(layout.text) + 1, 0, False, ""))  # The end of them.
        self._place = 0
        self._passed = start

    def page(self, hints: Hints) -> list[str]:
        root = self._page.root
        assert isinstance(root, Mapping)
        header, is_apart = self._header(root)
        block = self._mapping(root, "", hints, _Bound(self._page.closed, -1))
        lines = block.lines()
        if header and (is_apart or block.chunks[0].is_apart):
            header.append("")
        rest = self._loose(self._page.closed)
        return header + lines + rest

    # Comments and blank lines

    def _upcoming(self) -> Comment:
        return self._comments[self._place]

    def _header(self, root: Mapping) -> tuple[list[str], bool]:
        """Take what is about the document, and say whether a blank line follows it."""
        above = [one for one in self._comments if one.start < root.start]
        last = 0
        for number, comment in enumerate(above, start=1):
            following = above[number].start if number < len(above) else root.start
            is_apart = self._is_blank_between(comment.start, following)
            if is_apart or _MODELINE.match(comment.text):
                last = number
        if not last:
            return [], False
        lines = self._alone(above[last - 1].start + 1, "")
        following = above[last].start if last < len(above) else root.start
        return lines, self._is_blank_between(above[last - 1].start, following)

    def _is_blank_between(self, start: int, end: int) -> bool:
        # Most lines follow each other: two newlines are looked for before anything else.
        first = self._text.find("\n", start, end)
        if first < 0 or self._text.find("\n", first + 1, end) < 0:
            return False
        return _BLANK_LINE.search(self._text, start, end) is not None

    def _is_apart(self, index: int) -> bool:
        """Tell whether a blank line stands between what was passed and `index`."""
        return self._is_blank_between(self._passed, index)

    def _alone(self, before: int, indent: str) -> list[str]:
        """Take the comments before an index, as lines of their own with blank lines between."""
        lines: list[str] = []
        while (comment := self._comments[self._place]).start < before:
            if lines and self._is_apart(comment.start):
                lines.append("")
            lines.append(f"{indent}{comment.text}")
            self._pass_comment(comment)
        return lines

    def _loose(self, before: int) -> list[str]:
        """Take comments like `_alone`, the blank line before the first of them too."""
        is_apart = (
            self._is_apart(self._upcoming().start) if self._upcoming().start < before else False
        )
        lines = self._alone(before, "")
        return ["", *lines] if is_apart else lines

    def _pass_comment(self, comment: Comment) -> None:
        self._place += 1
        self._passed = comment.start + len(comment.text)

    def _behind(self, end: int) -> str:
        """Take the comment on the line in which `end` lies, with the blanks before it."""
        self._passed = max(self._passed, end)
        comment = self._upcoming()
        if comment.is_alone or comment.start < end or comment.start > self._layout.line_end(end):
            return ""
        self._pass_comment(comment)
        gap = self._text[end : comment.start]
        # After something else than a value, such as a comma, there may be no blank right here.
        return f"{gap if gap.isspace() else '  '}{comment.text}"

    def _end_of_block(self, column: int, bound: _Bound, indent: str, *, beyond: bool) -> list[str]:
        """Take the comments that are indented as the block, before what follows it."""
        lines: list[str] = []
        while True:
            comment = self._upcoming()
            is_in = comment.column > column if beyond else comment.column >= column
            if not (is_in and comment.start < bound.start and comment.column > bound.column):
                return lines
            if self._is_apart(comment.start):
                lines.append("")
            lines.append(f"{indent}{comment.text}")
            self._pass_comment(comment)

    # Blocks

    def _mapping(self, part: Mapping, indent: str, hints: Hints, bound: _Bound) -> _Block:
        column = self._layout.column(part.entries[0].start)
        arranged = arrange(hints, tuple(entry.key.value for entry in part.entries))
        chunks: list[_Chunk] = []
        followed = zip(part.entries, (*part.entries[1:], None), arranged.below, strict=True)
        for entry, following, of_value in followed:
            below = bound if following is None else _Bound(following.start, column)
            is_apart = self._starts_apart(entry.start) and bool(chunks)
            above = self._alone(entry.start, indent)
            above += self._gap_above(above, entry.start)
            chunks.append(self._entry(entry, indent, of_value, below, above, is_apart=is_apart))
        if self._sort:
            chunks = [chunks[place] for place in arranged.order]
        return _Block(chunks, self._end_of_block(column, bound, indent, beyond=False))

    def _starts_apart(self, index: int) -> bool:
        return self._is_apart(min(index, self._upcoming().start))

    def _gap_above(self, above: list[str], index: int) -> list[str]:
        return [""] if above and self._is_apart(index) else []

    def _entry(
        self,
        entry: Entry,
        indent: str,
        hints: Hints,
        bound: _Bound,
        above: list[str],
        *,
        is_apart: bool,
    ) -> _Chunk:
        head = f"{indent}{self._key(entry.key)}:"
        value = entry.value
        self._passed = max(self._passed, entry.colon)
        if isinstance(value, Leaf) or value.is_flow:
            # A comment between the two has no place of its own in what is written.
            above += self._alone(value.body, indent)
            lines = self._inline(value, indent, self._layout.column(entry.start))
            lines[0] = f"{head} {lines[0]}" if lines[0] else head
            lines[-1] += self._behind(entry.end)
            return _Chunk(above, lines, is_apart)
        properties = self._properties(value)
        head = f"{head} {properties}" if properties else head
        # What stands behind an anchor on its key's line is behind both.
        is_on_line = value.start <= self._layout.line_end(entry.colon)
        head += self._behind(
            self._end_of_properties(value) if properties and is_on_line else entry.colon
        )
        above += self._alone(value.body, indent) if properties else []
        if isinstance(value, Mapping):
            block = self._mapping(value, indent + _STEP, hints, bound)
        else:
            is_flush = self._layout.column(value.body) <= self._layout.column(entry.start)
            block = self._sequence(value, indent + _STEP, hints, bound, is_flush=is_flush)
        return _Chunk(above, [head, *block.lines()], is_apart)

    def _sequence(
        self, part: Sequence, indent: str, hints: Hints, bound: _Bound, *, is_flush: bool = False
    ) -> _Block:
        column = self._layout.column(part.items[0].start)
        of_item = hints_of_item(hints)
        chunks: list[_Chunk] = []
        for item, following in zip(part.items, (*part.items[1:], None), strict=True):
            below = bound if following is None else _Bound(following.start, column)
            is_apart = self._starts_apart(item.start) and bool(chunks)
            above = self._alone(item.start, indent)
            above += self._gap_above(above, item.start)
            chunks.append(self._item(item, indent, of_item, below, above, is_apart=is_apart))
        return _Block(chunks, self._end_of_block(column, bound, indent, beyond=is_flush))

    def _item(
        self,
        item: Item,
        indent: str,
        hints: Hints,
        bound: _Bound,
        above: list[str],
        *,
        is_apart: bool,
    ) -> _Chunk:
        value = item.value
        self._passed = max(self._passed, item.start + 1)
        if isinstance(value, Leaf) or value.is_flow:
            above += self._alone(value.body, indent)
            lines = self._inline(value, indent, self._layout.column(item.start))
            lines[0] = f"{indent}- {lines[0]}" if lines[0] else f"{indent}-"
            lines[-1] += self._behind(item.end)
            return _Chunk(above, lines, is_apart)
        properties = self._properties(value)
        if properties:
            head = f"{indent}- {properties}{self._behind(self._end_of_properties(value))}"
            above += self._alone(value.body, indent)
            return _Chunk(
                above, [head, *self._block(value, indent + _STEP, hints, bound).lines()], is_apart
            )
        # What stands behind the dash, or between it and its value, comes to stand above it.
        above += self._alone(_first_start(value), indent)
        block = self._block(value, indent + _STEP, hints, bound)
        first, *others = block.chunks
        above += [line.removeprefix(_STEP) for line in first.above]
        lines = _Block([first._replace(above=[], is_apart=False), *others], block.end).lines()
        lines[0] = f"{indent}- {lines[0].removeprefix(indent + _STEP)}"
        return _Chunk(above, lines, is_apart)

    def _block(self, value: Mapping | Sequence, indent: str, hints: Hints, bound: _Bound) -> _Block:
        if isinstance(value, Mapping):
            return self._mapping(value, indent, hints, bound)
        return self._sequence(value, indent, hints, bound)

    # What stands on a line

    def _properties(self, part: Part) -> str:
        """Return anchor and tag, one blank between them."""
        return " ".join(self._properties_alone(part).split())

    def _end_of_properties(self, part: Part) -> int:
        """Return the index behind them; comments may follow before the value begins."""
        return part.start + len(self._properties_alone(part).rstrip())

    def _properties_alone(self, part: Part) -> str:
        """Return what stands before the value, blanks in the place of comments."""
        between = self._text[part.start : part.body]
        return _COMMENT.sub(lambda found: " " * len(found[0]), between) if between else ""

    def _key(self, key: Leaf) -> str:
        if "\n" in self._text[key.start : key.end]:
            raise EditRefused("a key has more than one line")
        properties = self._properties(key)
        shown = self._scalar(key)
        return f"{properties} {shown}" if properties else shown

    def _inline(self, part: Leaf | Mapping | Sequence, indent: str, column: int) -> list[str]:
        """Return the lines of what begins behind a key or dash; those below are indented."""
        properties = self._properties(part)
        raw = self._text[part.body : part.end].replace("\r\n", "\n")
        if isinstance(part, Leaf):
            lines = self._leaf_lines(part, raw, indent, column)
        elif "\n" in raw:
            lines = _shifted(raw, len(indent) - column)
            while self._upcoming().start < part.end:
                self._pass_comment(self._upcoming())
        else:
            lines = [self._flow(part) or raw]
        self._passed = max(self._passed, part.end)
        return [f"{properties} {lines[0]}".strip() if properties else lines[0], *lines[1:]]

    def _leaf_lines(self, part: Leaf, raw: str, indent: str, column: int) -> list[str]:
        if part.style in {"|", ">"}:
            is_cut = part.end == len(self._text)
            return _block_scalar(raw, indent + _STEP, column, is_cut=is_cut)
        if "\n" not in raw:
            return [self._scalar(part)]
        first, *others = raw.split("\n")
        return [first.rstrip(), *(f"{indent}{_STEP}{line.strip()}".rstrip() for line in others)]

    def _scalar(self, leaf: Leaf) -> str:
        if leaf.style == "'" and not _ESCAPES.search(leaf.value):
            return f'"{leaf.value}"'
        return self._text[leaf.body : leaf.end]

    def _flow(self, part: Part) -> str:
        """Return a value in brackets as it should be; empty when that is not sure."""
        if isinstance(part, Leaf):
            return "" if part.is_empty or part.start != part.body else self._scalar(part)
        if part.start != part.body or self._text[part.body] not in "{[":
            return ""
        shown = [
            self._pair(child) if isinstance(child, Entry) else self._flow(child.value)
            for child in part.children
        ]
        if not all(shown):
            return ""
        inside = ", ".join(shown)
        return f"{{{inside}}}" if isinstance(part, Mapping) else f"[{inside}]"

    def _pair(self, entry: Entry) -> str:
        value = self._flow(entry.value)
        return f"{self._key(entry.key)}: {value}" if entry.colon >= 0 and value else ""


def _first_start(part: Mapping | Sequence) -> int:
    return part.children[0].start


def _shifted(raw: str, delta: int) -> list[str]:
    """Return lines of a value in brackets, all but the first moved by `delta` columns."""
    first, *others = (line.rstrip() for line in raw.split("\n"))
    moved = []
    for line in others:
        text = line.lstrip(" ")
        moved.append(f"{' ' * max(len(line) - len(text) + delta, 0)}{text}" if text else "")
    return [first, *moved]


def _block_scalar(raw: str, indent: str, column: int, *, is_cut: bool) -> list[str]:
    """
    Return header and lines of a `|` or `>` scalar.

    Args:
        raw: As it stands in the text.
        indent: What its lines are to begin with.
        column: Of the field or item that it belongs to; a digit in its header counts from there.
        is_cut: The text ends with it, without a newline: it says none at its end, and goes on
            saying none when one is written.
    """
    header, *lines = raw.split("\n")
    mark, hash_sign, comment = header.partition("#")
    digit = _DIGIT.search(mark)
    if is_cut:
        mark = _without_newline(mark)
    if digit is None:
        # What has nothing but blanks is as wide as the widest of its lines: all are empty.
        first = next((line for line in lines if line.strip(" ")), max(lines, default=""))
        width = len(first) - len(first.lstrip(" "))
    else:
        width = column + int(digit[0])
        mark = mark.replace(digit[0], str(len(_STEP)))
    below = (f"{indent}{line[width:]}" if line[width:] else "" for line in lines)
    return [f"{mark}{hash_sign}{comment}".rstrip(), *below]


def _without_newline(mark: str) -> str:
    """Return a header such as `|` or `>2+` that keeps no newline: `|-`, `>2-`."""
    kept = mark.replace("+", "").replace("-", "").rstrip()
    return f"{kept}-{mark[len(mark.rstrip()) :]}"
