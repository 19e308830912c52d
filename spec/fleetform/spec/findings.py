"""
Findings: what is wrong with a document, as values.

A finding is never an exception. The passes over a tree collect them, and the edge shows all
of them at once, sorted by place. Three levels: an `ERROR` keeps a document from being
planned, a `WARNING` is probably not what was meant, a `NOTE` is worth knowing.
"""

from __future__ import annotations

import enum
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

__all__ = ["render_finding", "render_findings", "summarize"]


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
    holds the nodes turns one into the other. The summary goes with the code, in `SUMMARIES`.

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


# Codes of findings about documents, and the one sentence that goes with each.
#
# A code is for scripts and for the reference, so it never changes its meaning; what is wrong
# with the document is in the finding's detail.

SUMMARIES: Mapping[str, str] = {
    "abstract-environment": "The environment is a base for others",
    "bad-array": "The indices of an array are invalid",
    "bad-base": "The base of an environment is invalid",
    "bad-name": "A name is invalid",
    "bad-patch": "A patch is invalid",
    "bad-path": "A path is invalid",
    "bad-tag": "The name of a tag is invalid",
    "bad-uid": "The uid of the environment is invalid",
    "bad-value": "A value is invalid",
    "bad-variable": "The name of an environment variable is invalid",
    "beyond-quota": "The run is larger than a quota",
    "contradiction": "Two fields contradict each other",
    "converted-otherwise": "A value is converted to another form",
    "declared-in-base": "The base declares this resource already",
    "dependency-cycle": "Runs wait for each other",
    "duplicate-name": "Two documents declare the same resource",
    "element-mismatch": "Elements do not match",
    "empty-document": "The document is empty",
    "empty-field": "A field has no value",
    "empty-tree": "The configuration declares nothing",
    "environment-elsewhere": "An environment is declared in the wrong place",
    "file-changed": "A file changed while it was read",
    "file-missing": "A file does not exist",
    "file-outside": "A path leads out of the configuration",
    "file-unreadable": "A file cannot be read",
    "files-too-large": "The files of a run are too large",
    "host-claimed-twice": "Two fleets claim the same host",
    "line-kept": "The line is kept as it is",
    "missing-environment": "The configuration has no environment document",
    "missing-field": "A field is missing",
    "missing-type": "The document has no `type`",
    "mount-in-the-way": "A mount hides another path",
    "never-placed": "Unschedulable: no declared fleet can run this",
    "no-effect": "No effect yet",
    "no-fleet": "No fleet is declared",
    "no-interconnect": "The nodes of the run may not reach each other",
    "not-a-document": "This is not a document",
    "not-supported": "Not supported yet",
    "not-converted": "Not converted",
    "not-formatted": "The file is left as it is",
    "number-rewritten": "A number is rewritten",
    "patch-failed": "A patch does not fit the document",
    "patch-matches-nothing": "A patch matches no document",
    "path-claimed-twice": "Two resources claim the same path",
    "path-inside-another": "A volume is inside the directory of another one",
    "queue-refuses": "The queue never accepts the run",
    "reservations-overlap": "Two reservations overlap",
    "said-twice": "Duplicate value",
    "secret-in-clear": "Plaintext secret committed",
    "secret-left-out": "A secret was left out",
    "too-many-elements": "The document has too many elements",
    "too-many-findings": "The file has more mistakes than are shown",
    "too-much-text": "The document is too large when expanded",
    "tree-too-large": "The configuration is too large",
    "two-defaults": "Two documents are the default",
    "undeclared-reference": "A referenced resource is not declared",
    "unknown-expression": "An expression cannot be resolved",
    "unknown-field": "A field does not exist",
    "unknown-gpu": "The name of a GPU is not known",
    "unknown-instance-type": "The name of an instance type is not known",
    "unknown-parameter": "A parameter does not exist",
    "unknown-reference": "A referenced resource does not exist",
    "unknown-region": "The name of a region is not known",
    "unknown-type": "There is no such kind of document",
    "unused": "Unused",
    "wrong-type": "A value is not of the field's type",
}


# Findings as a terminal shows them.
#
#     fleet.yaml:7:12: error[unknown-field]: A field is not known
#         7 |     resorces:
#           |     ^^^^^^^^
#       `resorces` is not a field of a task, so nothing would ask for GPUs.
#       help: Did you mean `resources`?
#
# A pure function from values to text, used by the command line and by tests of messages: what is
# tested is what is read.

_COLOURS = {Level.ERROR: "1;31", Level.WARNING: "1;33", Level.NOTE: "1;36"}
_ADVICE_COLOUR = "1;32"
_FRAME_COLOUR = "1;34"
_WIDTH_MIN = 40
_TAB = "    "
_PLACES_MAX = 10
"""Of what is said of more, the forms for machines have each; here they are counted."""

_Paint: TypeAlias = Callable[[str, str], str]


def render_findings(findings: Iterable[Finding], *, width: int = 100, colour: bool = False) -> str:
    """
    Return all findings in order of place, an empty line between them.

    A warning or a note that says the same of several places is shown once, with the others: a
    hundred runs with the same variable are one thing to think about.

    Args:
        findings: In any order; one that occurs twice is shown once.
        width: Columns of the terminal. Source lines are cut around the caret to fit, prose is
            wrapped.
        colour: Add the escape codes of ANSI terminals.
    """
    ordered = sorted(dict.fromkeys(findings), key=lambda finding: finding.sort_key)
    shown = (
        "\n".join([render_finding(first, width=width, colour=colour), *_elsewhere(others, width)])
        for first, *others in _alike(ordered)
    )
    return "\n\n".join(shown)


