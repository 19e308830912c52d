"""
Lines of text with tones, and no terminal.

A view says what a piece of text means; whoever prints decides whether that is a colour. The
tones are those of `table`: `plain`, `bold`, `dim`, `good`, `bad`, `warn`, `info`.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from fleetform.spec.dataclass import dataclass

__all__ = ["BLANK", "Line", "Span", "Written", "line", "printable", "printable_lines"]


class Span(NamedTuple):
    """A piece of one line; a plan of ten thousand changes has a hundred thousand."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its newline."""

    spans: tuple[Span, ...] = ()

    @property
    def text(self) -> str:
        """The line without tones."""
        return "".join([span.text for span in self.spans])


BLANK = Line()


class Written(str):
    """Text that is already as people read it, and needs neither a unit nor quotes."""

    __slots__ = ()


def line(*parts: str | Span | tuple[str, str]) -> Line:
    """Build a line of texts, which are plain, and of (text, tone); empty parts are left out."""
    spans = [
        part if type(part) is Span else Span(part) if isinstance(part, str) else Span(*part)
        for part in parts
        # Of a pair: its text.
        if (part if isinstance(part, str) else part[0])
    ]
    return Line(tuple(spans))


def printable(text: str) -> str:
    """
    Return the text on one line and with nothing in it that a terminal obeys.

    A document may hold escape sequences and characters that turn the direction of writing
    around; a plan is read before it is trusted.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1] for character in text
    )


def printable_lines(text: str) -> str:
    """Return the text with its lines kept apart, and nothing else that a terminal obeys."""
    if text.isprintable():
        return text
    return "\n".join(map(printable, text.split("\n")))
