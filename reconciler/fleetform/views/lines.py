"""
Lines of text with tones, and no terminal.

A view says what a piece of text means; whoever prints decides whether that is a colour. The
tones are those of `table`: `plain`, `bold`, `dim`, `good`, `bad`, `warn`, `info`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

__all__ = ["BLANK", "Line", "Span", "line", "printable"]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of one line."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its newline."""

    spans: tuple[Span, ...] = ()

    @property
    def text(self) -> str:
        """The line without tones."""
        return "".join(span.text for span in self.spans)


BLANK = Line()


def line(*parts: str | Span | tuple[str, str]) -> Line:
    """Build a line of texts, which are plain, and of (text, tone); empty parts are left out."""
    spans = (
        part if isinstance(part, Span) else Span(part) if isinstance(part, str) else Span(*part)
        for part in parts
    )
    return Line(tuple(span for span in spans if span.text))


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
