"""
Lines of text with tones, and no terminal.

A view says what a piece of text means; the code that prints decides whether that is a colour. The
tones are those of `table`: `plain`, `bold`, `dim`, `good`, `bad`, `warn`, `info`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NamedTuple


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


# GitHub's runner obeys `::name …::` behind blanks at a line's beginning and `##[name …]` anywhere
# in it; Azure's `##vso[name …]` likewise. `${path##[a-z]*}` of a shell is none of them.
_COMMAND = re.compile(
    r"(?P<begin>^[^\S\n]*):(?=:[A-Za-z])|#(?=#(?:vso)?\[[a-z]+(?:[-.][a-z]{2,})*[ \]])",
    re.MULTILINE,
)


def harmless(text: str) -> str:
    """
    Return the text with nothing in it that a CI runner obeys which reads it in its log.

    What is printed quotes documents before their review: `::stop-commands::` on a line of
    its own would be carried out. One sign of it is escaped, as `printable` and JSON have it.
    """
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    begin: str | None = found["begin"]
    return "\\u0023" if begin is None else f"{begin}\\u003a"


def printable_lines(text: str) -> str:
    """Return the text with its lines kept apart, and nothing else that a terminal obeys."""
    if text.isprintable():
        return text
    return "\n".join(map(printable, text.split("\n")))
