"""
Contents of files, named by their SHA-256: sent once to a host, used by many jobs.

A content is real once it bears its name. Until then it is `incoming-DIGEST` while its pieces
arrive and `checking-DIGEST-NUMBER` while it is hashed: a new upload of the same content, over a
new connection, then has a file of its own. What fails leaves no file. What was interrupted stays
for a day, and its sender goes on where it had come to. Complete contents are a cache: those that
were not needed for longest go first once all of them together exceed a budget.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import hashlib
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")

_FOLDER = re.compile(r"[0-9a-f]{2}\Z")

_INCOMING = "incoming-"
_CHECKING = "checking-"

_INCOMING_SECONDS = 24 * 3600
"""Its sender comes back within minutes or, after a long night, never."""


BUDGET_BYTES = 50 << 30
"""Of complete contents: archives of working copies take some MB, and data sets are volumes."""

BUDGET_PART = 10
"""At most one part in so many of the file system, which is for jobs."""

_RECENT_SECONDS = 3600
"""A content that was asked for is needed by a job that is about to be prepared; jobs copy it."""


class BlobError(Exception):
    """`code` is one of `Reply`'s."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class BlobStore:
    def __init__(self, path: str) -> None:
        self._path = path
        self._numbers = itertools.count()

    def missing(self, digests: tuple[str, ...]) -> list[str]:
        """Return those that are not here, each once, in the order asked."""
        return [d for d in dict.fromkeys(digests) if not self._touch(self._place(d))]

    def put(self, digest: str, offset: int, data: str) -> None:
        """
        Write one piece, base64. Pieces come in order; offset 0 begins again.

        Raises:
            BlobError: The piece makes no sense, or the disk is full.
            OSError: It cannot be written.
        """
        try:
            piece = base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise BlobError("invalid", f"a piece of {digest} is not base64") from error
        self.write(digest, offset, piece)

    def has(self, digest: str) -> bool:
        return os.path.exists(self._place(digest))

    def arrived_bytes(self, digest: str) -> int:
        """Return how much of an interrupted content is there."""
        try:
            return os.stat(self._incoming(digest)).st_size
        except FileNotFoundError:
            return 0

    def write(self, digest: str, offset: int, piece: bytes) -> None:
        """Write one piece as `put` does."""
        if self.has(digest):
            return  # An earlier upload has completed it.
        try:
            self._append(digest, offset, piece)
        except OSError as error:
            # What is incomplete is of no use, and takes space that the host needs.
            self._remove(self._incoming(digest))
            if error.errno in NO_SPACE:
                raise BlobError("no_space", self._explain_no_space(digest, error)) from error
            raise

    def finish(self, digest: str) -> Callable[[], None]:
        """
        Take what has arrived as the whole; returns what remains to be done, in any thread.

        That raises BlobError if the content is not what its name says.
        """
        place = self._place(digest)
        if os.path.exists(place):
            return lambda: None
        checking = f"{self._path}/{_CHECKING}{digest}-{next(self._numbers)}"
        os.rename(self._incoming(digest), checking)
        return lambda: self._check(checking, digest, place)

    def discard(self, digest: str) -> None:
        """Remove what has arrived of a content that is not to be completed."""
        self._remove(self._incoming(digest))

    def discard_earlier(self) -> None:
        """Remove what an agent that was killed was checking; to be called before anything is put."""
        for name in self._names():
            if name.startswith(_CHECKING):
                self._remove(f"{self._path}/{name}")

    def expire(self, now: float) -> None:
        """Remove what was interrupted long before `now` (Unix time) and never completed."""
        for name in self._names():
            if name.startswith(_INCOMING):
                with contextlib.suppress(FileNotFoundError):
                    if now - os.stat(f"{self._path}/{name}").st_mtime > _INCOMING_SECONDS:
                        self._remove(f"{self._path}/{name}")

    def evict(self, now: float, budget: int | None = None) -> None:
        """
        Remove complete contents until the rest fits the budget, the least recently needed first.

        Args:
            now: Unix time. What was needed within the hour before stays.
            budget: In bytes; None: `BUDGET_BYTES`, or a part of the file system if that is less.
        """
        found = sorted(self._complete())
        total = sum(size for _, size, _ in found)
        if budget is None:
            budget = self._budget() if found else 0
        for needed_at, size, path in found:
            if total <= budget or now - needed_at <= _RECENT_SECONDS:
                return
            self._remove(path)
            total -= size

    def path(self, digest: str) -> str:
        """Return where a content lies; raises FileNotFoundError when it is not here."""
        place = self._place(digest)
        os.stat(place)
        # A job's own account may read contents and does not own them.
        with contextlib.suppress(PermissionError):
            os.utime(place)
        return place

    def copy(self, digest: str, target: str) -> None:
        """Copy a content to a new file; raises FileNotFoundError when it is not here."""
        shutil.copyfile(self._place(digest), target)

    def _touch(self, place: str) -> bool:
        """Note that a content is needed now; False where it is not here."""
        try:
            os.utime(place)
        except FileNotFoundError:
            return False
        return True

    def _complete(self) -> Iterator[tuple[float, int, str]]:
        """Yield when each content was needed last, its size and its path."""
        for folder in self._names():
            if not _FOLDER.match(folder):
                continue
            for entry in os.scandir(f"{self._path}/{folder}"):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat()
                    yield status.st_mtime, status.st_size, entry.path

    def _budget(self) -> int:
        system = os.statvfs(self._path)
        return min(BUDGET_BYTES, system.f_blocks * system.f_frsize // BUDGET_PART)

    def _append(self, digest: str, offset: int, piece: bytes) -> None:
        flags = os.O_WRONLY | os.O_CLOEXEC
        if offset == 0:
            os.makedirs(self._path, mode=0o700, exist_ok=True)
            flags |= os.O_CREAT | os.O_TRUNC
        try:
            descriptor = os.open(self._incoming(digest), flags, 0o600)
        except FileNotFoundError:
            # Its first pieces have been removed, most often because one could not be written.
            raise BlobError("invalid", f"the pieces before offset {offset} are missing") from None
        with os.fdopen(descriptor, "wb") as file:
            if os.fstat(file.fileno()).st_size != offset:
                raise BlobError("invalid", f"the piece at offset {offset} is not the next one")
            file.seek(offset)
            file.write(piece)

    def _check(self, checking: str, digest: str, place: str) -> None:
        try:
            found = _digest_of(checking)
            if found != digest:
                raise BlobError(
                    "invalid", f"the content that was sent as {digest} has the digest {found}"
                )
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            os.replace(checking, place)
        finally:
            self._remove(checking)

    def _explain_no_space(self, digest: str, error: OSError) -> str:
        root = os.path.dirname(os.path.abspath(self._path))
        why = f"the disk quota for {root} is used up"
        if error.errno != errno.EDQUOT:
            free_bytes = shutil.disk_usage(self._path).free
            why = f"the disk of {root} is full ({free_bytes >> 20} MB free)"
        return (
            f"a file of the job (SHA-256 {digest[:12]}) cannot be stored: {why}; free space there"
        )

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._path)
        except FileNotFoundError:
            return []

    def _incoming(self, digest: str) -> str:
        return f"{self._path}/{_INCOMING}{digest}"

    @staticmethod
    def _remove(path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def _place(self, digest: str) -> str:
        if not _DIGEST.match(digest):
            raise BlobError("invalid", f"{digest!r} is not a SHA-256 digest in hex")
        return f"{self._path}/{digest[:2]}/{digest}"


def _digest_of(path: str) -> str:
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            piece = file.read(1 << 20)
            if not piece:
                return total.hexdigest()
            total.update(piece)
