"""
The environments an editor has files of, and which file belongs to which.

A file belongs to the nearest folder upward with an `environment.yaml`. One that has none above
it is a tree of its own with one file, so that names within it can be followed all the same.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path

from fleetform.lsp.index import Index, Scan, Signature
from fleetform.lsp.references import FileIndex
from fleetform.spec.identity import FILE_NAME
from fleetform.spec.tree.walk import belongs

__all__ = ["Tree", "root_of"]

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
        """What a scan found to take in, some files at a time; None for a file that is gone."""
        gone = dict.fromkeys(self._signatures.keys() - found.signatures.keys())
        files = iter([*gone.items(), *found.read.items()])
        while batch := dict(islice(files, _BATCH)):
            yield batch

    def take(self, batch: Mapping[str, FileIndex | None], opened: Collection[str]) -> None:
        """Take in some files of a scan; what stands open in the editor outranks it."""
        for file, read in batch.items():
            if file in opened:
                continue
            if read is None:
                self.index.remove(file)
            else:
                self.index.put(file, read)

    def settle(self, found: Scan) -> None:
        """A scan was taken in."""
        self._signatures = found.signatures
        self.bases = frozenset(self.path_of(folder) for folder in found.bases)
        self.was_scanned = True

    def forget(self, file: str) -> None:
        """Let the next scan read a file again, or find it gone."""
        self._signatures = {name: one for name, one in self._signatures.items() if name != file}
        self.index.remove(file)
