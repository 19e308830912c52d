"""
A cache of readings on disk: one file a tree, replaced as a whole.

If the file is truncated, of another version, owned by another user, on a full disk or gone, the configuration
is read without it. So there is no error here, and each part is checked before it is used. Several
processes may write it: each writes a file of its own and renames it, and the last one wins.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, get_type_hints

from fleetform.spec.desired import FILE_NAME, Environment, ResourceKey
from fleetform.spec.private_folder import make_private_folder
from fleetform.spec.tree.cache import Kept, KeptFile, ReadingCache
from fleetform.spec.tree.cache_format import SUFFIX, Codec, codec, path_of, read_parts, title_of
from fleetform.spec.tree.whole import Rows, Whole

__all__ = [
    "SIZE_MAX",
    "decode_documents",
    "decode_whole",
    "encode_documents",
    "encode_whole",
    "open_cache",
    "save_cache",
]


# Readings as JSON, since nothing that is read from a disk should be able to do more than be wrong. It
# gives back what went in: texts, integers of any size, floats by their shortest spelling, the order of
# fields. What it would not give back is refused.
#
# The ten thousand resources of a whole configuration are columns, a list of names and one of digests:
# to read these takes a tenth of the time that ten thousand lists would.
_DOCUMENTS = Sequence[Kept]
# What is not written field by field.
_COLUMNS = ("resources", "beyond")
_FILES = "files"


def encode_documents(documents: Sequence[Kept]) -> bytes:
    """
    Raises:
        ValueError, TypeError: Some value is none of JSON.
    """
    return _json(codec(_DOCUMENTS).write([_without_copy(one) for one in documents]))


def decode_documents(body: bytes) -> list[Kept]:
    """
    Raises:
        ValueError: It is nothing that `encode_documents` has written.
    """
    try:
        said = json.loads(body.decode("utf-8", "surrogatepass"))
        return [_with_copy(one) for one in codec(_DOCUMENTS).read(said)]
    except (TypeError, KeyError, IndexError) as exc:
        raise ValueError(str(exc)) from exc


def _json(said: Any) -> bytes:
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # As they are, since two escaped halves of a pair would come back as one character.
    return text.encode("utf-8", "surrogatepass")


def _without_copy(kept: Kept) -> Kept:
    """The document without its only canonical form where that is `shared`, to write it once."""
    outcome = kept.outcome
    is_shared = len(outcome.documents) == 1 and outcome.documents[0] is outcome.shared
    return kept._replace(outcome=outcome._replace(documents=())) if is_shared else kept


def _with_copy(kept: Kept) -> Kept:
    outcome = kept.outcome
    is_shared = outcome.is_read and not outcome.documents
    return (
        kept._replace(outcome=outcome._replace(documents=[outcome.shared])) if is_shared else kept
    )


@functools.cache
def _fields_of_whole() -> Mapping[str, Codec]:
    hints = get_type_hints(Whole)
    return {name: codec(hints[name]) for name in hints if name not in {*_COLUMNS, _FILES}}


def encode_whole(whole: Whole) -> bytes:
    """
    Its files are not among it, except for documents that an overlay has made.

    Raises:
        ValueError, TypeError: Some value is none of JSON.
    """
    said = {name: one.write(getattr(whole, name)) for name, one in _fields_of_whole().items()}
    columns = {name: _columns(getattr(whole, name)) for name in _COLUMNS}
    overlaid = encode_documents(whole.files[-1].documents).decode("utf-8", "surrogatepass")
    return _json({**said, **columns, _FILES: overlaid})


def decode_whole(data: bytes, files: Sequence[KeptFile]) -> Whole:
    """
    What was encoded; `files` are the readings that were kept with it, in the same order.

    Raises:
        ValueError, TypeError, KeyError, IndexError: It is nothing that `encode_whole` has written.
    """
    said = json.loads(data.decode("utf-8", "surrogatepass"))
    overlaid = said[_FILES].encode("utf-8", "surrogatepass")
    return Whole(
        **{name: one.read(said[name]) for name, one in _fields_of_whole().items()},
        resources=_columns_read(said["resources"]),
        beyond=_columns_read(said["beyond"]),
        files=(*files, KeptFile("", "", "", decode=partial(decode_documents, overlaid))),
    )


def _columns(rows: Rows) -> dict[str, Any]:
    # In order of key, so that each kind is one stretch.
    counts: dict[str, int] = {}
    for kind, _ in rows.digests:
        counts[kind] = counts.get(kind, 0) + 1
    names: dict[tuple[str, ...], int] = {}
    return {
        "kinds": counts,
        "names": [name for _, name in rows.digests],
        "digests": list(rows.digests.values()),
        "origins": rows.origins,
        "upstream": [
            [position, names.setdefault(one, len(names))] for position, one in rows.upstream.items()
        ],
        "upstream_names": list(names),
    }


def _columns_read(said: dict[str, Any]) -> Rows:
    kinds = chain.from_iterable(repeat(kind, count) for kind, count in said["kinds"].items())
    keys = map(ResourceKey._make, zip(kinds, said["names"], strict=True))
    names = [tuple(one) for one in said["upstream_names"]]
    return Rows(
        dict(zip(keys, said["digests"], strict=True)),
        said["origins"],
        {position: names[number] for position, number in said["upstream"]},
    )


SIZE_MAX = 512 * 2**20
"""Bytes of the files of all configurations together; beyond, the oldest files are removed."""

# Ten thousand documents take some ten megabytes. A tree with more has the rest of it read anew.
_PART_MAX = 64 * 2**20
# A process that writes longer than this was killed meanwhile.
_WRITING_SECONDS = 600
_UNFINISHED = ".new"


def open_cache(folder: Path, root: Path) -> ReadingCache:
    """What is kept in `folder` of the tree at `root`; empty where that is nothing of use."""
    cache = ReadingCache()
    # Nothing else can be wrong with bytes whose checksum is right but that a bug wrote them.
    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError, RecursionError):
        _fill(cache, read_parts(path_of(folder, root)))
    return cache


def save_cache(cache: ReadingCache, folder: Path, root: Path) -> None:
    """Write the cache to disk, if it changed."""
    if not cache.is_changed:
        return
    # A cache that cannot be written costs time, and nobody's plan fails for that.
    with contextlib.suppress(OSError):
        make_private_folder(folder)
        _replace(path_of(folder, root), _content(cache))
        cache.is_changed = False
        _make_room(folder, path_of(folder, root))


def _fill(cache: ReadingCache, parts: Sequence[bytes]) -> None:
    _, index, whole, bodies = parts
    said = json.loads(index)
    cache.digests.update(said["digests"])
    files = list(_files(said["files"], bodies))
    cache.fill(files)
    if whole:
        cache.whole = decode_whole(whole, files)


def _files(index: Sequence[Any], bodies: bytes) -> Iterator[KeptFile]:
    at = 0
    for path, sha256, look, size in index:
        body = bodies[at : at + size]
        yield KeptFile(path, sha256, look, body=body, decode=partial(decode_documents, body))
        at += size


def _content(cache: ReadingCache) -> bytes:
    files, bodies = _part(cache.current())
    whole = _whole(cache, len(files))
    index = json.dumps({"digests": dict(cache.digests), "files": files}).encode()
    parts = (_environment_part(cache) if whole else b"", index, whole, bodies)
    return b"".join((title_of(parts), *parts))


def _environment_part(cache: ReadingCache) -> bytes:
    """Which environment it is, for commands that need nothing else of the configuration."""
    assert cache.whole is not None, "it is written too"
    said = {
        "sha256": cache.whole.inputs[FILE_NAME].sha256,
        "environment": codec(Environment).write(cache.whole.own),
    }
    return json.dumps(said).encode()


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
        return encode_whole(cache.whole)
    return b""


def _part(files: Iterator[KeptFile]) -> tuple[list[Any], bytes]:
    index, bodies, left = [], [], _PART_MAX
    for kept in files:
        # What cannot be written is read again, each time.
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            kept.body = kept.body or encode_documents(kept.documents)
            left -= len(kept.body)
            if left < 0:
                break
            index.append((kept.path, kept.sha256, kept.look, len(kept.body)))
            bodies.append(kept.body)
    return index, b"".join(bodies)


def _replace(path: Path, content: bytes) -> None:
    # As `tempfile` makes one, which imports every kind of archive: as long as reading the file.
    unfinished = path.with_name(f".{os.urandom(8).hex()}{_UNFINISHED}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(unfinished, flags, 0o600)
    # Nothing is synced: what a crash leaves behind is told by its checksums.
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _make_room(folder: Path, newest: Path) -> None:
    """Remove the oldest files beyond the bound, and what a killed process left half written."""
    files = []
    for entry in os.scandir(folder):
        # Another process may have been faster.
        with contextlib.suppress(FileNotFoundError):
            seen = entry.stat(follow_symlinks=False)
            if entry.name.endswith(SUFFIX):
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
