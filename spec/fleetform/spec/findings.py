"""
Findings: what is wrong with a document, as values.

A finding is never an exception. The passes over a tree collect them, and the edge shows all
of them at once, sorted by place. Three levels: an `ERROR` keeps a document from being
planned, a `WARNING` is probably not what was meant, a `NOTE` is worth knowing.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace


class Level(enum.StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """
    Where in the tree, as people and editors count: lines and columns from 1.

    `file` is relative to the tree's root, with forward slashes. `line` 0 means the file as a
    whole. `length` is how many characters the caret line underlines; 0 is treated as 1.
    """

    file: str
    line: int = 0
    column: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """
    One thing wrong at one place.

    Attributes:
        code: Stable, for scripts and for the reference: `unknown-field`, `duplicate-name`.
        summary: Constant for the code and the noun; no values of the document in it.
        detail: What is wrong here and why it matters.
        advice: What to do next; may be empty.
        address: The field, dotted: `task.train.resources.gpu`; empty for a whole file.
        text: The source line the caret points into, without its newline; empty when unknown.
    """

    level: Level
    code: str
    summary: str
    place: Place
    detail: str = ""
    advice: str = ""
    address: str = ""
    text: str = ""

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        return (self.place.file, self.place.line, self.place.column, self.code, self.detail)


@dataclass(frozen=True, slots=True)
class Problem:
    """
    A finding whose place is not known yet: what the passes over values produce.

    They see documents without lines and columns, so they name the field instead, and whoever
    holds the nodes turns one into the other. The summary goes with the code, in `kinds.codes`.

    Attributes:
        path: Keys and positions from the document's top: `("retry", "on", 0)`; empty: the
            document as a whole.
        at_key: The key itself is wrong, not its value.
        word: What below `path` to point at, where a list may be spelled in several ways:
            `("depends_on",)` and `train` find `train` in each of them. Of a text, the part of it.
        for_lack_of: The document's fields for lack of which it is told. One of them that is
            there and could not be read is a mistake of its own, and this is none then.
    """

    code: str
    path: tuple[str | int, ...] = ()
    detail: str = ""
    advice: str = ""
    level: Level = Level.ERROR
    at_key: bool = False
    word: str = ""
    for_lack_of: tuple[str, ...] = ()

    def below(self, *path: str | int) -> Problem:
        """The same problem, of a part that stands at `path` in the document."""
        return replace(self, path=(*path, *self.path))
