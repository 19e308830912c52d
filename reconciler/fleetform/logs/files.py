"""
The port `LogStore` on files: one sparse file a job, whose offsets are those of the job.

    <run uid>/<attempt>-<rank>.log        what came; a hole where output was dropped
    <run uid>/<attempt>-<rank>.gaps       one line a hole: begin and end; seldom there
    <run uid>/<attempt>-<rank>.complete   there once all has come

The file's length is how much output has arrived, so a host is asked to go on from
there, and what comes twice is written once. A gap is noted before the data behind it: a reader
that learns the length first and the gaps next never takes a hole for output. Nothing is
synced: a power cut may cost the last seconds of output and no run's outcome, which the ledger
has; a sync a job would cost a thousand short jobs several seconds.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from fleetform.spec.private_folder import make_private_folder


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes from `begin` to before `end` were dropped by a budget on the host."""

    begin: int
    end: int


class FileLogStore:
    """All jobs' output of one environment, below one folder; safe for many readers."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)

    def size(self, run_uid: str, attempt: int, rank: int) -> int:
        """Return the offset from which on output is lacking."""
        return _length(self._path(run_uid, attempt, rank) + ".log")

    def is_complete(self, run_uid: str, attempt: int, rank: int) -> bool:
        return Path(self._path(run_uid, attempt, rank) + ".complete").exists()

    def append(
        self, run_uid: str, attempt: int, rank: int, offset: int, data: bytes, *, complete: bool
    ) -> None:
        """Write a piece; bytes that were written before are passed over."""
        path = self._path(run_uid, attempt, rank)
        make_private_folder(Path(path).parent)
        known = _length(path + ".log")
        if offset > known:
            _append(path + ".gaps", f"{known} {offset}\n".encode())
        if offset > known or offset + len(data) > known:
            _write_at(path + ".log", offset, data)
        if complete:
            _append(path + ".complete", b"")

    def read(
        self, run_uid: str, attempt: int, rank: int, offset: int, limit_bytes: int
    ) -> tuple[bytes, int]:
        """
        Read from `offset` to the next gap, the end, or `limit_bytes`, whichever is first.

        At a gap its line is returned, on its own, with the offset behind it. Nothing and the
        same offset come back where there is nothing yet.
        """
        path = self._path(run_uid, attempt, rank)
        end = min(_length(path + ".log"), offset + limit_bytes)
        if end <= offset:
            return b"", offset
        for gap in _gaps(path + ".gaps"):
            if gap.begin <= offset < gap.end:
                return _gap_line(path + ".log", gap), gap.end
            if offset < gap.begin:
                end = min(end, gap.begin)
        data = _read_at(path + ".log", offset, end - offset)
        return data, offset + len(data)

    def _path(self, run_uid: str, attempt: int, rank: int) -> str:
        assert run_uid.isalnum(), f"{run_uid!r} is no uid and might lead out of the folder"
        return f"{self._root}/{run_uid}/{attempt}-{rank}"


def _gap_line(path: str, gap: Gap) -> bytes:
    """Say what a gap has swallowed, on a line of its own."""
    before = _read_at(path, gap.begin - 1, 1) if gap.begin else b"\n"
    line = f"[… {_amount(gap.end - gap.begin)} of output dropped …]\n"
    return (b"" if before == b"\n" else b"\n") + line.encode()


def _amount(size_bytes: int) -> str:
    """Say a size as people do: `999 bytes`, `1.2 MB`."""
    if size_bytes < 1000:
        return f"{size_bytes} byte{'' if size_bytes == 1 else 's'}"
    tenths, unit = size_bytes // 100, "kB"
    for larger in ("MB", "GB", "TB"):
        if tenths < 10_000:
            break
        tenths, unit = tenths // 1000, larger
    return f"{tenths // 10}.{tenths % 10} {unit}"


def _gaps(path: str) -> tuple[Gap, ...]:
    """
    Read the gaps in order of offset.

    A crash may have noted one twice, and later with a nearer end; the last word counts. A
    torn last line is one whose data never came.
    """
    try:
        lines = Path(path).read_text("ascii").split("\n")[:-1]
    except FileNotFoundError:
        return ()
    by_begin = {}
    for line in lines:
        begin, end = map(int, line.split())
        by_begin[begin] = Gap(begin, end)
    return tuple(by_begin[begin] for begin in sorted(by_begin))


# -- files by plain calls: a thousand short jobs end within a second or two --------------------


def _length(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0


def _append(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _write_at(path: str, offset: int, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_size < offset:
            os.ftruncate(descriptor, offset)
        view = memoryview(data)
        while view:
            written = os.pwrite(descriptor, view, offset)
            view, offset = view[written:], offset + written
    finally:
        os.close(descriptor)


def _read_at(path: str, offset: int, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, size, offset)
    finally:
        os.close(descriptor)
