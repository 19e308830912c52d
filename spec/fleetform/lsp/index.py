"""
The names of an environment: who declares them, who refers to them, and what changed on disk.

Files come and go one by one, since a tree has ten thousand and a key press changes one. A file
that is broken keeps what it said when it was last sound, as far as the names still stand in its
text: whoever is typing in the middle of a document has not removed its other half.

A scan runs beside the event loop and hands values back; nothing is shared. Files that stand open
in the editor are left out, since what the editor says of them holds.
"""

from __future__ import annotations

import asyncio
import os
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pydantic import ValidationError

from fleetform.lsp.references import Declaration, FileIndex, Mention, index_file
from fleetform.lsp.text import Extent, Text
from fleetform.spec.desired import FILE_NAME, ResourceKey
from fleetform.spec.environment import EnvironmentDocument
from fleetform.spec.findings import Finding
from fleetform.spec.nodes import Node, plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.tree.environments import Bases
from fleetform.spec.tree.walk import belongs, read_file, walk

__all__ = ["Found", "Index", "Scan", "Signature", "Tree", "root_of", "scan"]


class Found(NamedTuple):
    """A mention, and the file it stands in."""

    file: str
    text: Text
    mention: Mention


class Index:
    """All files of one environment, by their path in it."""

    def __init__(self) -> None:
        self.files: dict[str, FileIndex] = {}
        self._sound: dict[str, FileIndex] = {}
        self._declaring: dict[ResourceKey, dict[str, Declaration]] = {}
        self._mentioning: dict[ResourceKey, set[str]] = {}
        # Sorting ten thousand names takes 10 ms, and most edits declare what was declared.
        self._sorted: list[ResourceKey] | None = None

    def put(self, file: str, read: FileIndex) -> None:
        """Index a file as it is now."""
        before, declared = self._sound.get(file), self._declared_in(file)
        ordered = self._sorted
        self.remove(file)
        if read.is_sound:
            self._sound[file] = read
        elif before is not None:
            self._sound[file] = before
            read = _complete(read, before)
        self.files[file] = read
        for declaration in read.declarations:
            self._declaring.setdefault(declaration.key, {})[file] = declaration
        for mention in read.mentions:
            self._mentioning.setdefault(mention.key, set()).add(file)
        self._sorted = ordered if self._declared_in(file) == declared else None

    def remove(self, file: str) -> None:
        """Forget a file; one that is unknown is no mistake."""
        self._sound.pop(file, None)
        read = self.files.pop(file, None)
        if read is None:
            return
        self._sorted = None
        for declaration in read.declarations:
            _discard(self._declaring, declaration.key, file)
        for mention in read.mentions:
            _discard(self._mentioning, mention.key, file)

    def _declared_in(self, file: str) -> set[ResourceKey]:
        read = self.files.get(file)
        return {one.key for one in read.declarations} if read else set()

    def declarations(self, key: ResourceKey) -> list[tuple[str, Declaration]]:
        """Who declares it, by file: several where that is the mistake."""
        return sorted(self._declaring.get(key, {}).items())

    def mentions(self, key: ResourceKey) -> Iterator[Found]:
        """Every place of the name, declarations included, in order of file and text."""
        for file in sorted(self._mentioning.get(key, ())):
            read = self.files[file]
            for mention in read.mentions:
                if mention.key == key:
                    yield Found(file, read.text, mention)

    def names(self, kind: str) -> list[ResourceKey]:
        """What of a kind is declared, sorted."""
        ordered = self.resources()
        first = bisect_left(ordered, ResourceKey(kind, ""))
        return ordered[first : bisect_left(ordered, ResourceKey(f"{kind}\0", ""))]

    def resources(self) -> list[ResourceKey]:
        """All that is declared, sorted by kind and name."""
        if self._sorted is None:
            self._sorted = sorted(self._declaring)
        return self._sorted

    def at(self, file: str, offset: int) -> Mention | None:
        """The name under a cursor."""
        read = self.files.get(file)
        if read is None:
            return None
        return next((one for one in read.mentions if one.extent.holds(offset)), None)

    def unsound_with(self, key: ResourceKey) -> list[str]:
        """Files that are broken and contain the name somewhere: what they say of it is not sure."""
        word = _word(key.name)
        return sorted(
            file
            for file, read in self.files.items()
            if not read.is_sound and word.search(read.text.source)
        )


def _discard(
    table: dict[ResourceKey, dict[str, Declaration]] | dict[ResourceKey, set[str]],
    key: ResourceKey,
    file: str,
) -> None:
    holders = table.get(key)
    if isinstance(holders, dict):
        holders.pop(file, None)
    elif holders is not None:
        holders.discard(file)
    if not holders:
        table.pop(key, None)


def _complete(read: FileIndex, before: FileIndex) -> FileIndex:
    """Add what a broken file said when it was sound and its text still contains."""
    said = {(one.key, one.is_declaration) for one in read.mentions}
    kept: list[Mention] = []
    for mention in before.mentions:
        if (mention.key, mention.is_declaration) in said:
            continue
        found = _word(mention.key.name).search(read.text.source)
        if found is not None:
            extent = Extent(found.start(), found.end())
            kept.append(mention._replace(extent=extent, is_exact=False))
    moved = {one.key: one.extent for one in kept if one.is_declaration}
    declarations = [
        one._replace(name=moved[one.key], whole=moved[one.key])
        for one in before.declarations
        if one.key in moved
    ]
    return FileIndex(
        read.text,
        tuple(sorted((*read.mentions, *kept), key=lambda mention: mention.extent)),
        (*read.declarations, *declarations),
        is_sound=False,
    )


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")


