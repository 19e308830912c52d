"""
Find the cache file of a configuration, and decide whether to trust its bytes.

The file begins with a line that has the length and the checksum of each part; the parts follow. Bytes are
trusted if this version of the language wrote them, in a file that no other user can write.

A reading is valid only for the code that made it, and the version number does not change while that code
is being written. So the version of the language is a digest over the sources of this package and
of the libraries that take part in reading. Their times and sizes are compared, not their content: reading
a hundred and fifty files takes as long as all the rest of a small configuration.

Values are written as JSON by the annotations of their classes, and read back by these: what comes from
a disk can be wrong and nothing worse. What JSON does not have is refused when it is written: then
nothing is kept, and nothing is lost but time.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import json
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from fleetform.spec.desired import FILE_NAME, Environment

__all__ = [
    "SUFFIX",
    "Codec",
    "codec",
    "kept_environment",
    "language_version",
    "path_of",
    "read_parts",
    "title_of",
]


SUFFIX = ".readings"

# A tree of a hundred thousand documents takes some fifty megabytes.
_SIZE_MAX = 256 * 2**20
_TITLE_MAX = 300
# The first part has the environment and nothing else.
_HEAD_MAX = 16 * 2**10
_MAGIC = b"fleetform readings 5 "


def path_of(folder: Path, root: Path) -> Path:
    """The file in `folder` for the tree at `root`."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
    return folder / f"{name}{SUFFIX}"


def title_of(parts: Sequence[bytes]) -> bytes:
    """The line that goes in front of these parts."""
    sums = " ".join(f"{len(one)} {zlib.crc32(one)}" for one in parts)
    return b"%s%s %s\n" % (_MAGIC, language_version().encode(), sums.encode())


def read_parts(path: Path) -> list[bytes]:
    """
    Return all parts; none where there is no such file, or one that is not trusted.

    Raises:
        ValueError: Its first line was written by something else.
    """
    data = _read_own(path, _SIZE_MAX)
    sums = _sums(data)
    parts, at = [], data.find(b"\n") + 1
    for length, _ in sums:
        parts.append(data[at : at + length])
        at += length
    is_whole = all(zlib.crc32(part) == crc for part, (_, crc) in zip(parts, sums, strict=True))
    return parts if is_whole and at == len(data) else []


def kept_environment(folder: Path, root: Path) -> Environment | None:
    """Return the environment at `root` as it was last read, if its file has not changed."""
    from fleetform.spec.findings import Finding
    from fleetform.spec.tree.walk import read_file

    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError, RecursionError):
        said = _head(path_of(folder, root))
        data = read_file(root, FILE_NAME)
        if isinstance(data, Finding) or hashlib.sha256(data).hexdigest() != said["sha256"]:
            return None
        environment = codec(Environment).read(said["environment"])
        return environment if isinstance(environment, Environment) else None
    return None


def _head(path: Path) -> dict[str, Any]:
    data = _read_own(path, _HEAD_MAX)
    sums = _sums(data)
    at = data.find(b"\n") + 1
    length, crc = sums[0]
    head = data[at : at + length]
    if zlib.crc32(head) != crc:
        raise ValueError("cut off, or altered")
    said: dict[str, Any] = json.loads(head)
    return said


def _sums(data: bytes) -> list[tuple[int, int]]:
    """Return length and checksum of each part, from the first line of a file of this version."""
    title, _, _ = data[:_TITLE_MAX].partition(b"\n")
    if not title.startswith(_MAGIC):
        raise ValueError("not ours")
    version, *numbers = title[len(_MAGIC) :].decode().split(" ")
    if version != language_version():
        raise ValueError("written by another version")
    said = [int(one) for one in numbers]
    return list(zip(said[::2], said[1::2], strict=True))


