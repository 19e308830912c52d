"""Resources as an editor's symbols: the outline of a file, and a search over all environments."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from fleetform.lsp.mentions import FileIndex
from fleetform.lsp.places import range_of
from fleetform.lsp.search import search
from fleetform.lsp.session import Session
from fleetform.lsp.text import Encoding
from fleetform.lsp.tree import Tree

__all__ = ["document_symbols", "workspace_symbols"]

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
