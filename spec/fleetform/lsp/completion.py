"""
Names to complete: of resources where a field refers to one, and inside of expressions.

Fields and choices are the schema's to complete; offering them here as well would show each
twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from lsprotocol import types

from fleetform.lsp.cursor import Typing, document_at, typing_at
from fleetform.lsp.meaning import NAMESPACES, Known, known
from fleetform.lsp.navigation import search
from fleetform.lsp.references import Spelling, Target, target_at
from fleetform.lsp.session import Cursor
from fleetform.lsp.text import Encoding, Extent, range_of
from fleetform.spec.desired import ResourceKey
from fleetform.spec.kinds import KINDS

__all__ = ["ITEMS_MAX", "TRIGGERS", "completions"]

TRIGGERS = [" ", ".", "[", "{", "/"]
"""Characters after which an editor asks by itself: where a value, a key, an item begins."""

ITEMS_MAX = 200
"""
How many items are offered at once; the editor asks again when more is typed. Ten thousand take
most of a second to send, and nobody reads them.
"""

_WORD_BEFORE = re.compile(r"[A-Za-z0-9_-]*\Z", re.ASCII)
_WORD_AFTER = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_CLOSED = re.compile(r"[A-Za-z0-9_.-]*\s*\}\}")


def completions(cursor: Cursor, encoding: Encoding) -> list[types.CompletionItem]:
    """What may stand at the cursor, in order of name."""
    typing = typing_at(cursor.text, cursor.offset)
    if typing is None:
        return []
    if typing.expression is not None:
        return list(_expression_items(typing.expression, cursor, encoding))
    kind = KINDS[typing.type].name if typing.type in KINDS else typing.type
    target = target_at(kind, typing.path)
    if target is None:
        return []
    return list(islice(_name_items(target, kind, typing, cursor, encoding), ITEMS_MAX))


def _name_items(
    target: Target, kind: str, typing: Typing, cursor: Cursor, encoding: Encoding
) -> Iterator[types.CompletionItem]:
    wanted = target.kind
    if target.spelling is Spelling.ADDRESS:
        wanted, slash, _ = typing.typed.partition("/")
        if not slash:
            return
    elif not re.fullmatch(r"[A-Za-z0-9_-]*", typing.typed):
        # Behind the name stands a mount's path or an element, which are no names.
        return
    own = _own_key(cursor, kind)
    typed = search(typing.typed.rpartition("/")[2])
    for key in cursor.tree.index.names(wanted):
        if key != own and typed.search(key.name):
            yield _name_item(key, target, cursor, encoding)


def _name_item(
    key: ResourceKey, target: Target, cursor: Cursor, encoding: Encoding
) -> types.CompletionItem:
    file, declared = cursor.tree.index.declarations(key)[0]
    # A mount has a path behind its name; where none stands yet, the colon is typed along.
    needs_colon = target.spelling is Spelling.MOUNT and not _rest_of_line(cursor)
    return types.CompletionItem(
        label=key.name,
        kind=types.CompletionItemKind.Reference,
        detail=f"{declared.type} · {file}",
        documentation=declared.description or None,
        text_edit=types.TextEdit(
            range_of(_word(cursor), cursor.text, encoding),
            f"{key.name}:/" if needs_colon else key.name,
        ),
    )


def _expression_items(
    typed: str, cursor: Cursor, encoding: Encoding
) -> Iterator[types.CompletionItem]:
    root = document_at(cursor.text, cursor.offset)
    scope: Known = known(root, cursor.tree.index) if root else {}
    extent = range_of(_word(cursor), cursor.text, encoding)
    namespace, dot, _ = typed.rpartition(".")
    if not dot:
        for name, words in NAMESPACES.items():
            yield types.CompletionItem(
                label=name,
                kind=types.CompletionItemKind.Module,
                detail=words,
                text_edit=types.TextEdit(extent, f"{name}."),
            )
        return
    closing = "" if _CLOSED.match(cursor.text.source, cursor.offset) else " }}"
    for key, said in sorted(scope.get(namespace, {}).items()):
        yield types.CompletionItem(
            label=key,
            kind=types.CompletionItemKind.Variable,
            detail=said.words,
            text_edit=types.TextEdit(extent, f"{key}{closing}"),
        )


def _own_key(cursor: Cursor, kind: str) -> ResourceKey | None:
    """The document's own: no run waits for itself."""
    own = [one for one in cursor.read.declarations if one.whole.holds(cursor.offset)]
    return own[-1].key if own and own[-1].key.kind == kind else None


def _word(cursor: Cursor) -> Extent:
    """The name that the cursor is in or behind, all of which is replaced."""
    source, offset = cursor.text.source, cursor.offset
    line_start = cursor.text.source.rfind("\n", 0, offset) + 1
    before = _WORD_BEFORE.search(source, line_start, offset)
    after = _WORD_AFTER.match(source, offset)
    return Extent(before.start() if before else offset, after.end() if after else offset)


def _rest_of_line(cursor: Cursor) -> str:
    end = _word(cursor).end
    rest = cursor.text.source[end:].partition("\n")[0]
    return rest.strip(" \t\r\"']},")
