"""
An environment's files on disk, read into the index: what changed since last time.

A scan runs beside the event loop and hands values back; nothing is shared. Files that stand
open in the editor are left out, since what the editor says of them holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pydantic import ValidationError

from fleetform.lsp.mentions import FileIndex, index_file
from fleetform.lsp.text import Text
from fleetform.spec.environment import EnvironmentDocument
from fleetform.spec.findings import Finding
from fleetform.spec.identity import FILE_NAME
from fleetform.spec.nodes import Node, plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.tree.bases import Bases
from fleetform.spec.tree.walk import read_file, walk

__all__ = ["Scan", "Signature", "scan"]

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
