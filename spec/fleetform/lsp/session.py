"""
What a client has open, and the environments that belong to it.

All state of the server is here, and is touched on the event loop only; threads are given values
and hand values back. A request about a document waits until the document is indexed as the
editor shows it, and never for a validation.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from lsprotocol import types
from pygls import uris

from fleetform.lsp.diagnostics import by_file, diagnostic
from fleetform.lsp.index import Tree, root_of, scan
from fleetform.lsp.references import FileIndex, index_file
from fleetform.lsp.text import Encoding, Text, offset_of
from fleetform.lsp.validation import Asked, Readings, Validations
from fleetform.spec.findings import Finding
from fleetform.spec.kinds import KINDS

__all__ = ["Cursor", "Document", "Publish", "Session"]

# A text of this size is indexed within some 20 ms; a longer one would hold up the loop.
_INLINE_MAX = 20_000
# A YAML file outside of any environment is anybody's. One that says this is ours.
_FLEETFORM_TYPE = re.compile(rf"^type:[ \t]*['\"]?(?:{'|'.join(sorted(KINDS))})\b", re.MULTILINE)
# Where a document lies that has not been saved anywhere yet; no such folder exists.
_NOWHERE = Path("/untitled")


class Document(NamedTuple):
    """One document that stands open, as the editor shows it."""

    uri: str
    path: Path
    version: int
    text: Text


class Cursor(NamedTuple):
    """A place in a document, and all that is known around it."""

    tree: Tree
    file: str
    read: FileIndex
    offset: int

    @property
    def text(self) -> Text:
        return self.read.text


Publish = Callable[[str, int | None, Sequence[types.Diagnostic]], None]
"""Shows a document's diagnostics, by URI and the version they are of."""


