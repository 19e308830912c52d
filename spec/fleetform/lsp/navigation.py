"""
From a name to its declaration and its references: go to, search, outline, rename.

Names of resources lead to documents; what an expression names in its own document (`matrix.lr`,
`env.LR`) leads to the line that says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lsprotocol import types

from fleetform.lsp.cursor import document_at
from fleetform.lsp.index import Found, Tree
from fleetform.lsp.meaning import known
from fleetform.lsp.references import FileIndex, Mention, expressions
from fleetform.lsp.session import Cursor, Session
from fleetform.lsp.text import Encoding, range_of
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import name_problem, secret_name_problem
from fleetform.spec.syntax.build import WORDS

__all__ = [
    "RenameRefused",
    "definition",
    "document_symbols",
    "highlights",
    "prepare",
    "references",
    "rename",
    "search",
    "workspace_symbols",
]


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


_KINDS = {
    "run": types.SymbolKind.Function,
    "fleet": types.SymbolKind.Class,
    "volume": types.SymbolKind.File,
    "secret": types.SymbolKind.Key,
}
# A list longer than this is refined by typing more, not read.
_FOUND_MAX = 100


def document_symbols(read: FileIndex, encoding: Encoding) -> list[types.DocumentSymbol]:
    """Each document that declares something, in order."""
    return [
        types.DocumentSymbol(
            name=one.key.name,
            kind=_KINDS.get(one.key.kind, types.SymbolKind.Object),
            range=range_of(one.whole, read.text, encoding),
            selection_range=range_of(one.name, read.text, encoding),
            detail=one.type,
        )
        for one in read.declarations
    ]


def workspace_symbols(
    trees: Iterable[Tree], query: str, session: Session
) -> list[types.WorkspaceSymbol]:
    """Resources whose address contains the letters of `query`, in order of address."""
    found: list[types.WorkspaceSymbol] = []
    wanted = search(query)
    for tree in trees:
        uri_of = session.uri_of(tree)
        for key in tree.index.resources():
            if not wanted.search(f"{key.kind}/{key.name}"):
                continue
            for file, one in tree.index.declarations(key):
                if len(found) == _FOUND_MAX:
                    return found
                text = tree.index.files[file].text
                found.append(
                    types.WorkspaceSymbol(
                        location=types.Location(
                            uri_of(file), range_of(one.name, text, session.encoding)
                        ),
                        name=key.name,
                        kind=_KINDS.get(key.kind, types.SymbolKind.Object),
                        container_name=f"{one.type} · {file}",
                    )
                )
    return found


def search(typed: str) -> re.Pattern[str]:
    """What finds the names that have the letters in this order, case aside."""
    letters = [re.escape(letter) for letter in typed if not letter.isspace()]
    return re.compile(".*?".join(letters), re.IGNORECASE | re.DOTALL)


# Renaming a resource: its declaration and all who refer to it, in all files at once.
# Either every place is rewritten or none is. So a name that could not be used is refused, one
# that is taken too, and so is a rename while a file that mentions the name cannot be read: what
# it refers to would be left behind without a word.
class RenameRefused(Exception):
    """Why there is no rename, in a sentence for people."""


def prepare(cursor: Cursor) -> Mention | None:
    """The name under the cursor, if it can be renamed here."""
    mention = cursor.tree.index.at(cursor.file, cursor.offset)
    if mention is None or not mention.is_exact:
        return None
    return mention if cursor.tree.index.declarations(mention.key) else None


def rename(cursor: Cursor, session: Session, name: str) -> types.WorkspaceEdit:
    """
    Give the resource under the cursor another name.

    Raises:
        RenameRefused: It cannot be, with what to do first.
    """
    mention = prepare(cursor)
    if mention is None:
        raise RenameRefused("No name of a declared resource is at this position.")
    _check(cursor, mention.key, name)
    changes: dict[str, list[types.TextEdit]] = {}
    for found in cursor.tree.index.mentions(mention.key):
        edit = types.TextEdit(
            range_of(found.mention.extent, found.text, session.encoding), _spelled(name, found)
        )
        changes.setdefault(found.file, []).append(edit)
    uri_of = session.uri_of(cursor.tree)
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(
                    uri_of(file), session.version_of(cursor.tree, file)
                ),
                edits,
            )
            for file, edits in changes.items()
        ]
    )


def _check(cursor: Cursor, key: ResourceKey, name: str) -> None:
    index = cursor.tree.index
    problem = secret_name_problem(name) if key.kind == "secret" else name_problem(name)
    if problem is not None:
        raise RenameRefused(problem)
    taken = index.declarations(ResourceKey(key.kind, name))
    if taken and name != key.name:
        raise RenameRefused(f"The {key.kind} `{name}` is declared in {taken[0][0]} already.")
    broken = index.unsound_with(key)
    if broken:
        raise RenameRefused(
            f"{broken[0]} mentions `{key.name}` and cannot be read; correct that file first."
        )
    vague = [one for one in index.mentions(key) if not one.mention.is_exact]
    if vague:
        file, text, mention = vague[0]
        line = text.point(mention.extent.start, Encoding.UTF32).line + 1
        raise RenameRefused(
            f"{file}:{line} does not spell the name `{key.name}` out; write it there first."
        )


def _spelled(name: str, found: Found) -> str:
    """The name as it has to be written there: `null` and `true` are no names without quotes."""
    source, extent = found.text.source, found.mention.extent
    before, behind = source[: extent.start][-1:], source[extent.end : extent.end + 1]
    # In `run/train`, `${{ secrets.key }}`, `data:/mnt` and `sweep[lr=1]` it is a part of a text.
    is_part = before in ("/", ".") or behind in (":", "[") or {before, behind} & {"'", '"'}
    return f'"{name}"' if name in WORDS and not is_part else name
