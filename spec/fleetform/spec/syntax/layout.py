"""
Find where everything stands in a YAML text: events of libyaml to a tree of offsets, with comments.

The loader keeps what a document means and forgets how it was written. A layout keeps how it was written
and leaves its meaning to the loader. Both use the same parser, so they never disagree about where a value
ends. A layout is made of text that the loader has read without an error, and asserts the grammar
instead of explaining it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from yaml import CBaseLoader
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
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


# Events say where values stand. What stands between them is found in the text: blanks, comments, and
# one colon or dash.
_BETWEEN: Final = r"(?:[ \t\r\n]|#[^\n]*(?:\n|\Z))*"
_BLANKS: Final = re.compile(_BETWEEN)
_QUESTION: Final = re.compile(rf"{_BETWEEN}(?:,{_BETWEEN})?\?")
_COLON: Final = re.compile(rf"[ \t]*:|{_BETWEEN}:(?=\s|\Z)")
_DASH: Final = re.compile(f"{_BETWEEN}-")
_PROPERTY: Final = re.compile(rf"{_BETWEEN}(&[\w-]+|!(?:<[^>]*>|[^\s,\[\]{{}}]*))")
_COMMENT: Final = re.compile(r"(?<!\S)#[^\n]*")


class _Reader:
    """
    Makes parts of events, with one event of look-ahead.

    It recurses as deep as the document, which the loader has bounded.
    """

    def __init__(self, text: str) -> None:
        self.comments: list[Comment] = []
        self._text = text
        self._get = CBaseLoader(text).get_event
        self._event: Any = None
        self._start = self._end = 0
        self._passed = 0
        self._has_comments = "#" in text
        self._next()

    def _next(self) -> None:
        """Go to the next event, and keep the comments before it."""
        self._event = self._get()
        assert self._event is not None, "nothing is asked for behind the stream's end"
        self._start, self._end = self._event.start_mark.index, self._event.end_mark.index
        if self._start > self._passed:
            self._take_comments(self._passed, self._start)
        # Marks of blocks have no width, and stand before what was passed.
        self._passed = max(self._passed, self._end)

    def _take_comments(self, start: int, end: int) -> None:
        """Keep the comments of a piece of text in which every `#` begins one."""
        while self._has_comments and (at := self._text.find("#", start, end)) >= 0:
            start = self._take_comment(at)

    def _take_comment(self, at: int) -> int:
        text = self._text
        line = text.rfind("\n", 0, at) + 1
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        is_alone = not text[line:at].strip()
        self.comments.append(Comment(at, at - line, is_alone, text[at:stop].rstrip()))
        return stop

    def pages(self) -> Iterator[Page]:
        self._next()  # The stream's start was taken already.
        start = 0
        while type(self._event) is not StreamEndEvent:
            opened = start
            if self._event.explicit:
                # Directives may stand before `---`, with comments between and behind them.
                for found in _COMMENT.finditer(self._text, self._start, self._end):
                    self._take_comment(found.start())
                opened = self._end
            self._next()
            root = self._part(opened)
            closed = self._start if self._event.explicit else -1
            self._next()
            is_last = type(self._event) is StreamEndEvent
            end = len(self._text) if is_last else self._start
            yield Page(start, opened, root, end if closed < 0 else closed, end)
            start = end

    def _part(self, after: int) -> Part:
        """Read a value; one that is not there stands at the index `after`."""
        event, start, end = self._event, self._start, self._end
        if isinstance(event, AliasEvent):
            self._next()
            return Leaf(start, start, end, "*", event.anchor or "")
        count = (event.anchor is not None) + (event.tag is not None)
        body = self._behind_properties(start, end, count) if count else start
        if isinstance(event, CollectionStartEvent):
            is_mapping = isinstance(event, MappingStartEvent)
            is_flow = bool(event.flow_style)
            return (self._mapping if is_mapping else self._sequence)(start, body, is_flow=is_flow)
        assert isinstance(event, ScalarEvent), event
        self._next()
        style = event.style or ""
        if not style and body == end:
            return Leaf(start, body, body, "", "") if count else Leaf(after, after, after, "", "")
        if style in {"|", ">"}:
            end = self._block_end(body, end)
        return Leaf(start, body, end, style, event.value)

    def _behind_properties(self, start: int, end: int, count: int) -> int:
        """Return the index of the value behind so many of anchor and tag, or where they end."""
        at = start
        for _ in range(count):
            found = _PROPERTY.match(self._text, at)
            assert found is not None, self._event
            self._take_comments(at, found.start(1))
            at = found.end()
        if at >= end:
            return at
        blanks = _BLANKS.match(self._text, at)
        assert blanks is not None, "it matches nothing as well"
        self._take_comments(at, blanks.end())
        return blanks.end()

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

    def _mapping(self, start: int, body: int, *, is_flow: bool) -> Mapping:
        opened = self._end
        # `[a: b]` has a mapping without braces.
        is_pair = is_flow and self._text[opened - 1] != "{"
        self._next()
        entries: list[Entry] = []
        while type(self._event) is not MappingEndEvent:
            entries.append(self._entry(entries[-1].end if entries else opened))
        end = entries[-1].end if entries else opened
        if is_pair:
            start = body = entries[0].start
        elif is_flow:
            end = self._end
        self._next()
        return Mapping(start, body, end, is_flow, tuple(entries))

    def _entry(self, after: int) -> Entry:
        # An empty key may stand behind a `?`.
        mark = _QUESTION.match(self._text, after)
        key = self._part(mark.end() if mark else after)
        if not isinstance(key, Leaf):
            raise EditRefused("a key is a list or a mapping")
        found = _COLON.match(self._text, key.end)
        colon = found.end() if found else -1
        return Entry(key, colon, self._part(colon if found else key.end))

    def _sequence(self, start: int, body: int, *, is_flow: bool) -> Sequence:
        self._next()
        items: list[Item] = []
        while type(self._event) is not SequenceEndEvent:
            if is_flow:
                part = self._part(self._start)
                items.append(Item(part.start, part))
            else:
                dash = _DASH.match(self._text, items[-1].end if items else body)
                assert dash is not None, self._event
                items.append(Item(dash.end() - 1, self._part(dash.end())))
        end = self._end if is_flow else items[-1].end
        self._next()
        return Sequence(start, body, end, is_flow, tuple(items))