def render_finding(finding: Finding, *, width: int = 100, colour: bool = False) -> str:
    """Return one finding as some lines of text, the last without its newline."""
    width = max(width, _WIDTH_MIN)
    paint = _paint if colour else _plain
    level = paint(f"{finding.level}[{finding.code}]", _COLOURS[finding.level])
    where = _where(finding)
    lines = [
        f"{where}: {level}: {_printable(finding.summary)}"
        if where
        else f"{level}: {_printable(finding.summary)}"
    ]
    if finding.text and finding.place.line:
        lines += _excerpt(finding, width, paint)
    lines += _wrapped(finding.detail, "", width)
    advice = _wrapped(finding.advice, "help: ", width)
    if advice:
        advice[0] = advice[0].replace("help:", paint("help:", _ADVICE_COLOUR), 1)
    return "\n".join(lines + advice)


def _alike(ordered: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Put those together that say the same, where the first of them stands."""
    groups: dict[object, list[Finding]] = {}
    for finding in ordered:
        says = (finding.level, finding.code, finding.detail, finding.advice)
        # An error is mended where it stands, so each has its line.
        key = finding if finding.level is Level.ERROR else says
        groups.setdefault(key, []).append(finding)
    return groups.values()


def _elsewhere(others: Sequence[Finding], width: int) -> list[str]:
    if not others:
        return []
    places = ", ".join(_where(one) for one in others[:_PLACES_MAX])
    left = len(others) - _PLACES_MAX
    more = f" and {left} more" if left > 0 else ""
    return _wrapped(f"{places}{more}", "also: ", width)


def summarize(findings: Iterable[Finding]) -> str:
    """Return `2 errors, 1 warning`; empty when there are none."""
    levels = [finding.level for finding in findings]
    counts = ((levels.count(level), level.value) for level in Level)
    return ", ".join(f"{count} {noun}{'s' * (count > 1)}" for count, noun in counts if count)


def _where(finding: Finding) -> str:
    """Return `file:line:column`, which editors and terminals turn into a link."""
    place = finding.place
    if not place.line:
        return _printable(place.file)
    return f"{_printable(place.file)}:{place.line}:{max(place.column, 1)}"


def _excerpt(finding: Finding, width: int, paint: _Paint) -> list[str]:
    """Return the source line, and carets below what the place covers."""
    number = f"{finding.place.line:>5}"
    gutter = len(number) + len(" | ")
    text, start, length = _window(finding, width - gutter)
    before, marked = text[:start], text[start : start + length]
    indent = " " * _cells(_shown(before))
    carets = "^" * max(_cells(_shown(marked)), 1)
    bar = paint("|", _FRAME_COLOUR)
    return [
        f"{paint(number, _FRAME_COLOUR)} {bar} {_shown(text)}".rstrip(),
        f"{' ' * len(number)} {bar} {indent}{paint(carets, _COLOURS[finding.level])}",
    ]


def _window(finding: Finding, room: int) -> tuple[str, int, int]:
    """Return the part of the line that fits, and start and length of what is marked in it."""
    text, start = finding.text, max(finding.place.column, 1) - 1
    start = min(start, len(text))
    length = max(min(finding.place.length, len(text) - start), 1)
    # A place behind the last character needs a cell of its own for its caret.
    if _cells(_shown(text)) + (start == len(text)) <= room:
        return text, start, length
    # Half of the room for what stands before the caret is enough to find the place again. A
    # character takes up to two cells, and eight as an escape, so both ends are tried by cells.
    first = max(0, start - room // 2)
    while first < start and _cells(_shown(text[first:start])) > room // 2:
        first += 1
    last = min(len(text), first + room)
    while last > start and _cells(_shown(text[first:last])) > room - 2:
        last -= 1
    front, back = "…" if first else "", "…" if last < len(text) else ""
    cut = f"{front}{text[first:last]}{back}"
    start = start - first + len(front)
    return cut, start, max(min(length, len(cut) - start), 1)


def _wrapped(prose: str, label: str, width: int) -> list[str]:
    lines: list[str] = []
    for number, paragraph in enumerate(prose.splitlines()):
        lead = label if number == 0 else " " * len(label)
        lines += textwrap.wrap(
            _printable(paragraph),
            width - 2,
            initial_indent=f"  {lead}",
            subsequent_indent=f"  {' ' * len(label)}",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _shown(text: str) -> str:
    return _printable(text.replace("\t", _TAB))


def _printable(text: str) -> str:
    """
    Return text that cannot move the cursor or recolour the terminal.

    A document may come from anybody, and an escape sequence in it could hide what a finding
    says; so could marks that turn the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable()
        else f"\\x{ord(letter):02x}"
        if ord(letter) < 256
        else f"\\u{ord(letter):04x}"
        for letter in text
    )


def _cells(text: str) -> int:
    """Return how many columns a terminal needs: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(letter)
        else 2
        if unicodedata.east_asian_width(letter) in "WF"
        else 1
        for letter in text
    )


def _paint(text: str, code: str) -> str:
    return f"\033[{code}m{text}\033[0m"


def _plain(text: str, _code: str) -> str:
    return text
