"""
Contents of files, named by their SHA-256: sent once to a host, used by many jobs.

A content is real once it bears its name; until then it is being written beside, and what does
not hash to its name never gets it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import shutil

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class BlobError(Exception):
    """`code` is one of `Reply`'s."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class BlobStore:
    def __init__(self, path: str) -> None:
        self._path = path

    def missing(self, digests: tuple[str, ...]) -> list[str]:
        """Return those that are not here, each once, in the order asked."""
        return [d for d in dict.fromkeys(digests) if not os.path.exists(self._place(d))]

    def put(self, digest: str, offset: int, data: str, *, last: bool) -> None:
        """
        Take in one piece, base64. Pieces come in order; offset 0 begins anew.

        Raises:
            BlobError: The piece makes no sense, or the whole is not what its name says.
            OSError: It cannot be written.
        """
        place = self._place(digest)
        if os.path.exists(place):
            return  # Somebody else sent it meanwhile.
        incoming = f"{self._path}/incoming-{digest}"
        try:
            piece = base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise BlobError("invalid", f"a piece of {digest} is not base64") from error
        self._append(incoming, offset, piece)
        if last:
            self._finish(incoming, digest, place)

    def path(self, digest: str) -> str:
        """Return where a content lies; raises FileNotFoundError when it is not here."""
        place = self._place(digest)
        os.stat(place)
        return place

    def copy(self, digest: str, target: str) -> None:
        """Copy a content to a new file; raises FileNotFoundError when it is not here."""
        shutil.copyfile(self._place(digest), target)

    def _append(self, incoming: str, offset: int, piece: bytes) -> None:
        os.makedirs(self._path, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if offset == 0 else 0)
        with os.fdopen(os.open(incoming, flags, 0o600), "wb") as file:
            if os.fstat(file.fileno()).st_size != offset:
                raise BlobError("invalid", f"a piece at {offset} is not the next one")
            file.seek(offset)
            file.write(piece)

    def _finish(self, incoming: str, digest: str, place: str) -> None:
        found = _digest_of(incoming)
        if found != digest:
            os.unlink(incoming)
            raise BlobError("invalid", f"what was sent as {digest} is {found}")
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        os.replace(incoming, place)

    def _place(self, digest: str) -> str:
        if not _DIGEST.match(digest):
            raise BlobError("invalid", f"{digest!r} is no SHA-256 in hex")
        return f"{self._path}/{digest[:2]}/{digest}"


def _digest_of(path: str) -> str:
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            piece = file.read(1 << 20)
            if not piece:
                return total.hexdigest()
            total.update(piece)