class Session:
    """One client's documents and environments."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._documents: dict[Path, Document] = {}
        self._trees: dict[Path, Tree] = {}
        self._shown: dict[Path, dict[str, list[types.Diagnostic]]] = {}
        self._validations = Validations(self._check)
        self._readings = Readings()
        self.encoding = Encoding.UTF16

    def close(self) -> None:
        self._validations.close()
        self._readings.close()

    # What the client tells

    def opened(self, uri: str, version: int, source: str) -> None:
        """A document was opened, or is another text now."""
        path = _path_of(uri)
        self._documents[path] = Document(uri, path, version, Text(source))
        self._ask(path)

    def closed(self, uri: str) -> None:
        """A document is what its file says again."""
        document = self._documents.pop(_path_of(uri), None)
        if document is None:
            return
        tree = self._tree_of(document.path)
        if tree.lone:
            self._drop(document.path)
            return
        tree.forget(tree.file_of(document.path))
        self._ask(document.path)

    def touched(self, uris_: Iterable[str]) -> None:
        """Files changed on disk; any of them may have begun or ended an environment."""
        paths = [_path_of(uri) for uri in uris_]
        for key, tree in list(self._trees.items()):
            if not tree.lone and root_of(key / "any") != key:
                self._drop(key)
        for path in [*paths, *self._documents]:
            if path in self._documents or root_of(path) is not None:
                self._ask(path)

    def entered(self, folder: str) -> None:
        """A folder of the workspace; where it lies in an environment, that is wanted soon."""
        path = _path_of(folder) / "any"
        if root_of(path) is not None:
            self._ask(path)

    def left(self, folder: str) -> None:
        """A folder left the workspace; a file that is not open is not asked about."""
        path = _path_of(folder)
        wanted = {root_of(document) for document in self._documents}
        for key in [one for one in self._trees if one.is_relative_to(path)]:
            if not self._trees[key].lone and key not in wanted:
                self._drop(key)

    # What requests need

    def document(self, path: Path) -> Document | None:
        return self._documents.get(path)

    def uri_of(self, tree: Tree) -> Callable[[str], str]:
        """How the client calls a tree's files."""

        def uri(file: str) -> str:
            path = tree.path_of(file)
            document = self._documents.get(path)
            return document.uri if document else uris.from_fs_path(str(path)) or ""

        return uri

    def version_of(self, tree: Tree, file: str) -> int | None:
        """The version of a file that stands open, or None."""
        document = self._documents.get(tree.path_of(file))
        return document.version if document else None

    async def cursor(self, uri: str, position: types.Position) -> Cursor | None:
        """What stands at a place; None for a document that is not open or not ours."""
        found = await self.document_at(uri)
        if found is None:
            return None
        tree, file, read = found
        return Cursor(tree, file, read, offset_of(position, read.text, self.encoding))

    async def document_at(self, uri: str) -> tuple[Tree, str, FileIndex] | None:
        """A document with its tree, indexed as the editor shows it."""
        document = self._documents.get(_path_of(uri))
        if document is None:
            return None
        tree = self._tree_of(document.path)
        await self._indexed(tree)
        file = tree.file_of(document.path)
        read = tree.index.files.get(file)
        return (tree, file, read) if read is not None else None

    async def trees(self) -> list[Tree]:
        """Every environment there is anything open of, indexed as of the last edit."""
        for tree in list(self._trees.values()):
            await self._indexed(tree)
        return list(self._trees.values())

    async def _indexed(self, tree: Tree) -> None:
        """
        Wait until the index knows what is open, and has known what is on disk.

        Each validation looks at the disk, so what changed there is known as soon as it is told.
        """
        if tree.was_scanned:
            await self._index_open(tree)
        else:
            await self.scanned(tree)

    async def scanned(self, tree: Tree) -> None:
        """Wait until the index knows what is on disk now: as long as it takes to look at it all."""
        async with tree.lock:
            await self._scan(tree)
        await self._index_open(tree)

    async def _scan(self, tree: Tree) -> None:
        if tree.lone:
            return
        opened = {tree.file_of(one.path) for one in self._open_in(tree)}
        found = await asyncio.to_thread(scan, tree.root, tree.signatures, opened)
        for batch in tree.batches(found):
            still_open = {tree.file_of(one.path) for one in self._open_in(tree)}
            tree.take(batch, still_open)
            # Ten thousand files take a tenth of a second; requests are let in between.
            await asyncio.sleep(0)
        tree.settle(found)

    # Trees and what is in them

    def _tree_of(self, path: Path) -> Tree:
        root = root_of(path)
        key = path if root is None else root
        if key not in self._trees:
            self._trees[key] = Tree(path.parent, path.name) if root is None else Tree(root)
        if root is not None and path in self._trees:
            self._drop(path)
        return self._trees[key]

    def _drop(self, key: Path) -> None:
        self._trees.pop(key, None)
        for uri in self._shown.pop(key, {}):
            self._publish(uri, None, self._diagnostics(uri))

    def _open_in(self, tree: Tree) -> list[Document]:
        """The open documents that count in a tree: its own and its bases'."""
        found: list[Document] = []
        for path, document in self._documents.items():
            own = self._tree_of(path)
            if (own is tree or own.root in tree.bases) and own.has(own.file_of(path)):
                found.append(document)
        return found

    async def _index_open(self, tree: Tree) -> None:
        for document in self._open_in(tree):
            file = tree.file_of(document.path)
            known = tree.index.files.get(file)
            if known is not None and known.text is document.text:
                continue
            if len(document.text.source) <= _INLINE_MAX:
                read = index_file(document.text, file)
            else:
                read = await asyncio.to_thread(index_file, document.text, file)
            # Meanwhile there may be a newer text, which whoever needs it indexes.
            if self._documents.get(document.path) is document:
                tree.index.put(file, read)

    # Diagnostics

    def _ask(self, path: Path) -> None:
        tree = self._tree_of(path)
        self._validations.ask(path if tree.lone else tree.root)
        for key, other in self._trees.items():
            if tree.root in other.bases:
                self._validations.ask(key)

    async def _check(self, asked: Asked) -> None:
        tree = self._trees.get(asked.subject)
        if tree is None:
            return
        opened = {tree.file_of(one.path): one.text for one in self._open_in(tree)}
        # Side by side: where the findings stand is only asked for when they are there.
        findings, _ = await asyncio.gather(self._read(tree, opened), self.scanned(tree))
        is_wanted = self._trees.get(asked.subject) is tree and not asked.is_stale()
        if findings is not None and is_wanted:
            self._show(asked.subject, tree, findings)

    async def _read(self, tree: Tree, opened: Mapping[str, Text]) -> tuple[Finding, ...] | None:
        if tree.lone and not any(_FLEETFORM_TYPE.search(text.source) for text in opened.values()):
            return ()
        texts = {file: text.data for file, text in opened.items()}
        return await self._readings.read(tree.root, tree.lone, texts)

    def _show(self, key: Path, tree: Tree, findings: Iterable[Finding]) -> None:
        uri_of = self.uri_of(tree)
        found: dict[str, list[types.Diagnostic]] = {}
        for file, told in by_file(findings, tree.index.files).items():
            read = tree.index.files.get(file)
            text = read.text if read else Text("")
            found[uri_of(file)] = [
                diagnostic(one, file, text, tree.index, uri_of, self.encoding) for one in told
            ]
        # What is open is told that it has none, so that an editor can say so.
        opened = {document.uri: document.version for document in self._open_in(tree)}
        before = self._shown.get(key, {})
        self._shown[key] = found
        for uri in sorted(before.keys() | found.keys() | opened.keys()):
            self._publish(uri, opened.get(uri), self._diagnostics(uri))

    def _diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """What all environments say of a document: a base belongs to several."""
        told: list[types.Diagnostic] = []
        for shown in self._shown.values():
            told += [one for one in shown.get(uri, ()) if one not in told]
        return told


def _path_of(uri: str) -> Path:
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return Path(path) if path else _NOWHERE / (PurePosixPath(uri).name or "document")
