"""
A cache of readings on disk: one file a tree, replaced as a whole.

Whatever is wrong with the file, the tree is read without it: it may be cut off, of another
version, another user's, on a full disk, gone. So there is no error here, and each part is checked
before it is believed. Several processes may write it; each writes one of its own and puts it in
place at once, and the last one wins.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fleetform.spec.tree import codec, whole_codec
from fleetform.spec.tree.cache import Kept, KeptFile, ReadingCache
from fleetform.spec.tree.language import language_version

__all__ = ["SIZE_MAX", "open_cache", "save_cache"]

SIZE_MAX = 512 * 2**20
"""Bytes of all trees' files together; beyond, those that were written longest ago go."""

# Ten thousand documents take some ten megabytes. A tree with more has the rest of it read anew.
_PART_MAX = 64 * 2**20
_TITLE_MAX = 300
# So many files are decoded one by one: a plan looks at a few resources. Whoever goes on wants all.
_ALONE_MAX = 32
# A process that writes longer than this was killed meanwhile.
_WRITING_SECONDS = 600
_MAGIC = "fleetform readings 2"
_SUFFIX = ".readings"
_UNFINISHED = ".new"


def open_cache(folder: Path, root: Path) -> ReadingCache:
    """What is kept in `folder` of the tree at `root`; empty where that is nothing of use."""
    cache = ReadingCache()
    data = _own_file(_file_of(folder, root))
    # Nothing else can be wrong with bytes whose checksum is right but that a bug wrote them.
    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError, RecursionError):
        _fill(cache, data)
    return cache


def save_cache(cache: ReadingCache, folder: Path, root: Path) -> None:
    """Write down what was learned, if anything was."""
    if not cache.is_changed:
        return
    # A cache that cannot be written costs time, and nobody's plan fails for that.
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(_file_of(folder, root), _content(cache))
        cache.is_changed = False
        _make_room(folder, _file_of(folder, root))


def _file_of(folder: Path, root: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
    return folder / f"{name}{_SUFFIX}"


def _own_file(path: Path) -> bytes:
    """The file's bytes, unless somebody else could have written them."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        is_own = stat.S_ISREG(seen.st_mode) and seen.st_uid == os.geteuid()
        if not is_own or seen.st_mode & 0o022 or seen.st_size > 4 * _PART_MAX:
            return b""
        with contextlib.suppress(OSError):
            return file.read()
    return b""


def _title(parts: Sequence[bytes]) -> bytes:
    sums = " ".join(f"{len(one)} {zlib.crc32(one)}" for one in parts)
    return f"{_MAGIC} {language_version()} {sums}\n".encode()


def _fill(cache: ReadingCache, data: bytes) -> None:
    title, _, _ = data[:_TITLE_MAX].partition(b"\n")
    lengths = [int(one) for one in title.split(b" ")[-8::2]]
    parts, at = [], len(title) + 1
    for length in lengths:
        parts.append(data[at : at + length])
        at += length
    index, whole, current, former = parts
    if _title(parts) != data[: len(title) + 1]:
        return
    said = json.loads(index)
    cache.digests.update(said["digests"])
    files = _files(said["current"], current)
    cache.fill(files, _files(said["former"], former))
    if whole:
        cache.whole = whole_codec.decode(whole, files)


def _files(index: Sequence[Any], bodies: bytes) -> list[KeptFile]:
    """The files of one part, whose bodies are split when several of them are needed."""
    raw: list[Any] = []
    alone = 0

    def decoded(number: int) -> Sequence[Kept]:
        nonlocal alone
        alone += 1
        if alone <= _ALONE_MAX:
            return codec.decode(codec.split(files[number].body)[0])
        if not raw:
            raw.extend(codec.split(bodies))
        return codec.decode(raw[number])

    files: list[KeptFile] = []
    at = 0
    for number, (path, sha256, look, size) in enumerate(index):
        body = bodies[at : at + size]
        decode = partial(decoded, number)
        files.append(KeptFile(path, sha256, look, body=body, decode=decode))
        at += size + 1
    return files


def _content(cache: ReadingCache) -> bytes:
    current_index, current = _part(cache.current())
    former_index, former = _part(cache.former())
    whole = _whole(cache, len(current_index))
    said = {
        "digests": dict(cache.digests),
        "current": current_index,
        "former": former_index,
    }
    index = json.dumps(said).encode()
    parts = (index, whole, current, former)
    return b"".join((_title(parts), *parts))


def _whole(cache: ReadingCache, written_count: int) -> bytes:
    """What is known of the tree as a whole; empty where that could not be read again."""
    files = list(cache.current())
    # It counts files as they are written.
    if (
        cache.whole is None
        or len(files) != written_count
        or len(cache.whole.files) != written_count + 1
        or any(one is not two for one, two in zip(cache.whole.files, files, strict=False))
    ):
        return b""
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        return whole_codec.encode(cache.whole)
    return b""


def _part(files: Iterator[KeptFile]) -> tuple[list[Any], bytes]:
    index, bodies, left = [], [], _PART_MAX
    for kept in files:
        # What cannot be written is read again, each time.
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            kept.body = kept.body or codec.encode(kept.documents)
            left -= len(kept.body)
            if left < 0:
                break
            index.append((kept.path, kept.sha256, kept.look, len(kept.body)))
            bodies.append(kept.body)
    return index, b",".join(bodies)


def _replace(path: Path, content: bytes) -> None:
    # Nothing is synced: what a crash leaves behind is told by its checksums.
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=_UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _make_room(folder: Path, newest: Path) -> None:
    """Remove the oldest files beyond the bound, and what a killed process left half written."""
    files = []
    for entry in os.scandir(folder):
        # Another process may have been faster.
        with contextlib.suppress(FileNotFoundError):
            seen = entry.stat(follow_symlinks=False)
            if entry.name.endswith(_SUFFIX):
                files.append((seen.st_mtime_ns, seen.st_size, entry.path))
            elif entry.name.endswith(_UNFINISHED) and _is_abandoned(seen):
                Path(entry.path).unlink()
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total > SIZE_MAX and path != str(newest):
            Path(path).unlink(missing_ok=True)
            total -= size


def _is_abandoned(seen: os.stat_result) -> bool:
    return time.time() - seen.st_mtime > _WRITING_SECONDS
