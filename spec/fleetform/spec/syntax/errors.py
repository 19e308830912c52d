"""
Words for what libyaml cannot parse.

libyaml says what its grammar expected. A person wants to know what was probably typed, so each
of its sentences has a row here: where to point, what is wrong, what to do. A sentence without a
row is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from yaml.error import MarkedYAMLError, YAMLError

from fleetform.spec.nodes import Span

__all__ = ["DOCUMENT_EXPECTED", "Problem", "explain"]

DOCUMENT_EXPECTED = "did not find expected <document start>"
"""libyaml's words for text behind a complete document that does not begin another."""


class Problem(NamedTuple):
    """What is reported; `place.line` counts from 1 in the lines that were looked at."""

    code: str
    summary: str
    place: Span
    detail: str
    advice: str


class _Row(NamedTuple):
    said: str
    """Part of `context: problem` as libyaml says it."""
    at_context: bool
    """Point at the beginning of the construct, and not where it became clear."""
    detail: str
    advice: str


# The first row that fits is taken, so the special stand above the general.
_ROWS = (
    _Row(
        "quoted scalar: found unexpected end of stream", True,
        "A quote is opened here and never closed.",
        "Close it, or leave it out. A quote inside of single quotes is written twice: 'it''s'.",
    ),
    _Row(
        "quoted scalar: found unexpected document indicator", True,
        "A quote is opened here and not closed before the `---` that begins the next document.",
        "Close it, or leave it out.",
    ),
    _Row(
        "found unknown escape character", False,
        "A backslash in double quotes begins an escape, and this is none of them.",
        "Write `\\\\` for a backslash, or use single quotes, which have no escapes.",
    ),
    _Row(
        "hexdecimal number", False,
        "An escape such as `\\x41` or `\\u00e9` has too few digits.",
        "Complete it, or use single quotes, which have no escapes.",
    ),
    _Row(
        "Unicode character escape code", False,
        "The escape names no character.",
        "Correct it, or use single quotes, which have no escapes.",
    ),
    _Row(
        "mapping values are not allowed", False,
        "This line has a second colon followed by a space, or is indented too deep.",
        "If the colon belongs to the text, put the text in quotes. Otherwise indent the line like the lines around it.",
    ),
    _Row(
        "could not find expected ':'", True,
        "This line is neither `name: value` nor an item of a list.",
        "Write a colon and a space behind the name. If it continues the text above, put that text"
        " behind `|`, one line each.",
    ),
    _Row(
        "block mapping: did not find expected key", False,
        "This line does not belong to the mapping above it: its indentation fits none of the"
        " lines above.",
        "Indent it like the other fields of the mapping.",
    ),
    _Row(
        "block collection: did not find expected '-' indicator", False,
        "This line is between the items of a list and is not an item.",
        "Begin it with `- `, or indent it like the field that it belongs to.",
    ),
    _Row(
        "block sequence entries are not allowed", False,
        "An item of a list (`- `) is where a value on one line is expected.",
        "Put the items on lines of their own below the name, or write `[one, two]`.",
    ),
    _Row(
        "mapping keys are not allowed", False,
        "A `? ` is where no key can begin.",
        "If it belongs to the text, put the text in quotes.",
    ),
    _Row(
        "undefined tag handle", False,
        "A word that begins with `!` is a tag, and this one is not declared.",
        "Leave the tag out. If it belongs to the text, put the text in quotes.",
    ),
    _Row(
        "scanning an a", False,
        "`&` and `*` mark and repeat values, and a name has to follow.",
        "If it belongs to the text, such as a pattern or `*.py`, put the text in quotes.",
    ),
    _Row(
        "node: did not find expected node content", False,
        "A value is missing here.",
        "Write it, or delete the comma or mark before it.",
    ),
    _Row(
        "block scalar: ", False,
        "Behind `|` or `>` only `-`, `+` and a digit from 1 to 9 may follow; the text begins on"
        " the next line.",
        "Move the text to the next line and indent it.",
    ),
    _Row(
        DOCUMENT_EXPECTED, False,
        "A document ended above this line, and this line does not begin another.",
        "Put `---` before it if it is one. Else indent it like what it belongs to, or put the"
        " text above it in quotes as a whole.",
    ),
    _Row(
        "incompatible YAML document", False,
        "The document declares another version of YAML.",
        "Delete the line that begins with `%YAML`.",
    ),
    _Row(
        "directive", False,
        "A line that begins with `%` is an instruction to the reader, and this one is not known.",
        "Delete it, or indent it if it is text.",
    ),
    _Row(
        "plain scalar: found unexpected ':'", False,
        "Inside of brackets or braces, a colon ends a name.",
        "Put the text in quotes.",
    ),
)  # fmt: skip

_CONFLICT = re.compile(r"(?:<{7}|>{7}) ")
_QUOTE_BEGINS = re.compile(r"[:\-][ \t]+[\"']")
_INDENT = re.compile(r"[ \t]*")


