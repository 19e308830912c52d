"""
A cache of readings on disk: one file a tree, replaced as a whole.

Whatever is wrong with the file, the tree is read without it: it may be cut off, of another
version, another user's, on a full disk, gone. So there is no error here, and each part is checked
before it is believed. Several processes may write it; each writes one of its own and puts it in
place at once, and the last one wins.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import SUMMARIES, Finding, Level, Place, Problem
from fleetform.spec.identity import FILE_NAME
from fleetform.spec.private_folder import make_private_folder
from fleetform.spec.references import Reference
from fleetform.spec.tree.addresses import Addresses
from fleetform.spec.tree.cache import (
    Conditions,
    FilesAnswer,
    Kept,
    KeptFile,
    Outcome,
    ReadingCache,
    Row,
)
from fleetform.spec.tree.cache_format import (
    SUFFIX,
    path_of,
    read_parts,
    read_value,
    title_of,
    write_value,
)
from fleetform.spec.tree.whole import Input, Rows, Whole

__all__ = [
    "SIZE_MAX",
    "answer_read",
    "decode_documents",
    "decode_whole",
    "encode_documents",
    "encode_whole",
    "finding_read",
    "finding_written",
    "open_cache",
    "save_cache",
]


# Encode cached readings as JSON, and decode them.
#
# JSON, since nothing that is read from a disk should be able to do more than be wrong. It gives back
# what went in: texts, integers of any size, floats by their shortest spelling, the order of fields.
# `encode_documents` refuses what it would not. Positions in lists are named here and nowhere else.
#
# The ten thousand resources of a whole tree are columns, a list of names and one of digests: to read
# these takes a tenth of the time that ten thousand lists would.


def encode_documents(documents: Sequence[Kept]) -> bytes:
    """
    Raises:
        ValueError: Some value is none of JSON.
    """
    text = json.dumps(
        [_written(one) for one in documents],
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    # As they are, since two escaped halves of a pair would come back as one character.
    return text.encode("utf-8", "surrogatepass")


def decode_documents(body: bytes) -> list[Kept]:
    """
    Raises:
        ValueError: It is nothing that `encode_documents` has written.
    """
    try:
        return [_read(one) for one in json.loads(body.decode("utf-8", "surrogatepass"))]
    except (TypeError, KeyError, IndexError) as exc:
        raise ValueError(str(exc)) from exc


def _written(kept: Kept) -> list[Any]:
    outcome = kept.outcome
    same = len(outcome.documents) == 1 and outcome.documents[0] is outcome.shared
    return [
        kept.header,
        outcome.type,
        outcome.keys,
        _place(outcome.place),
        len(outcome.problems),
        [[_problem(problem), finding_written(found)] for problem, found in kept.findings.items()],
        outcome.is_read,
        outcome.shared,
        None if same else outcome.documents,
        outcome.rows,
        outcome.references,
        outcome.required,
        kept.conditions,
    ]


def _read(said: list[Any]) -> Kept:
    (header, type_name, keys, place, own, told, is_read,
     shared, documents, rows, references, needed, conditions) = said  # fmt: skip
    known = {_problem_of(problem): finding_read(found) for problem, found in told} if told else {}
    outcome = Outcome(
        type_name,
        tuple([ResourceKey(*key) for key in keys]),
        Place(*place),
        list(known)[:own] if own else (),
        is_read,
        False,
        shared,
        [shared] if documents is None else documents,
        [Row(*one) for one in rows],
        [Reference(*one) for one in references],
        None if needed is None else tuple([ResourceKey(*key) for key in needed]),
    )
    return Kept(
        header,
        outcome,
        _conditions(*conditions),
        known,
    )


def _conditions(values: str, spent: list[int], files: list[Any]) -> Conditions:
    elements, written, digested = spent
    answers = tuple([answer_read(answer) for answer in files])
    return Conditions(values, (elements, written, digested), answers)


def answer_read(said: list[Any]) -> FilesAnswer:
    """What was found for `files:`, as JSON has its tuples."""
    folder, entries, digest = said
    return FilesAnswer(folder, tuple((there, here) for there, here in entries), digest)


def _problem(one: Problem) -> list[Any]:
    return [one.code, one.path, one.detail, one.advice, one.level, one.at_key, one.word]


def _problem_of(said: list[Any]) -> Problem:
    code, path, detail, advice, level, at_key, word = said
    return Problem(code, tuple(path), detail, advice, Level(level), at_key, word)


def _place(one: Place) -> list[Any]:
    return [one.file, one.line, one.column, one.length]


def finding_written(one: Finding) -> list[Any]:
    """The lists that a finding is written as."""
    return [one.level, one.code, _place(one.place), one.detail, one.advice, one.address, one.text]


def finding_read(said: list[Any]) -> Finding:
    """The finding that was written so."""
    level, code, place, detail, advice, address, text = said
    return Finding(
        Level(level), code, SUMMARIES[code], Place(*place), detail, advice, address, text
    )


def encode_whole(whole: Whole) -> bytes:
    """
    Its files are not among it, except for documents that an overlay has made.

    Raises:
        TypeError: There is something in it that could not be read again.
        ValueError: Some value is none of JSON.
    """
    overlaid = encode_documents(whole.files[-1].documents).decode("utf-8", "surrogatepass")
    said = {
        "frame": write_value(whole.frame),
        "resources": _columns(whole.resources),
        "beyond": _columns(whole.beyond),
        "obstacles": write_value(dict(whole.obstacles)),
        "overlaid": overlaid,
        "findings": [finding_written(one) for one in whole.findings],
        "counts": [whole.documents_count, whole.files_count, whole.walked_count],
        "folders": whole.folders,
        "inputs": {path: list(one) for path, one in whole.inputs.items()},
        "answers": whole.answers,
        "addresses": write_value(tuple(whole.addresses)),
        "values": write_value(dict(whole.values)),
        "budget_left": whole.budget_left,
        "flags": [whole.is_alone, whole.has_disputes],
        "claims": whole.claims,
    }
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def decode_whole(data: bytes, files: Sequence[KeptFile]) -> Whole:
    """
    What was encoded; `files` are the readings that were kept with it, in the same order.

    Raises:
        ValueError, TypeError, KeyError, IndexError: It is nothing that `encode_whole` has written.
    """
    said = json.loads(data.decode("utf-8", "surrogatepass"))
    overlaid = said["overlaid"].encode("utf-8", "surrogatepass")
    documents_count, files_count, walked_count = said["counts"]
    is_alone, has_disputes = said["flags"]
    elements, written, digested = said["budget_left"]
    return Whole(
        read_value(said["frame"]),
        _columns_read(said["resources"]),
        _columns_read(said["beyond"]),
        read_value(said["obstacles"]),
        (*files, KeptFile("", "", "", decode=partial(decode_documents, overlaid))),
        tuple([finding_read(one) for one in said["findings"]]),
        documents_count,
        files_count,
        tuple(said["folders"]),
        walked_count,
        {path: Input(*one) for path, one in said["inputs"].items()},
        tuple([answer_read(one) for one in said["answers"]]),
        Addresses(*read_value(said["addresses"])),
        read_value(said["values"]),
        (elements, written, digested),
        is_alone,
        has_disputes,
        said["claims"],
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
"""Bytes of all trees' files together; beyond, those that were written longest ago go."""

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
    """Write down what was learned, if anything was."""
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
    """Whose the tree is, for those who want to know nothing else of it."""
    assert cache.whole is not None, "it is written too"
    # What it inherits would be among its rules.
    if len(cache.whole.folders) > 1:
        return b""
    said = {
        "sha256": cache.whole.inputs[FILE_NAME].sha256,
        "environment": write_value(cache.whole.frame.environment),
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
