"""
How a job ended, as its supervisor writes it for whoever comes later.

The slot is allocated when the job is prepared and written once, so a full disk cannot lose an
outcome. A power cut can leave half of it: length and checksum tell, and half a result is none.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import NamedTuple

SLOT_BYTES = 4096
"""One block of most file systems: 400 bytes of numbers, and a message that is cut to fit."""

_MESSAGE_CHARACTERS_MAX = 1000
"""A sentence with a path in it; whoever needs more reads the log."""


class Result(NamedTuple):
    """
    One job's end. `cause` is a value of `states.Cause`; times are Unix milliseconds.

    `log_bytes` counts all that the job wrote, also what the log's budget dropped.
    """

    job_uid: str
    key: tuple[str, int, int]
    gen: int
    digest: str
    cause: str
    exit_code: int | None
    signal: int | None
    message: str
    started_at_ms: int
    finished_at_ms: int
    peak_memory_bytes: int | None
    cpu_time_ms: int | None
    log_bytes: int


def encode(result: Result) -> bytes:
    """Return the content of a slot: checksum, length and JSON in ASCII, each on its line."""
    cut = result._replace(message=result.message[:_MESSAGE_CHARACTERS_MAX])
    body = _encode(cut._asdict()).encode("ascii")
    content = b"%08x %d\n%s\n" % (zlib.crc32(body), len(body), body)
    if len(content) > SLOT_BYTES:
        # Emoji of 12 escaped bytes each, say. Numbers and cause matter more than the sentence.
        return encode(result._replace(message=result.message[: len(result.message) // 2]))
    return content


_encode = json.JSONEncoder(separators=(",", ":")).encode


def decode(content: bytes) -> Result | None:
    """Read a slot; None when nothing whole has been written into it."""
    head, _, rest = content.partition(b"\n")
    checksum, _, length = head.partition(b" ")
    try:
        body = rest[: int(length)]
        if len(body) != int(length) or zlib.crc32(body) != int(checksum, 16):
            return None
        fields = json.loads(body)
        run_uid, attempt, rank = fields.pop("key")
        return Result(key=(run_uid, attempt, rank), **fields)
    except (ValueError, KeyError, TypeError):
        return None


def allocate(path: str) -> None:
    """Make an empty slot whose space on the disk is ours; raises OSError when there is none."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, SLOT_BYTES)
    finally:
        os.close(descriptor)


def write(path: str, result: Result) -> None:
    """Fill the slot and wait until it is on the disk."""
    content = encode(result)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, content, 0)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def read(path: str) -> Result | None:
    """Return what the slot holds; None when it is missing, empty or half written."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return decode(os.pread(descriptor, SLOT_BYTES, 0))
    except OSError:
        return None
    finally:
        os.close(descriptor)
