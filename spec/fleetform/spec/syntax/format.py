"""
A file written again, document by document, and the proof that it still says the same.

A document that is not ours is copied as it is: a file may hold others, and what a program makes
of its own YAML is not for us to know.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from fleetform.spec.findings import SUMMARIES, Finding, Level, Place
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, plain
from fleetform.spec.syntax import quote_lines, read_documents
from fleetform.spec.syntax.edit import same_values
from fleetform.spec.syntax.field_order import Hints, hints_of_document
from fleetform.spec.syntax.layout import EditRefused, Layout, Leaf, Mapping, Page, read_layout
from fleetform.spec.syntax.pages import page_lines

__all__ = ["Formatted", "format_bytes", "format_read", "format_text"]

_MARK = "\ufeff"


class Formatted(NamedTuple):
    """
    What became of a file.

    Attributes:
        data: What it should contain; what it contains, when that is in order or cannot be read.
        findings: Why it was left alone.
    """

    data: bytes
    findings: tuple[Finding, ...] = ()


def format_bytes(data: bytes, file: str) -> Formatted:
    """
    Return a file in the one way of writing it.

    Args:
        data: What the file contains: any bytes.
        file: Its name for findings.
    """
    return format_read(data, file, *read_documents(data, file))


def format_read(data: bytes, file: str, nodes: list[Node], findings: list[Finding]) -> Formatted:
    """Return what `format_bytes` does, of a file that the loader has read already."""
    errors = tuple(found for found in findings if found.level is Level.ERROR)
    if errors:
        return Formatted(data, errors)
    if not any(_is_fleetform(node) for node in nodes):
        return Formatted(data)
    text = data.decode()
    mark = _MARK if text.startswith(_MARK) else ""
    try:
        formatted = _format(text.removeprefix(_MARK), nodes)
    except EditRefused as refused:
        return Formatted(data, tuple(quote_lines([_left_alone(refused, file)], data)))
    return Formatted(f"{mark}{formatted}".encode())


def format_text(text: str) -> str:
    """
    Return a text in the one way of writing it; as it is, when it cannot be read.

    Raises:
        EditRefused: It is written in a way that is better left alone.
    """
    formatted = format_bytes(text.encode(), "")
    refusals = [found for found in formatted.findings if found.code == "not-formatted"]
    if refusals:
        raise EditRefused(refusals[0].detail, refusals[0].advice)
    return formatted.data.decode()


def _is_fleetform(node: Node) -> bool:
    kind = node.get("type") if isinstance(node, MappingNode) else None
    return isinstance(kind, ScalarNode) and hints_of_document(kind.raw) is not None


def _format(text: str, nodes: list[Node]) -> str:
    layout = read_layout(text)
    for sort in (True, False):
        # An anchor has to stand before its aliases, so there are documents that cannot be
        # put in order.
        formatted = _written(layout, sort=sort)
        if formatted == text or _says_the_same(layout, nodes, formatted):
            return formatted
    raise EditRefused(
        "it could not be written in another way and still say the same",
        "leave it as it is, or write out what its anchors repeat",
    )


def _written(layout: Layout, *, sort: bool) -> str:
    pieces: list[str] = []
    for number, page in enumerate(layout.pages):
        is_last = number + 1 == len(layout.pages)
        hints = _hints(page)
        if hints is None:
            pieces.append(layout.text[page.start : page.end])
            continue
        lines = [
            *_opening(layout, page),
            *page_lines(layout, page, hints, sort=sort),
            *_closing(layout, page, is_last=is_last),
        ]
        pieces.append("".join(line + layout.newline for line in lines))
    return "".join(pieces)


def _hints(page: Page) -> Hints | None:
    """Return what is known about a document; None for one that is left as it is."""
    root = page.root
    if not isinstance(root, Mapping) or root.is_flow or root.start != root.body:
        return None
    kind = root.find("type")
    if kind is None or not isinstance(kind.value, Leaf):
        return None
    return hints_of_document(kind.value.value)


def _opening(layout: Layout, page: Page) -> list[str]:
    """Return the line with `---`, and what stands before it, as they are."""
    if page.opened == page.start:
        return []
    end = layout.line_end(page.opened)
    if page.root.start < end:
        raise EditRefused("a document begins on the line of its `---`")
    raw = layout.text[page.start : end].replace("\r\n", "\n")
    return [line.rstrip() for line in raw.split("\n")]


def _closing(layout: Layout, page: Page, *, is_last: bool) -> list[str]:
    """Return the line with `...` and what follows it; else one blank line where one was."""
    raw = layout.text[page.closed : page.end].replace("\r\n", "\n")
    if raw:
        return [line.rstrip() for line in raw.strip("\n").split("\n")]
    said_until = max(
        page.root.end,
        *(one.start + len(one.text) for one in layout.comments if one.start < page.end),
        0,
    )
    is_apart = layout.text.count("\n", said_until, page.end) > 1
    return [""] if is_apart and not is_last else []


def _says_the_same(before: Layout, nodes: list[Node], formatted: str) -> bool:
    read, findings = read_documents(formatted.encode(), "")
    if any(found.level is Level.ERROR for found in findings) or len(read) != len(nodes):
        return False
    if not all(
        same_values(plain(one), plain(other)) for one, other in zip(read, nodes, strict=True)
    ):
        return False
    after = read_layout(formatted)
    return _comment_texts(before) == _comment_texts(after)


def _comment_texts(layout: Layout) -> Counter[str]:
    return Counter(comment.text for comment in layout.comments)


def _left_alone(refused: EditRefused, file: str) -> Finding:
    return Finding(
        Level.WARNING,
        "not-formatted",
        SUMMARIES["not-formatted"],
        Place(file),
        f"{refused.message[:1].upper()}{refused.message[1:]}.",
        f"{refused.advice[:1].upper()}{refused.advice[1:]}." if refused.advice else "",
    )
