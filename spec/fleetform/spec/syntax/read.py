"""
Read the documents of one file: bytes to text, text to nodes, and lines to quote in findings.

A document that breaks off does not take the others with it: `---` at the beginning of a line begins
a document whatever stands before it, so reading goes on at the next one.
"""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace

from yaml import CBaseLoader
from yaml.error import YAMLError

from fleetform.spec.bounds import DEFAULT, Limits
from fleetform.spec.findings import Finding, Level, Place
from fleetform.spec.nodes import Node
from fleetform.spec.syntax.build import Builder, BuildStoppedError
from fleetform.spec.syntax.errors import DOCUMENT_EXPECTED, explain

__all__ = [
    "Document",
    "count_breaks",
    "decode",
    "quote_lines",
    "read_documents",
    "read_stream",
    "split_lines",
]


# https://yaml.org/spec/1.2.2/#51-character-set, less U+FEFF, which only begins a file. In two,
# because nearly all files are ASCII and compiling the second takes 6 ms.
_UNPRINTABLE_ASCII = re.compile(r"[^\t\n\r\x20-\x7e]")
_UNPRINTABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
# What libyaml counts as ends of lines.
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# A file that is not text may be one line; a finding quotes what a terminal can show.
_QUOTED_MAX = 1000

_WIDE = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # Before UTF-16, whose mark begins it.
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)

# Without a mark, ASCII text shows where a wide encoding has its zeros.
_ZEROS = (
    ("UTF-32LE", re.compile(rb"(?:[^\0]\0\0\0){2}")),
    ("UTF-32BE", re.compile(rb"(?:\0\0\0[^\0]){2}")),
    ("UTF-16LE", re.compile(rb"(?:[^\0]\0){2}")),
    ("UTF-16BE", re.compile(rb"(?:\0[^\0]){2}")),
)


def decode(data: bytes, file: str, limits: Limits) -> str | Finding:
    """Return the text of a file without its byte order mark, or why it has none."""
    if len(data) > limits.bytes_max:
        return Finding(
            Level.ERROR,
            "file-too-large",
            "The file is too large",
            Place(file),
            f"It has {len(data)} bytes, and {limits.bytes_max} are read at most.",
            "Split it; documents may be in any file. Data does not belong in documents: name a file under `files:` instead.",
        )
    wide = next((name for mark, name in _WIDE if data.startswith(mark)), None)
    wide = wide or next((name for name, zeros in _ZEROS if zeros.match(data)), None)
    if wide is not None:
        place = Place(file, 1, 1)
        return _encoding_finding(file, place, f"It is written in {wide}.", _conversion(file, wide))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        skipped = 3 if data.startswith(codecs.BOM_UTF8) else 0
        before = data[skipped : exc.start + skipped].decode("utf-8", "replace")
        detail = f"The byte 0x{exc.object[exc.start]:02X} does not continue any character."
        place = _place_after(before, file)
        return _encoding_finding(file, place, detail, _advice_on_bytes(file, data))
    found = _UNPRINTABLE_ASCII.search(text) if text.isascii() else re.search(_UNPRINTABLE, text)
    return text if found is None else _character_finding(found[0], text[: found.start()], file)


def split_lines(text: str) -> list[str]:
    """Return the lines as libyaml numbers them."""
    return _BREAK.split(text)


def count_breaks(text: str) -> int:
    """Return how many lines end in `text`."""
    return len(_BREAK.findall(text))


def quote_lines(findings: Iterable[Finding], data: bytes) -> list[Finding]:
    """
    Return findings about one file, each with the line of the file that it points at.

    A line on which a secret stands is quoted by none of them: what is printed ends up in logs.
    """
    every = list(findings)
    secret = {finding.place.line for finding in every if finding.code == "secret-in-clear"}
    wanted = {finding.place.line for finding in every if not finding.text} - {0} - secret
    if not wanted:
        return every
    lines = _some_lines(data.decode("utf-8-sig", "replace"), wanted)
    return [
        finding
        if finding.text or finding.place.line not in wanted
        else replace(finding, text=_quotable(lines.get(finding.place.line, ""), finding.place))
        for finding in every
    ]