Signature: TypeAlias = tuple[int, int, int]
"""By what a file that was not touched is known: inode, size, time of its last change."""


class Scan(NamedTuple):
    """
    Attributes:
        signatures: Of every file there is now, and is not open.
        read: The files whose signature is another than it was.
        bases: Folders besides the environment's own that belong to it, relative to its root.
    """

    signatures: Mapping[str, Signature]
    read: Mapping[str, FileIndex]
    bases: Sequence[str] = ()


def scan(root: Path, known: Mapping[str, Signature], opened: Collection[str]) -> Scan:
    """Read what changed below `root`, which may be gone, and below the bases it extends."""
    signatures: dict[str, Signature] = {}
    read: dict[str, FileIndex] = {}
    folders = _folders(root) if root.is_dir() else []
    for file in _files(root, folders):
        signature = None if file in opened else _sign(root / file)
        if signature is None:
            continue
        signatures[file] = signature
        if known.get(file) != signature:
            data = read_file(root, file)
            text = Text("") if isinstance(data, Finding) else Text.of(data)
            read[file] = index_file(text, file)
    return Scan(signatures, read, tuple(folders[1:]))


def _files(root: Path, folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        prefix = f"{folder}/" if folder else ""
        yield f"{prefix}{FILE_NAME}"
        yield from (f"{prefix}{file}" for file in walk(root / folder).files)


def _folders(root: Path) -> list[str]:
    """
    The environment's own folder, which is empty, and those of its bases: `../base`.

    Which folder may be a base is for the loader to say, since any branch may name any folder.
    """
    parsed = _parse(root, FILE_NAME)
    if parsed is None:
        return [""]
    bases = Bases(root, lambda file: _parse(root, file), lambda _file, _folder: None)
    bases.read(*parsed)
    return [folder.path for folder in bases.folders]


def _parse(root: Path, file: str) -> tuple[Node, EnvironmentDocument] | None:
    data = read_file(root, file)
    if isinstance(data, Finding):
        return None
    nodes, _ = read_documents(data, file)
    try:
        return (nodes[0], EnvironmentDocument.model_validate(plain(nodes[0]))) if nodes else None
    except ValidationError:
        return None


def _sign(path: Path) -> Signature | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


# The environments an editor has files of, and which file belongs to which.
# A file belongs to the nearest folder upward with an `environment.yaml`. One that has none above
# it is a tree of its own with one file, so that names within it can be followed all the same.

# Some 2 ms of work.
_BATCH = 200


def root_of(path: Path) -> Path | None:
    """The environment's folder that a file lies in, or None."""
    return next((folder for folder in path.parents if (folder / FILE_NAME).is_file()), None)


class Tree:
    """
    One environment, or one file outside of any.

    Attributes:
        root: The environment's folder; of a lone file the one it lies in.
        lone: The file's name when it belongs to no environment, else empty.
        bases: Folders besides its own that it is made of, as of the last scan.
        was_scanned: The index knows what is on disk.
        lock: Held while the disk is read, since reading it twice at once is twice as slow.
    """

    def __init__(self, root: Path, lone: str = "") -> None:
        self.root = root
        self.lone = lone
        self.index = Index()
        self.bases: frozenset[Path] = frozenset()
        self.was_scanned = bool(lone)
        self.lock = asyncio.Lock()
        self._signatures: Mapping[str, Signature] = {}

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """What the next scan need not read again."""
        return self._signatures

    def file_of(self, path: Path) -> str:
        """A path as findings name it: relative to the root, of a base's file with steps upward."""
        return Path(os.path.relpath(path, self.root)).as_posix()

    def path_of(self, file: str) -> Path:
        """The other way; the steps upward are taken, since no editor has any in its own paths."""
        return Path(os.path.normpath(self.root / file))

    def has(self, file: str) -> bool:
        """Whether a file's documents count: one in a hidden folder belongs to another tool."""
        return file in (FILE_NAME, self.lone) or belongs(file)

    def batches(self, found: Scan) -> Iterator[Mapping[str, FileIndex | None]]:
        """What a scan found to index, some files at a time; None for a file that is gone."""
        gone = dict.fromkeys(self._signatures.keys() - found.signatures.keys())
        files = iter([*gone.items(), *found.read.items()])
        while batch := dict(islice(files, _BATCH)):
            yield batch

    def take(self, batch: Mapping[str, FileIndex | None], opened: Collection[str]) -> None:
        """Index some files of a scan; a document that is open in the editor outranks it."""
        for file, read in batch.items():
            if file in opened:
                continue
            if read is None:
                self.index.remove(file)
            else:
                self.index.put(file, read)

    def settle(self, found: Scan) -> None:
        """A scan was indexed."""
        self._signatures = found.signatures
        self.bases = frozenset(self.path_of(folder) for folder in found.bases)
        self.was_scanned = True

    def forget(self, file: str) -> None:
        """Let the next scan read a file again, or find it gone."""
        self._signatures = {name: one for name, one in self._signatures.items() if name != file}
        self.index.remove(file)
