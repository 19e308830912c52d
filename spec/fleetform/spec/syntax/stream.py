"""
The documents of one file.

A document that breaks off does not take the others with it: `---` at the beginning of a line
begins a document whatever stands before it, so reading goes on at the next one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from yaml import CBaseLoader
from yaml.error import YAMLError

from fleetform.spec.bounds import DEFAULT, Limits
from fleetform.spec.findings import Finding, Level, Place
from fleetform.spec.nodes import Node
from fleetform.spec.syntax.build import Builder, CannotGoOnError
from fleetform.spec.syntax.errors import DOCUMENT_EXPECTED, explain
from fleetform.spec.syntax.source import count_breaks, decode, quote_lines, split_lines

__all__ = ["Document", "read_documents", "read_stream"]

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
    except CannotGoOnError as exc:
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
    except CannotGoOnError:
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
