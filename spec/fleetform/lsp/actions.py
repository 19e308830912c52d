"""
Quick fixes: what a finding's advice says to write, written.

Advice is for people first. Only one form of it names an exact replacement, "Did you mean `x`?",
and the words around it in backticks say what of the underlined text is to be replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lsprotocol import types

from fleetform.lsp.diagnostics import SOURCE
from fleetform.lsp.places import offset_of, range_of
from fleetform.lsp.text import Encoding, Extent, Text

__all__ = ["quick_fixes"]

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