def _some_lines(text: str, wanted: set[int]) -> dict[int, str]:
    """Return lines by number, without making a list of what may be millions of them."""
    lines: dict[int, str] = {}
    number, begins = 1, 0
    for found in _BREAK.finditer(text):
        if number in wanted:
            lines[number] = text[begins : found.start()]
            if len(lines) == len(wanted):
                return lines
        number, begins = number + 1, found.end()
    if number in wanted:
        lines[number] = text[begins:]
    return lines


def _quotable(line: str, place: Place) -> str:
    return line[:_QUOTED_MAX] if place.column <= _QUOTED_MAX else ""


def _place_after(before: str, file: str) -> Place:
    ends = 0
    line = 1
    for found in _BREAK.finditer(before):
        ends, line = found.end(), line + 1
    return Place(file, line, len(before) - ends + 1, 1)


def _advice_on_bytes(file: str, data: bytes) -> str:
    """What to do about bytes that are not UTF-8: no mark says what they are."""
    if not data.decode("utf-8", "ignore").isascii():
        return "Correct that character: others of the file are UTF-8, so it is damaged there."
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "Save it as UTF-8 in the editor that wrote it."
    return f"If it is from an older editor: {_conversion(file, 'WINDOWS-1252')}"


def _conversion(file: str, encoding: str) -> str:
    written, made = shlex.quote(file), shlex.quote(f"{file}.utf8")
    return f"iconv -f {encoding} -t UTF-8 {written} > {made} && mv {made} {written}"


def _encoding_finding(file: str, place: Place, detail: str, advice: str) -> Finding:
    return Finding(
        Level.ERROR,
        "not-utf8",
        "The file is not UTF-8",
        place,
        f"{detail} Documents are always read as UTF-8, so that they mean the same on every machine.",
        advice,
    )


def _character_finding(character: str, before: str, file: str) -> Finding:
    names = {"\0": "a NUL byte", "\x1b": "an escape character", "\ufeff": "a byte order mark"}
    name = names.get(character, "a control character")
    return Finding(
        Level.ERROR,
        "control-character",
        "The file contains a character that YAML does not have",
        _place_after(before, file),
        f"This is {name} (U+{ord(character):04X}), which editors do not show.",
        "Delete it. Where it is meant, write it as an escape in double quotes:"
        f' "\\u{ord(character):04x}".',
    )


# The first line of a document behind the first of all.
_NEXT = re.compile("(?<=[\n\r\x85\u2028\u2029])---(?=[ \t\n\r\x85\u2028\u2029]|\\Z)")
_TAG_DIRECTIVE = re.compile("(?:\\A|[\n\r\x85\u2028\u2029])%TAG")
# libyaml compares each %TAG line with all before it. Nobody needs one.
_TAG_DIRECTIVES_MAX = 20


@dataclass(frozen=True, slots=True)
class Document:
    """
    One document.

    Attributes:
        root: What it says; of a document that breaks off, what was read until there.
        is_sound: No error lies in it. One that is not sound must not be planned; its root may
            tell which resource it would declare.
    """

    root: Node
    is_sound: bool


def read_documents(
    data: bytes, file: str, *, limits: Limits = DEFAULT
) -> tuple[list[Node], list[Finding]]:
    """
    Return the roots of the sound documents of a file, and all findings about it.

    Args:
        data: What the file contains: any bytes.
        file: Its name for findings, relative to the tree's root.
        limits: What the file may ask for.
    """
    documents, findings = read_stream(data, file, limits=limits)
    return [document.root for document in documents if document.is_sound], findings


def read_stream(
    data: bytes, file: str, *, limits: Limits = DEFAULT
) -> tuple[list[Document], list[Finding]]:
    """Return all documents of a file, broken ones included, and all findings about it."""
    text = decode(data, file, limits)
    if isinstance(text, Finding):
        return [], quote_lines([text], data)
    if text.count("%TAG") > _TAG_DIRECTIVES_MAX:
        refused = _refuse_directives(text, file)
        if refused is not None:
            return [], [refused]
    builder = Builder(file, limits)
    documents = _read(text, builder)
    if not builder.findings:
        return documents, builder.findings
    return documents, quote_lines(builder.findings, data)


