"""
From a name to where it is declared, and to all who refer to it.

Names of resources lead to documents; what an expression names in its own document (`matrix.lr`,
`env.LR`) leads to the line that says it.
"""

from __future__ import annotations

from lsprotocol import types

from fleetform.lsp.expressions import expressions
from fleetform.lsp.here import document_at
from fleetform.lsp.places import range_of
from fleetform.lsp.scope import known
from fleetform.lsp.session import Cursor, Session
from fleetform.lsp.text import Encoding

__all__ = ["definition", "highlights", "references"]


def definition(cursor: Cursor, session: Session) -> list[types.Location]:
    """Where the name under the cursor is declared; several where documents contend for it."""
    mention = cursor.tree.index.at(cursor.file, cursor.offset)
    if mention is None:
        return _expression_definition(cursor, session)
    uri_of = session.uri_of(cursor.tree)
    files = cursor.tree.index.files
    return [
        types.Location(uri_of(file), range_of(declared.name, files[file].text, session.encoding))
        for file, declared in cursor.tree.index.declarations(mention.key)
    ]


def _expression_definition(cursor: Cursor, session: Session) -> list[types.Location]:
    root = document_at(cursor.text, cursor.offset)
    for found in expressions(root, cursor.text) if root else ():
        if root is None or not found.whole.holds(cursor.offset):
            continue
        said = known(root, cursor.tree.index).get(found.namespace, {}).get(found.key)
        if said is None or said.place is None:
            return []
        file = said.file or cursor.file
        text = cursor.tree.index.files[file].text
        extent = text.extent_of(said.place)
        uri = session.uri_of(cursor.tree)(file)
        return [types.Location(uri, range_of(extent, text, session.encoding))]
    return []


def references(
    cursor: Cursor, session: Session, *, with_declarations: bool
) -> list[types.Location]:
    """Every place of the name under the cursor, in order of file and text."""
    mention = cursor.tree.index.at(cursor.file, cursor.offset)
    if mention is None:
        return []
    uri_of = session.uri_of(cursor.tree)
    return [
        types.Location(
            uri_of(found.file), range_of(found.mention.extent, found.text, session.encoding)
        )
        for found in cursor.tree.index.mentions(mention.key)
        if with_declarations or not found.mention.is_declaration
    ]


def highlights(cursor: Cursor, encoding: Encoding) -> list[types.DocumentHighlight]:
    """The same name in the same file."""
    mention = cursor.tree.index.at(cursor.file, cursor.offset)
    if mention is None:
        return []
    return [
        types.DocumentHighlight(
            range_of(one.extent, cursor.text, encoding),
            types.DocumentHighlightKind.Write
            if one.is_declaration
            else types.DocumentHighlightKind.Read,
        )
        for one in cursor.read.mentions
        if one.key == mention.key
    ]