def _read_own(path: Path, size_max: int) -> bytes:
    """The file's first bytes, unless another user could have written them."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        is_own = stat.S_ISREG(seen.st_mode) and seen.st_uid == os.geteuid()
        if not is_own or seen.st_mode & 0o022:
            return b""
        with contextlib.suppress(OSError):
            return file.read(size_max)
    return b""


# What turns bytes into events and values into models. Their files are not read: an installer
# makes the folder anew, and never writes into a file of it.
_LIBRARIES = ("yaml", "pydantic", "pydantic_core")
_PACKAGE = Path(__file__).parents[1]


@functools.cache
def language_version() -> str:
    """
    A digest in hex over all that a reading depends on besides the tree.

    Computed once a process, before the first reading: if the code is edited while the process runs,
    its readings are stored under the version that the process has.
    """
    digest = hashlib.sha256(sys.version.encode())
    sources = sorted(_sources(_PACKAGE))
    # The system sets the time of a change, and no editor and no copy can. Only where all files have
    # the same time, as in some images, it tells nothing.
    is_telling = len({seen.st_ctime_ns for _, _, seen in sources}) > 1
    for name, path, seen in sources:
        if is_telling:
            look = (
                f"{seen.st_dev} {seen.st_ino} {seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns}"
            )
        else:
            look = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        digest.update(f"\n{name} {look}".encode())
    for library in _LIBRARIES:
        digest.update(f"\n{library} {_library_look(library)}".encode())
    return digest.hexdigest()


def _sources(folder: Path | str, prefix: str = "") -> Iterator[tuple[str, str, os.stat_result]]:
    """Each source by its name in the package, its path, and what the system says of it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            # Tables that models and advice are made from are sources as well.
            if entry.name.endswith((".py", ".toml", ".csv")):
                yield prefix + entry.name, entry.path, entry.stat()
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _sources(entry.path, f"{prefix}{entry.name}/")


def _library_look(name: str) -> str:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return "none"
    looks = (path.stat() for path in (Path(spec.origin), Path(spec.origin).parent))
    return f"{spec.origin} " + " ".join(f"{one.st_ino} {one.st_ctime_ns}" for one in looks)


class Codec(NamedTuple):
    """How values of one type are written as JSON, and read back from it."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


_PLAIN = Codec(lambda value: value, lambda said: said)


@functools.cache
def codec(kind: Any) -> Codec:
    """
    The codec of a type, by its annotation: a class is written as the list of its fields.

    Scalars and JSON values stand for themselves. Only classes that the annotation names are ever made.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        some = [codec(one) for one in arguments if one is not NoneType]
        return _optional(some[0]) if len(some) == 1 else _PLAIN
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _listed(tuple(map(codec, arguments)), iter, tuple)
    if origin in {tuple, frozenset, Sequence}:
        item = codec(arguments[0])
        made = list if origin is Sequence else origin
        ordered = sorted if origin is frozenset else iter
        return Codec(
            lambda values: [item.write(one) for one in ordered(values)],
            lambda said: made([item.read(one) for one in said]),
        )
    if origin is Mapping and set(map(codec, arguments)) != {_PLAIN}:
        key, value = map(codec, arguments)
        return Codec(
            lambda values: [[key.write(one), value.write(two)] for one, two in values.items()],
            lambda said: {key.read(one): value.read(two) for one, two in said},
        )
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return Codec(_PLAIN.write, kind)
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, tuple)):
        hints = get_type_hints(kind)
        values = attrgetter(*hints)
        return _listed(tuple(map(codec, hints.values())), values, lambda said: kind(*said))
    return _PLAIN


def _optional(inner: Codec) -> Codec:
    return Codec(
        lambda value: None if value is None else inner.write(value),
        lambda said: None if said is None else inner.read(said),
    )


def _listed(
    parts: Sequence[Codec], values: Callable[[Any], Iterable[Any]], made: Callable[[Any], Any]
) -> Codec:
    """The codec of what has parts of several types: `values` gives them, and `made` puts them together."""
    return Codec(
        lambda value: [one.write(part) for one, part in zip(parts, values(value), strict=True)],
        lambda said: made([one.read(part) for one, part in zip(parts, said, strict=True)]),
    )
