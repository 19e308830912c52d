"""
Typing into an editor: a text with a bar where the cursor stands.

Each text is a file of its own under `tasks/`, so that what the server still has to say of an
earlier one is never taken for an answer about this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from integration.yaml_language_server.session import Cursor, Message, Session

CURSOR = "█"
MODELINE = "# yaml-language-server: $schema=../.fleetform/schemas/fleetform.json\n"

# `${1:text}`, `${1}` and `$1` of the Language Server Protocol's snippet syntax.
_PLACE = re.compile(r"\$\{\d+:((?:\\.|[^}\\])*)\}|\$\{\d+\}|(?<!\\)\$\d+")


class Finding(NamedTuple):
    """A diagnostic as a person sees it: the text that is underlined, and the message."""

    underlined: str
    message: str
    line: int
    start: int
    end: int


class Editor(NamedTuple):
    """What a person does in an editor with a YAML file."""

    session: Session
    numbers: Iterator[int]

    def completions(self, text: str) -> dict[str, Message]:
        """What is offered at the cursor, by label."""
        name, cursor = self._typed(text)
        return {item["label"]: item for item in self.session.complete(name, cursor)}

    def hover(self, text: str) -> str:
        """What is shown for the word at the cursor."""
        name, cursor = self._typed(text)
        return self.session.hover(name, cursor)

    def findings(
        self, text: str, *, folder: str = "tasks", modeline: str = MODELINE
    ) -> list[Finding]:
        """What is underlined, from the top; lines are counted without the modeline."""
        name = f"{folder}/typed-{next(self.numbers)}.yaml"
        whole = modeline + text
        self.session.open(name, whole)
        above = modeline.count("\n")
        return sorted(
            (_finding(said, whole.splitlines(), above) for said in self.session.diagnostics(name)),
            key=lambda finding: (finding.line, finding.start),
        )

    def accept(self, text: str, label: str) -> str:
        """The text after what is offered as `label` was chosen and nothing in it was changed."""
        item = self.completions(text)[label]
        edit = item["textEdit"]
        whole, _ = _split(text)
        before, after = _cut(whole, edit["range"])
        column = len(before) - (before.rfind("\n") + 1)
        # An editor indents further lines as the first one.
        indented = filled_in(edit["newText"]).replace("\n", "\n" + " " * _indent(before, column))
        return before + indented + after

    def _typed(self, text: str) -> tuple[str, Cursor]:
        name = f"tasks/typed-{next(self.numbers)}.yaml"
        whole, cursor = _split(text)
        self.session.open(name, whole)
        return name, cursor


def documentation(item: Message) -> str:
    """What an editor shows beside an item of its list."""
    said = item.get("documentation") or ""
    return said["value"] if isinstance(said, dict) else said


def filled_in(snippet: str) -> str:
    """A snippet's text when nothing is typed into its places."""
    plain = _PLACE.sub(lambda match: match[1] or "", snippet)
    return re.sub(r"\\([\\$}])", r"\1", plain)


def _split(text: str) -> tuple[str, Cursor]:
    before, _, after = (MODELINE + text).partition(CURSOR)
    return before + after, Cursor(before.count("\n"), len(before) - (before.rfind("\n") + 1))


def _cut(text: str, span: Message) -> tuple[str, str]:
    start, end = (_offset(text, span[edge]) for edge in ("start", "end"))
    return text[:start], text[end:]


def _offset(text: str, place: Message) -> int:
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: place["line"]])) + place["character"]


def _indent(before: str, column: int) -> int:
    line = before[len(before) - column :]
    return len(line) - len(line.lstrip(" "))


def _finding(said: Message, lines: list[str], above: int) -> Finding:
    start, end = said["range"]["start"], said["range"]["end"]
    assert start["line"] == end["line"], said
    underlined = lines[start["line"]][start["character"] : end["character"]]
    return Finding(
        underlined, said["message"], start["line"] - above, start["character"], end["character"]
    )
