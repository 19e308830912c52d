"""
Reads files in other processes than this one, which do so at the same time.

Reading a document takes a hundred times as long as taking up a reading that is kept. So where a
great part of a tree has none, as many processes as there are processors make readings of shares of
it. Where a few files have changed, one process reads them while this one gets ready for what the
command does next: for a single document the imports alone are more than all else (ADR 21).

The load that follows finds the readings like any others: it proves the same of each, and what came
out wrong, or not at all, it makes itself. Nothing depends on this but time.

Only in a process that has no other thread: a fork has none of them, and all of their locks.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Self

from fleetform.spec.tree import codec
from fleetform.spec.tree.cache import Kept, KeptFile, ReadingCache

__all__ = ["read_beside", "read_meanwhile"]

# As much as one process reads in a third of a second; starting another takes twenty milliseconds.
_BYTES_MIN = 100_000
# A process takes up to a hundred and fifty megabytes, and the rest of the load is for one alone.
_PROCESSES_MAX = 8
# Nodes of so many files are in memory at a time.
_CHUNK = 200


def read_beside(
    root: Path,
    cache: ReadingCache,
    files: Sequence[tuple[str, str, int]],
    values: Mapping[str, Any],
) -> None:
    """
    Put readings of those of the `files` into the cache that it has none of, if they are many.

    Args:
        root: The environment's folder.
        cache: Of this tree; a load has begun.
        files: Of the environment's own folder, how each looks, and its size in bytes.
        values: The environment's.
    """
    unknown = [(file, look) for file, look, _ in files if not cache.is_known(file, look)]
    names = {file for file, _ in unknown}
    count = min(_processors(), _PROCESSES_MAX, len(unknown))
    if count < 2 or sum(size for file, _, size in files if file in names) < _BYTES_MIN:
        return
    # Before there are others: each would import all of it anew.
    from fleetform.spec.tree import reader  # noqa: F401 -- imported for that alone

    shares = [unknown[number::count] for number in range(count)]
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(_Other(root, cache, share, values)) for share in shares[1:]]
        _read(root, cache, shares[0], values)
        for other in others:
            other.take(cache)


def read_meanwhile(
    root: Path,
    cache: ReadingCache,
    files: Sequence[tuple[str, str]],
    values: Mapping[str, Any],
    meanwhile: Callable[[], None],
) -> None:
    """
    Put readings of a few files into the cache, of a tree of which all else is as it was.

    Args:
        root: The environment's folder.
        cache: Of this tree; a load has begun.
        files: Each with how it looks.
        values: The environment's.
        meanwhile: What is to be done in this process until they are read. Where there is nobody else
            to read them, neither is done.
    """
    if _processors() < 2:
        return
    with _Other(root, cache, files, values) as other:
        meanwhile()
        other.take(cache)


def _processors() -> int:
    """How many of them may be used here; 1 where no process can be split off."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return len(os.sched_getaffinity(0))


def _read(
    root: Path,
    cache: ReadingCache,
    files: Sequence[tuple[str, str]],
    values: Mapping[str, Any],
) -> None:
    from fleetform.spec.tree.again import read_again

    for start in range(0, len(files), _CHUNK):
        read_again(root, cache, files[start : start + _CHUNK], values)


class _Other:
    """A process that reads a share, with a copy of the cache as it is now."""

    def __init__(
        self,
        root: Path,
        cache: ReadingCache,
        files: Sequence[tuple[str, str]],
        values: Mapping[str, Any],
    ) -> None:
        # A file without a name in memory: a folder for it would have to be looked for.
        self._result = os.fdopen(os.memfd_create("readings"), "w+b")
        self._pid = os.fork()
        if self._pid == 0:
            # Nothing behind this line may run twice: neither what is waiting to be written, nor
            # what the command does next.
            code = 1
            with contextlib.suppress(BaseException):
                before = {file: cache.known(file) for file, _ in files}
                digests = set(cache.digests)
                _read(root, cache, files, values)
                _give(self._result, cache, before, digests)
                code = 0
            os._exit(code)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pid:
            # Somebody has interrupted this process, and the other with it.
            os.waitpid(self._pid, 0)
        self._result.close()

    def take(self, cache: ReadingCache) -> None:
        """Wait for it, and put what it has read into the cache."""
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        if status == 0:
            self._result.seek(0)
            with contextlib.suppress(ValueError):
                _take(self._result.read(), cache)


def _give(
    result: IO[bytes],
    cache: ReadingCache,
    before: Mapping[str, KeptFile | None],
    digests: set[str],
) -> None:
    index, bodies = [], []
    for path, known in before.items():
        made = cache.known(path)
        if made is not None and made is not known:
            # What cannot be written is read again.
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                body = made.body or codec.encode(made.documents)
                index.append((made.path, made.sha256, made.look, len(body)))
                bodies.append(body)
    learned = {key: one for key, one in cache.digests.items() if key not in digests}
    head = json.dumps({"files": index, "digests": learned}).encode()
    result.write(b"%d\n" % len(head))
    result.writelines((head, *bodies))
    result.flush()


def _take(data: bytes, cache: ReadingCache) -> None:
    length, _, rest = data.partition(b"\n")
    said = json.loads(rest[: int(length)])
    cache.digests.update(said["digests"])
    at = int(length)
    for path, sha256, look, size in said["files"]:
        body = rest[at : at + size]
        cache.keep(KeptFile(path, sha256, look, body=body, decode=partial(_decode, body)))
        at += size


def _decode(body: bytes) -> Sequence[Kept]:
    return codec.decode(codec.split(body)[0])
