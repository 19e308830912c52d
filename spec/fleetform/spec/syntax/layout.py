"""
Find where everything stands in a YAML text: tokens of libyaml to a tree of offsets, with comments.

The loader keeps what a document means and forgets how it was written; this keeps the second and
leaves the first to the loader. Both use the same scanner, so they never disagree about where a value
ends. A layout is made of text that the loader has read without an error, and asserts the grammar
instead of explaining it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from yaml import CBaseLoader
from yaml.tokens import (
    AliasToken,
    AnchorToken,
    BlockEndToken,
    BlockEntryToken,
    BlockMappingStartToken,
    BlockSequenceStartToken,
    DirectiveToken,
    DocumentEndToken,
    DocumentStartToken,
    FlowEntryToken,
    FlowMappingEndToken,
    FlowMappingStartToken,
    FlowSequenceEndToken,
    FlowSequenceStartToken,
    KeyToken,
    ScalarToken,
    StreamEndToken,
    TagToken,
    ValueToken,
)

__all__ = [
    "Comment",
    "EditRefused",
    "Entry",
    "Item",
    "Layout",
    "Leaf",
    "Mapping",
    "Page",
    "Part",
    "Sequence",
    "read_layout",
]


class EditRefused(Exception):
    """
    The text cannot be changed as asked, and nothing was.

    `message` is a clause for people, `advice` what they can do themselves.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


# Ends of lines that YAML 1.1 has and no editor shows. Lines are counted by the others here.
_ODD_BREAK: Final = re.compile("\r(?!\n)|[\x85\u2028\u2029]")


class Leaf(NamedTuple):
    """
    A scalar, an alias, or nothing at all.

    Attributes:
        start: Index of its first character, anchor and tag included.
        body: Index behind anchor and tag.
        end: Index behind its last character; of a block scalar, of its last line's, without
            what ends that line.
        style: `'`, `"`, `|`, `>`, `*` for an alias, empty when plain.
        value: What it says, without quotes and escapes; an alias's name.
    """

    start: int
    body: int
    end: int
    style: str
    value: str

    @property
    def is_empty(self) -> bool:
        return self.body == self.end


class Entry(NamedTuple):
    """A key and its value. `colon` is the index behind the colon; -1 where there is none."""

    key: Leaf
    colon: int
    value: Part

    @property
    def start(self) -> int:
        return self.key.start

    @property
    def end(self) -> int:
        return max(self.value.end, self.colon, self.key.end)


class Item(NamedTuple):
    """An entry of a list. `start` is the index of its dash; in brackets, of its value."""

    start: int
    value: Part

    @property
    def end(self) -> int:
        return max(self.value.end, self.start + 1)


class Mapping(NamedTuple):
    """A mapping: `is_flow` when it stands in braces."""

    start: int
    body: int
    end: int
    is_flow: bool
    entries: tuple[Entry, ...]

    @property
    def children(self) -> tuple[Entry, ...]:
        return self.entries

    def find(self, name: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.key.value == name), None)


class Sequence(NamedTuple):
    """A list: `is_flow` when it stands in brackets."""

    start: int
    body: int
    end: int
    is_flow: bool
    items: tuple[Item, ...]

    @property
    def children(self) -> tuple[Item, ...]:
        return self.items


Part: TypeAlias = Leaf | Mapping | Sequence


class Comment(NamedTuple):
    """
    From `#` to the end of the line, blanks at the end left out.

    `is_alone` says that nothing else stands on its line.
    """

    start: int
    column: int
    is_alone: bool
    text: str


class Page(NamedTuple):
    """
    One document of the text.

    Attributes:
        start: Where its part of the text begins: with its first directive, `---`, or, of a
            document without either, with the text.
        opened: Index behind its `---`; `start` where it has none.
        root: What it says.
        closed: Index of its `...`; where it has none, the end of its part of the text.
        end: Where the next page begins, or the text ends.
    """

    start: int
    opened: int
    root: Part
    closed: int
    end: int


class Layout(NamedTuple):
    """A text with the places of its documents. `comments` are in the order of the text."""

    text: str
    pages: tuple[Page, ...]
    comments: tuple[Comment, ...]

    def line_start(self, index: int) -> int:
        return self.text.rfind("\n", 0, index) + 1

    def line_end(self, index: int) -> int:
        """Return the index of the line's end, before what ends it."""
        found = self.text.find("\n", index)
        end = len(self.text) if found < 0 else found
        return end - 1 if end > index and self.text[end - 1] == "\r" else end

    def column(self, index: int) -> int:
        return index - self.line_start(index)

    def is_first(self, index: int) -> bool:
        """Tell whether only blanks stand before `index` on its line."""
        return not self.text[self.line_start(index) : index].strip()

    @property
    def newline(self) -> str:
        """How lines end here: as the first of them."""
        found = self.text.find("\n")
        return "\r\n" if found > 0 and self.text[found - 1] == "\r" else "\n"


def read_layout(text: str) -> Layout:
    """
    Return where everything stands in `text`, which the loader reads without an error.

    Raises:
        EditRefused: Lines end in a way that editors do not agree about.
    """
    odd = None if text.isascii() and "\r" not in text else _ODD_BREAK.search(text)
    if odd is not None:
        raise EditRefused(
            f"line {text.count(chr(10), 0, odd.start()) + 1} contains U+{ord(odd[0]):04X}, which YAML"
            " takes for the end of a line and editors do not",
            "replace it by a newline, or by its escape in double quotes",
        )
    reader = _Reader(text)
    pages = tuple(reader.pages())
    return Layout(text, pages, tuple(reader.comments))


_PROPERTIES: Final = (AnchorToken, TagToken)