def explain(exc: YAMLError, lines: Sequence[str], first: int, opened: Span | None) -> Problem:
    """
    Return what to say about an error of libyaml.

    Args:
        exc: The error.
        lines: Lines of the document that is broken.
        first: How many lines were parsed before these; places in the result count from `lines`.
        opened: Where the innermost collection begins that is not closed.
    """
    for number, line in enumerate(lines, start=1):
        if _CONFLICT.match(line):
            return _conflict(number, line)
    if not isinstance(exc, MarkedYAMLError) or exc.problem_mark is None:
        return _syntax(Span(1, 1), f"The reader says: {exc}.", "")
    said = f"{exc.context or ''}: {exc.problem or ''}"
    problem = Span(exc.problem_mark.line - first + 1, exc.problem_mark.column + 1)
    if _is_tab(said, problem, lines):
        return _tab(problem, lines)
    if "cannot start any token" in said:
        return _odd_start(problem, lines)
    if "expected key" in said and _is_quoted(_line(problem, lines)[: problem.column - 1]):
        return _after_quote(problem)
    if "parsing a flow" in said and opened is not None:
        return _flow(problem, opened, lines)
    row = next((row for row in _ROWS if row.said in said), None)
    if row is None:
        return _syntax(_within(problem, lines), f"The reader says: {said.strip(': ')}.", "")
    mark = exc.context_mark if row.at_context else None
    place = Span(mark.line - first + 1, mark.column + 1) if mark is not None else problem
    return _syntax(_within(place, lines), row.detail, row.advice)


def _syntax(place: Span, detail: str, advice: str) -> Problem:
    return Problem("yaml-syntax", "The YAML cannot be read", place, detail, advice)


def _conflict(number: int, line: str) -> Problem:
    return Problem(
        "merge-conflict",
        "A merge is not finished",
        Span(number, 1, len(line[:60])),
        "This is a conflict marker of git: two versions disagree.",
        "Choose a version, delete the lines with the markers, and commit.",
    )


def _is_tab(said: str, place: Span, lines: Sequence[str]) -> bool:
    if "tab character" in said or _letter(place, lines) == "\t":
        return True
    line = _line(place, lines)
    # libyaml reports many a tab as something else, but always on the line that has it.
    return "\t" in _indent(line) and place.column <= len(_indent(line)) + 1


def _tab(place: Span, lines: Sequence[str]) -> Problem:
    line = _line(place, lines)
    at = line.find("\t")
    return Problem(
        "tab-indentation",
        "A line is indented with a tab",
        Span(place.line, at + 1 if at >= 0 else place.column),
        "YAML indents with spaces only, because the width of a tab differs between editors.",
        "Replace it by spaces, two for each level.",
    )


def _is_quoted(text: str) -> bool:
    """Whether a value in quotes begins in the text and its end is the text's."""
    begins = _QUOTE_BEGINS.search(text)
    return begins is not None and text.rstrip().endswith(("'", '"'), begins.end())


def _after_quote(place: Span) -> Problem:
    return _syntax(
        place,
        "The quoted text before this ends, and something follows it.",
        "Put all of the value in quotes, in the other kind if quotes occur in it. Inside of single"
        " quotes, one is written twice: 'it''s'.",
    )


def _flow(place: Span, opened: Span, lines: Sequence[str]) -> Problem:
    if _letter(place, lines) == ",":
        return _syntax(
            place, "There is no value between two commas, or before the first.", "Delete the comma."
        )
    opening = _letter(opened, lines)
    closing = {"[": "]", "{": "}"}.get(opening, opening)
    is_interpolated = "${{" in _line(opened, lines)
    noun = "list" if opening == "[" else "mapping"
    return _syntax(
        opened,
        f"A {noun} is opened with `{opening}` here, and a comma or its `{closing}` is missing."
        + (" In it, the braces of `${{ … }}` open mappings." if is_interpolated else ""),
        'Put the interpolation in quotes: "${{ … }}".'
        if is_interpolated
        else "Close it. Inside of brackets and braces, text with one of `,[]{}` or with `: ` needs"
        " quotes.",
    )


def _letter(place: Span, lines: Sequence[str]) -> str:
    return _line(place, lines)[place.column - 1 : place.column]


def _line(place: Span, lines: Sequence[str]) -> str:
    return lines[place.line - 1] if 0 < place.line <= len(lines) else ""


def _odd_start(place: Span, lines: Sequence[str]) -> Problem:
    letter = _letter(place, lines)
    name = "a backtick" if letter == "`" else f"`{letter}`"
    if not letter.isprintable():
        name = f"the character U+{ord(letter):04X}"
    return _syntax(
        _within(place, lines),
        f"A value cannot begin with {name}, which YAML reserves.",
        "Put the value in quotes.",
    )


def _within(place: Span, lines: Sequence[str]) -> Span:
    """Return a place that exists: the end of the file is the end of its last line with text."""
    if place.line <= len(lines) and (lines[place.line - 1].strip() or place.line < len(lines)):
        return place
    number = min(place.line, len(lines))
    while number > 1 and not lines[number - 1].strip():
        number -= 1
    return Span(number, len(lines[number - 1]) + 1)


def _indent(line: str) -> str:
    found = _INDENT.match(line)
    return found[0] if found else ""
