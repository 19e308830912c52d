"""
What changed between two texts, line by line, with some of what stayed around it.

Whatever shows a difference of texts takes its lines from here: nothing that changed is left out,
and nothing in a line is obeyed by a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fleetform.views.lines import Line, line, printable

TONES = {"+": "good", "-": "bad", "@": "info", " ": "plain", "\\": "dim"}
"""By a line's sign."""

CONTEXT = 3

ALIGN_MAX = 4_000_000
"""
Product of two texts' changed lines above which they are shown as all old lines, then all new ones.

Alignment may cost that product, some seconds; a plan has to be read before it is trusted, and a
text that keeps its reader waiting for an hour is an attack.
"""


class DiffLine(NamedTuple):
    """
    One line of a unified diff.

    `sign` is `+`, `-`, a space for what stays, `@` for where the following lines stand, or a
    backslash for a text that does not end its last line.
    """

    sign: str
    text: str

    def __str__(self) -> str:
        return self.text if self.sign == "@" else f"{self.sign}{self.text}"


def text_diff(path: str, before: str | None, after: str | None) -> tuple[Line, ...]:
    """
    Compare two texts of one file.

    Args:
        path: As people would type it; both headers have it.
        before: None: the file is new.
        after: None: the file goes.

    Returns:
        Nothing where both say the same. Blanks are as they are, so that `patch` takes it.
    """
    # An empty file has no line, and none to be without an end.
    found = list(diff_lines(before or None, after or None, show_blanks=False))
    if not found:
        return ()
    heads = (("---", before), ("+++", after))
    named = (f"{sign} {'/dev/null' if text is None else printable(path)}" for sign, text in heads)
    return (
        *(line((head, "bold")) for head in named),
        *(line((str(one), TONES[one.sign])) for one in found),
    )


def diff_lines(
    before: str | None, after: str | None, *, show_blanks: bool = True
) -> Iterator[DiffLine]:
    """
    Compare two texts. What differs is never cut.

    Args:
        before: None: it was not there.
        after: None: it goes.
        show_blanks: Escape tabs, and blanks at a line's end: a change of them is easily overlooked.
    """
    old, new = _lines(before), _lines(after)
    compare = _unaligned if _changed_count(old, new) > ALIGN_MAX else _aligned
    for sign, text in compare(old, new):
        body = text.removesuffix("\n")
        yield DiffLine(sign, _escaped(body) if show_blanks else _as_it_is(body))
        if sign != "@" and body == text:
            yield DiffLine("\\", " no newline at the end")


def _aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    import difflib  # Few plans have a text of several lines.

    for text in list(difflib.unified_diff(old, new, n=CONTEXT))[2:]:
        yield text[0], text if text[0] == "@" else text[1:]


def _lines(text: str | None) -> list[str]:
    """Lines with their ends, of which there is one kind: a carriage return is a character."""
    if text is None:
        return []
    lines = [f"{one}\n" for one in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] or len(lines) == 1 else lines[:-1]


def _escaped(text: str) -> str:
    kept = text.rstrip()
    blanks = "".join(f"\\u{ord(one):04x}" for one in text[len(kept) :])
    return f"{printable(kept)}{blanks}"


def _as_it_is(text: str) -> str:
    return "\t".join(map(printable, text.split("\t")))


def _ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines are the same at the beginning and at the end."""
    start = same_length(old, new)
    rest = min(len(old), len(new)) - start
    return start, same_length(old[::-1][:rest], new[::-1][:rest])


def same_length(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items, or characters, two sequences have in common from their beginnings."""
    pairs = enumerate(zip(one, other, strict=False))
    least = min(len(one), len(other))
    return next((place for place, (left, right) in pairs if left != right), least)


def _changed_count(old: Sequence[str], new: Sequence[str]) -> int:
    start, end = _ends(old, new)
    return (len(old) - start - end) * (len(new) - start - end)


def _unaligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    start, end = _ends(old, new)
    first = max(0, start - CONTEXT)
    yield "@", f"@@ -{first + 1} +{first + 1} @@\n"
    stretches = (
        (" ", old[first:start]),
        ("-", old[start : len(old) - end]),
        ("+", new[start : len(new) - end]),
        (" ", old[len(old) - end :][:CONTEXT]),
    )
    for sign, lines in stretches:
        for text in lines:
            yield sign, text