def _read(text: str, builder: Builder) -> list[Document]:
    documents: list[Document] = []
    lines_before = 0
    rest = text
    while True:
        builder.begin(lines_before=lines_before)
        broken_at = _read_until_broken(rest, builder, documents, lines_before)
        following = None if broken_at is None else _NEXT.search(rest, broken_at)
        if following is None:
            return documents
        lines_before += count_breaks(rest[: following.start()])
        rest = rest[following.start() :]


def _read_until_broken(
    text: str, builder: Builder, documents: list[Document], lines_before: int
) -> int | None:
    """
    Add documents until the end of `text`, or until one of them breaks off.

    Returns:
        The index in `text` of what broke it; None when there is nothing more to read.
    """
    # Of this class only libyaml's parser is used: it composes and constructs nothing here.
    parser = CBaseLoader(text)
    take, get_event, findings = builder.take, parser.get_event, builder.findings
    findings_before = len(findings)
    event = None
    try:
        while (event := get_event()) is not None:
            root = take(event)
            if root is not None:
                is_sound = findings_before == len(findings) or not _errors(
                    findings, findings_before
                )
                documents.append(Document(root, is_sound))
                findings_before = len(findings)
    except YAMLError as exc:
        return _break_off(exc, text, builder, documents, lines_before)
    except BuildStoppedError as exc:
        _add_partial(builder, documents)
        mark = None if event is None else event.start_mark
        return mark.index if exc.rest and mark is not None else None
    return None


def _break_off(
    exc: YAMLError, text: str, builder: Builder, documents: list[Document], lines_before: int
) -> int | None:
    """Report a document that cannot be parsed; return the index of what broke it."""
    marks = (getattr(exc, "context_mark", None), getattr(exc, "problem_mark", None))
    # An unclosed quote is noticed in the next document; it was opened in the broken one.
    index = min((mark.index for mark in marks if mark is not None), default=len(text))
    begins = text.rfind("\n---", 0, index) + 1
    following = _NEXT.search(text, max(index, begins + 1))
    # Only the broken document is looked at: a file may hold fifty of them in eight megabytes.
    lines = split_lines(text[begins : following.end() if following is not None else len(text)])
    skipped = count_breaks(text[:begins])
    opened = builder.opened()
    if opened is not None:
        opened = opened._replace(line=opened.line - lines_before - skipped)
    problem = explain(exc, lines, skipped, opened)
    if documents and DOCUMENT_EXPECTED in str(exc):
        # What follows a complete document and is none: it was meant as a part of it.
        documents[-1] = replace(documents[-1], is_sound=False)
    place = problem.place._replace(line=problem.place.line + lines_before + skipped)
    try:
        builder.report(problem.code, problem.summary, place, problem.detail, problem.advice)
    except BuildStoppedError:
        return None
    _add_partial(builder, documents)
    return index


def _add_partial(builder: Builder, documents: list[Document]) -> None:
    root = builder.partial()
    if root is not None:
        documents.append(Document(root, is_sound=False))


def _errors(findings: list[Finding], start: int) -> bool:
    return any(finding.level is Level.ERROR for finding in findings[start:])


def _refuse_directives(text: str, file: str) -> Finding | None:
    starts = [found.end() for found in _TAG_DIRECTIVE.finditer(text)]
    if len(starts) <= _TAG_DIRECTIVES_MAX:
        return None
    line = count_breaks(text[: starts[_TAG_DIRECTIVES_MAX]]) + 1
    return Finding(
        Level.ERROR,
        "too-many-directives",
        "The file has too many %TAG lines",
        Place(file, line, 1, len("%TAG")),
        f"It has {len(starts)}, and {_TAG_DIRECTIVES_MAX} are read at most. Only the tags of YAML itself are supported.",
        "Delete them.",
        text="%TAG",
    )