class _Reader:
    """
    A parser of YAML's grammar over tokens, with one token of look-ahead.

    It recurses as deep as the document, which the loader has bounded.
    """

    def __init__(self, text: str) -> None:
        self.comments: list[Comment] = []
        self._text = text
        self._get = CBaseLoader(text).get_token
        self._token: Any = None
        self._kind: type = type(None)
        self._start = self._end = 0
        self._passed = 0
        self._has_comments = "#" in text
        self._next()

    def _next(self) -> None:
        """Go to the next token, and keep the comments before it."""
        token = self._get()
        assert token is not None, "nothing is asked for behind the stream's end"
        start, end = token.start_mark.index, token.end_mark.index
        self._token, self._kind, self._start, self._end = token, type(token), start, end
        if start > self._passed:
            if self._has_comments:
                self._take_comments(self._passed, start)
            self._passed = start
        # Marks of blocks have no width, and stand before what was passed.
        self._passed = max(self._passed, end)

    def _take_comments(self, start: int, end: int) -> None:
        # Between two tokens stand blanks and comments, and nothing else.
        text = self._text
        while (at := text.find("#", start, end)) >= 0:
            line = text.rfind("\n", 0, at) + 1
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            self.comments.append(
                Comment(at, at - line, not text[line:at].strip(), text[at:stop].rstrip())
            )
            start = stop

    def pages(self) -> Iterator[Page]:
        self._next()  # The stream's start.
        start = 0
        while self._kind is not StreamEndToken:
            while self._kind is DirectiveToken:
                self._next()
            opened = start
            if self._kind is DocumentStartToken:
                opened = self._end
                self._next()
            root = self._part(opened)
            closed = -1
            while self._kind is DocumentEndToken:
                closed = self._start if closed < 0 else closed
                self._next()
            end = len(self._text) if self._kind is StreamEndToken else self._start
            yield Page(start, opened, root, end if closed < 0 else closed, end)
            start = end

    def _part(self, after: int, *, in_mapping: bool = False) -> Part:
        """Read a value; one that is not there stands at the index `after`."""
        start = body = -1
        while self._kind in _PROPERTIES:
            start = self._start if start < 0 else start
            body = self._end
            self._next()
        kind = self._kind
        if kind is ScalarToken or kind is AliasToken:
            return self._leaf(start)
        if kind is BlockMappingStartToken or kind is FlowMappingStartToken:
            return self._mapping(start, is_flow=kind is FlowMappingStartToken)
        if kind is BlockSequenceStartToken or kind is FlowSequenceStartToken:
            return self._sequence(start, is_flow=kind is FlowSequenceStartToken)
        if kind is BlockEntryToken and in_mapping:
            return self._dashes(start)
        if body >= 0:
            return Leaf(start, body, body, "", "")
        return Leaf(after, after, after, "", "")

    def _leaf(self, start: int) -> Leaf:
        token = self._token
        body, end = self._start, self._end
        style = "*" if self._kind is AliasToken else (token.style or "")
        if style in {"|", ">"}:
            end = self._block_end(body, end)
        leaf = Leaf(body if start < 0 else start, body, end, style, token.value)
        self._next()
        return leaf

    def _block_end(self, body: int, end: int) -> int:
        """Return the index behind a block scalar's last line; only with `+` may that be blank."""
        text = self._text
        header_end = text.find("\n", body, end)
        keeps = header_end >= 0 and "+" in text[body:header_end].partition("#")[0]
        while True:
            end -= text.endswith("\n", body, end)
            end -= text.endswith("\r", body, end)
            line = text.rfind("\n", body, end)
            if keeps or line < 0 or text[line:end].strip():
                return end
            end = line + 1

    def _mapping(self, start: int, *, is_flow: bool) -> Mapping:
        body = self._start
        opened = self._end
        self._next()
        entries: list[Entry] = []
        while self._kind not in {BlockEndToken, FlowMappingEndToken}:
            if self._kind is FlowEntryToken:
                self._next()
                continue
            entries.append(self._entry())
        end = self._end if is_flow else (entries[-1].end if entries else opened)
        self._next()
        return Mapping(body if start < 0 else start, body, end, is_flow, tuple(entries))

    def _entry(self) -> Entry:
        after = self._end
        if self._kind is KeyToken:
            self._next()
        key = self._part(after)
        if not isinstance(key, Leaf):
            raise EditRefused("a key is a list or a mapping")
        if self._kind is not ValueToken:
            return Entry(key, -1, Leaf(key.end, key.end, key.end, "", ""))
        colon = self._end
        self._next()
        return Entry(key, colon, self._part(colon, in_mapping=True))

    def _sequence(self, start: int, *, is_flow: bool) -> Sequence:
        if not is_flow:
            self._next()
            dashes = self._dashes(start)
            assert self._kind is BlockEndToken, self._token
            self._next()
            return dashes
        body = self._start
        self._next()
        items: list[Item] = []
        while self._kind is not FlowSequenceEndToken:
            if self._kind is FlowEntryToken:
                self._next()
            elif self._kind is KeyToken:
                entry = self._entry()
                pair = Mapping(entry.start, entry.start, entry.end, True, (entry,))
                items.append(Item(pair.start, pair))
            else:
                part = self._part(self._start)
                items.append(Item(part.start, part))
        end = self._end
        self._next()
        return Sequence(body if start < 0 else start, body, end, True, tuple(items))

    def _dashes(self, start: int) -> Sequence:
        body = self._start
        items: list[Item] = []
        while self._kind is BlockEntryToken:
            dash, after = self._start, self._end
            self._next()
            items.append(Item(dash, self._part(after)))
        end = items[-1].end
        return Sequence(body if start < 0 else start, body, end, False, tuple(items))
