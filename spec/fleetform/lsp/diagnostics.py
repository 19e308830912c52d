"""
Findings as an editor shows them, with quick fixes.

What an editor has no line for becomes part of the message: what is wrong, why, and below it what
to do. A finding of the tree as a whole stands at the top of `environment.yaml`, since an editor
shows nothing that has no file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from lsprotocol import types

from fleetform.lsp.index import Index
from fleetform.lsp.text import Encoding, Extent, Text, offset_of, range_of
from fleetform.spec.desired import FILE_NAME, ResourceKey
from fleetform.spec.findings import Finding, Level
from fleetform.spec.kinds import KINDS
from fleetform.spec.nodes import Span

__all__ = ["SOURCE", "by_file", "diagnostic", "quick_fixes"]

SOURCE = "fleetform"

_SEVERITIES = {
    Level.ERROR: types.DiagnosticSeverity.Error,
    Level.WARNING: types.DiagnosticSeverity.Warning,
    Level.NOTE: types.DiagnosticSeverity.Information,
}
# Editors fade what is unnecessary: a field that does nothing yet is, and may stay.
_TAGS = {"no-effect": [types.DiagnosticTag.Unnecessary]}
# A name in a message, as all messages write it.
_QUOTED_NAME = re.compile(r"`([a-z][a-z0-9-]{1,40})(?:\[[^`]*\])?`")
_RELATED_MAX = 5

# Codes whose messages name other resources, and the kind those are of where it is always one.
_ABOUT: Mapping[str, str] = {
    "dependency-cycle": "run",
    "duplicate-name": "",
    "element-mismatch": "run",
    "never-placed": "fleet",
    "path-claimed-twice": "",
    "undeclared-reference": "",
    "unknown-reference": "",
}
_KINDS = sorted({kind.name for kind in KINDS.values()})

UriOf = Callable[[str], str]


def by_file(findings: Iterable[Finding], files: Iterable[str]) -> dict[str, list[Finding]]:
    """Findings by the file they are shown in, which is one of `files` or `environment.yaml`."""
    known = set(files)
    shown: dict[str, list[Finding]] = {}
    for finding in findings:
        file = finding.place.file
        shown.setdefault(file if file in known else FILE_NAME, []).append(finding)
    return shown


def diagnostic(
    finding: Finding, file: str, text: Text, index: Index, uri_of: UriOf, encoding: Encoding
) -> types.Diagnostic:
    """One finding about `file`, or shown there."""
    is_here = finding.place.file == file
    where = "" if is_here else f"{finding.place.file}: "
    words = (f"{where}{finding.detail or finding.summary}", finding.advice)
    return types.Diagnostic(
        range=range_of(_extent(finding, text) if is_here else Extent(0, 0), text, encoding),
        message="\n".join(part for part in words if part),
        severity=_SEVERITIES[finding.level],
        code=finding.code,
        source=SOURCE,
        tags=_TAGS.get(finding.code),
        related_information=list(_related(finding, file, index, uri_of, encoding)) or None,
    )


def _extent(finding: Finding, text: Text) -> Extent:
    place = finding.place
    if not place.line:
        return Extent(0, 0)
    return text.extent_of(Span(place.line, place.column, place.length))


def _related(
    finding: Finding, file: str, index: Index, uri_of: UriOf, encoding: Encoding
) -> Iterator[types.DiagnosticRelatedInformation]:
    """Where that is declared which the message names, unless it is this very place."""
    about = _ABOUT.get(finding.code)
    if about is None:
        return
    names = sorted(set(_QUOTED_NAME.findall(f"{finding.detail} {finding.advice}")))
    # Of a finding about any kind, the kind stands in its words.
    kinds = [about] if about else [kind for kind in _KINDS if f" {kind} " in f" {finding.detail} "]
    places = [
        (key, other, declared.name)
        for key in (ResourceKey(kind, name) for kind in kinds for name in names)
        for other, declared in index.declarations(key)
    ]
    for key, other, extent in places[:_RELATED_MAX]:
        text = index.files[other].text
        if other == file and extent.holds(_extent(finding, text).start):
            continue
        yield types.DiagnosticRelatedInformation(
            location=types.Location(uri_of(other), range_of(extent, text, encoding)),
            message=f"The {key.kind} `{key.name}` is declared here.",
        )


# Quick fixes: what a finding's advice says to write, written.
# Advice is for people first. Only one form of it names an exact replacement, "Did you mean `x`?",
# and the words around it in backticks say what of the underlined text is to be replaced.
_MEANT = re.compile(r"Did you mean `([^`\n]+)`(?: by `([^`\n]+)`)?\?")
_QUOTED = re.compile(r"`([^`\n]+)`")


def quick_fixes(
    uri: str,
    version: int | None,
    text: Text,
    diagnostics: Iterable[types.Diagnostic],
    encoding: Encoding,
) -> list[types.CodeAction]:
    """One action for each of our diagnostics that says what was meant."""
    actions = []
    for diagnostic in diagnostics:
        found = _replacement(diagnostic, text, encoding)
        if found is None:
            continue
        extent, meant = found
        edit = types.TextEdit(range_of(extent, text, encoding), meant)
        document = types.OptionalVersionedTextDocumentIdentifier(uri, version)
        actions.append(
            types.CodeAction(
                title=f"Write `{meant}`",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                is_preferred=True,
                edit=types.WorkspaceEdit(
                    document_changes=[types.TextDocumentEdit(document, [edit])]
                ),
            )
        )
    return actions


def _replacement(
    diagnostic: types.Diagnostic, text: Text, encoding: Encoding
) -> tuple[Extent, str] | None:
    """What to replace, and what with."""
    meant = _MEANT.search(diagnostic.message)
    if diagnostic.source != SOURCE or meant is None:
        return None
    extent = Extent(
        offset_of(diagnostic.range.start, text, encoding),
        offset_of(diagnostic.range.end, text, encoding),
    )
    said = f"`{meant[2]}`" if meant[2] else diagnostic.message[: meant.start()]
    wrong = _wrong_part(text.slice(extent), said)
    return None if wrong is None else (
        Extent(extent.start + wrong.start, extent.start + wrong.end), meant[1]
    )  # fmt: skip


def _wrong_part(underlined: str, said: str) -> Extent | None:
    """
    Where in the underlined text the word is that the message calls wrong.

    Of `data:/mnt` that may be `data` alone. The longest word of the message that occurs is it.
    """
    words = [word for word in _QUOTED.findall(said) if word in underlined]
    if not words:
        return None
    word = max(words, key=len)
    start = underlined.index(word)
    return Extent(start, start + len(word))
