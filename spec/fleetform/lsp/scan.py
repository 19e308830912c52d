"""
An environment's files on disk, read into the index: what changed since last time.

A scan runs beside the event loop and hands values back; nothing is shared. Files that stand
open in the editor are left out, since what the editor says of them holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from fleetform.lsp.mentions import FileIndex, index_file
from fleetform.lsp.text import Text
from fleetform.spec.findings import Finding
from fleetform.spec.identity import FILE_NAME
from fleetform.spec.tree.walk import read_file, walk

__all__ = ["Scan", "Signature", "scan"]

Signature: TypeAlias = tuple[int, int, int]
"""By what a file that was not touched is known: inode, size, time of its last change."""


class Scan(NamedTuple):
    """
    Attributes:
        signatures: Of every file there is now, and is not open.
        read: The files whose signature is another than it was.
    """

    signatures: Mapping[str, Signature]
    read: Mapping[str, FileIndex]


def scan(root: Path, known: Mapping[str, Signature], opened: Collection[str]) -> Scan:
    """Read what changed below `root`, which may be gone."""
    signatures: dict[str, Signature] = {}
    read: dict[str, FileIndex] = {}
    for file in (*walk(root).files, FILE_NAME) if root.is_dir() else ():
        signature = None if file in opened else _sign(root / file)
        if signature is None:
            continue
        signatures[file] = signature
        if known.get(file) != signature:
            data = read_file(root, file)
            text = Text("") if isinstance(data, Finding) else Text.of(data)
            read[file] = index_file(text, file)
    return Scan(signatures, read)


def _sign(path: Path) -> Signature | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
