"""
The file that keeps what is known of a tree: where it lies, and whether its bytes are believed.

A line with the length and the checksum of each part, then the parts. Bytes are believed that this
version of the language has written, in a file that nobody else can write.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fleetform.spec.desired import Environment
from fleetform.spec.identity import FILE_NAME
from fleetform.spec.tree.language import language_version
from fleetform.spec.tree.tagged import read_value

__all__ = ["SUFFIX", "kept_environment", "path_of", "read_parts", "title_of"]

SUFFIX = ".readings"

# A tree of a hundred thousand documents takes some fifty megabytes.
_SIZE_MAX = 256 * 2**20
_TITLE_MAX = 300
# The first part has the environment and nothing else.
_HEAD_MAX = 16 * 2**10
_MAGIC = b"fleetform readings 4 "


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
    """The file's first bytes, unless somebody else could have written them."""
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
