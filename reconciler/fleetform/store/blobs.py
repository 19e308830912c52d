"""
The port `BlobStore` on files: contents frozen at submission, each under its SHA-256.

A content is there whole or not at all: it is copied under another name, synced, and renamed.
It is never changed, so a name that exists need not be looked into.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

from fleetform.spec.private_folder import make_private_folder

_PIECE_BYTES = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")


class FileBlobStore:
    """One environment's contents, below one folder; several processes may put at once."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, sha256: str) -> str:
        """Return where the content lies or would lie; raises ValueError for no digest."""
        if not _DIGEST.fullmatch(sha256):
            raise ValueError(f"{sha256!r} is not a SHA-256 digest in hexadecimal")
        return str(self._root / sha256[:2] / sha256)

    def has(self, sha256: str) -> bool:
        return Path(self.path(sha256)).exists()

    def put_file(self, sha256: str, path: str) -> None:
        """
        Copy the file at `path` in; nothing when its content is there.

        Raises:
            ValueError: Its content is not `sha256`: it changed since it was looked at.
        """
        if self.has(sha256):
            return
        final = Path(self.path(sha256))
        make_private_folder(final.parent)
        descriptor, name = tempfile.mkstemp(dir=final.parent, prefix=".put-")
        try:
            found = _copy(Path(path), descriptor)
            if found == sha256:
                Path(name).replace(final)
        finally:
            Path(name).unlink(missing_ok=True)
        if found != sha256:
            raise ValueError(f"{path} has changed: its content is {found}, not {sha256}")


def _copy(source: Path, descriptor: int) -> str:
    """Copy to the descriptor, close it, and return the digest of what was copied."""
    digest = hashlib.sha256()
    with os.fdopen(descriptor, "wb") as copy, source.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
            copy.write(piece)
        copy.flush()
        # A name that a power cut left without its bytes would pass for the content.
        os.fsync(copy.fileno())
    return digest.hexdigest()
