"""
Find the cache file of a tree, and decide whether its bytes are believed.

The file is a line with the length and the checksum of each part, then the parts. Bytes are believed
that this version of the language has written, in a file that no other user can write.

A reading is only good for the code that made it, and while that code is being written its version
number says nothing. So the version of the language is a digest over the sources of this package and
of the libraries that take part in reading. They are looked at and not read: reading a hundred and
fifty files takes as long as all the rest of a small tree.

Values of `spec.desired` are written as JSON by the names of their classes. Only classes of that
module are ever made, so that what comes from a disk can be wrong and nothing worse. Any other is
refused when it is written: then nothing is kept, and nothing is lost but time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fleetform.spec import desired
from fleetform.spec.desired import Environment
from fleetform.spec.identity import FILE_NAME

__all__ = [
    "SUFFIX",
    "kept_environment",
    "language_version",
    "path_of",
    "read_parts",
    "read_value",
    "title_of",
    "write_value",
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
    All parts; none where there is no such file, or one that is not believed.

    Raises:
        ValueError: Its first line is none of ours.
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
    """The environment at `root` as it was read last, if its file says the same still."""
    from fleetform.spec.findings import Finding
    from fleetform.spec.tree.walk import read_file

    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError, RecursionError):
        said = _head(path_of(folder, root))
        data = read_file(root, FILE_NAME)
        if isinstance(data, Finding) or hashlib.sha256(data).hexdigest() != said["sha256"]:
            return None
        environment = read_value(said["environment"])
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
    """Length and checksum of each part, as the first line says them; none of another version."""
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

    Asked once a process, before the first reading: whoever edits the code of a process that runs
    has it written down under the version that the process is.
    """
    digest = hashlib.sha256(sys.version.encode())
    sources = sorted(_sources(_PACKAGE))
    # When a file was changed last is the system's own word, which no editor and no copy can set. Only
    # where all of them say the same, as in some images, it says nothing.
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
            if entry.name.endswith((".py", ".toml")):
                yield prefix + entry.name, entry.path, entry.stat()
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _sources(entry.path, f"{prefix}{entry.name}/")


def _library_look(name: str) -> str:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return "none"
    looks = (path.stat() for path in (Path(spec.origin), Path(spec.origin).parent))
    return f"{spec.origin} " + " ".join(f"{one.st_ino} {one.st_ctime_ns}" for one in looks)


_CLASSES: Mapping[str, type[Any]] = {
    name: one
    for name, one in vars(desired).items()
    if isinstance(one, type) and one.__module__ == desired.__name__
}
_PLAIN = frozenset({str, int, float, bool, type(None)})
_TUPLE, _LIST, _SET, _DICT = "()", "[]", "{}", "{:}"


def write_value(value: Any) -> Any:
    """
    Raises:
        TypeError: Something in it is of no class that could be read again.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return [_TUPLE, *map(write_value, value)]
    if kind is list:
        return [_LIST, *map(write_value, value)]
    if kind is frozenset:
        return [_SET, *map(write_value, sorted(value))]
    if kind is dict:
        return [_DICT, *([write_value(key), write_value(item)] for key, item in value.items())]
    if _CLASSES.get(kind.__name__) is not kind:
        raise TypeError(f"{kind.__name__} is no value that is kept")
    if is_dataclass(value):
        return [kind.__name__, *(write_value(getattr(value, one.name)) for one in fields(value))]
    return [kind.__name__, *map(write_value, value)]


def read_value(said: Any) -> Any:
    """
    The value that was written.

    Raises:
        KeyError: It names a class that is none of these.
        TypeError: It is nothing that `write_value` has written.
    """
    if type(said) is not list:
        return said
    tag, *items = said
    if tag == _TUPLE:
        return tuple(map(read_value, items))
    if tag == _LIST:
        return list(map(read_value, items))
    if tag == _SET:
        return frozenset(map(read_value, items))
    if tag == _DICT:
        return {read_value(key): read_value(item) for key, item in items}
    return _CLASSES[tag](*map(read_value, items))
