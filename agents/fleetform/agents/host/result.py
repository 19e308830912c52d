"""
How a job ended, as its supervisor writes it for a later agent.

The slot is allocated when the job is prepared and written once, so a full disk cannot lose an
outcome. A power cut can leave half of it: length and checksum tell, and half a result is none.
Lines of text rather than JSON: the encoder's pages, touched anew in every supervisor, would
cost a tenth of a short job.
"""

from __future__ import annotations

import os
import zlib
from typing import Any, NamedTuple

SLOT_BYTES = 4096
"""One block of most file systems: some 400 bytes of numbers, and a message that is cut to fit."""

_MESSAGE_BYTES_MAX = 2048
"""A sentence with a path in it; the log has more."""


class Result(NamedTuple):
    """
    One job's end. `cause` is a value of `states.Cause`; times are Unix milliseconds.

    `log_bytes` counts all that the job wrote, also what the log's budget dropped.
    """

    job_uid: str
    run_uid: str
    attempt: int
    rank: int
    gen: int
    digest: str
    cause: str
    exit_code: int | None
    signal: int | None
    started_at_ms: int
    finished_at_ms: int
    peak_memory_bytes: int | None
    cpu_time_ms: int | None
    log_bytes: int
    message: str


_TEXTS = frozenset({"job_uid", "run_uid", "digest", "cause", "message"})

_NONE = "-"


def encode(result: Result) -> bytes:
    """Return the content of a slot: checksum and length, then a line `name value` a field."""
    lines = [f"{n} {_NONE if v is None else v}" for n, v in zip(result._fields[:-1], result)]
    body = "\n".join(lines).encode("ascii")
    if result.message:
        # Escaped, it is one line of ASCII whatever it says.
        body += b"\nmessage " + result.message.encode("unicode_escape")[:_MESSAGE_BYTES_MAX]
    return b"%08x %d\n%s\n" % (zlib.crc32(body), len(body), body)


def decode(content: bytes) -> Result | None:
    """Read a slot; None when nothing whole has been written into it."""
    head, _, rest = content.partition(b"\n")
    checksum, _, length = head.partition(b" ")
    try:
        body = rest[: int(length)]
        if len(body) != int(length) or zlib.crc32(body) != int(checksum, 16):
            return None
        lines = body.decode("ascii").split("\n")
        fields: dict[str, Any] = dict(map(_read_field, lines))
        return Result(**{"message": "", **fields})
    except (ValueError, TypeError):
        return None


def _read_field(line: str) -> tuple[str, str | int | None]:
    name, _, value = line.partition(" ")
    if name == "message":
        # A cut may have split an escape; what is left of it says nothing.
        return name, value.encode("ascii").decode("unicode_escape", "ignore")
    if name in _TEXTS:
        return name, value
    return name, None if value == _NONE else int(value)


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
    assert len(content) <= SLOT_BYTES, "a result outgrew its slot"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, content, 0)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def read(path: str, job_uid: str) -> Result | None:
    """
    Return what the slot says of this job; None when it is missing, empty or half written.

    A slot is used again without being emptied, so what it says of another job is nothing.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = decode(os.pread(descriptor, SLOT_BYTES, 0))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return found if found is not None and found.job_uid == job_uid else None
