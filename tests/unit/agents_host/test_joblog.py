"""Output on disk: what is kept, where it lies, and what readers see meanwhile."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.agents.host import joblog, kernel
from fleetform.agents.host.joblog import Reader, Writer

# None is zero, and no two neighbourhoods are alike.
_PATTERN = bytes((n * 7 + n // 256) % 255 + 1 for n in range(255 * 256)) * 30


def content(begin: int, length: int) -> bytes:
    """Bytes that say where they belong."""
    return _PATTERN[begin : begin + length]


def read_all(path: Path, offset: int = 0, *, bytes_max: int = 1 << 20) -> list[tuple[int, bytes]]:
    reader = Reader(str(path))
    pieces = []
    while (piece := reader.read(offset, bytes_max)) is not None:
        pieces.append((piece.offset, piece.data))
        offset = piece.offset + len(piece.data)
    reader.close()
    return pieces


def write(path: Path, sizes: list[int], **budgets: int) -> Writer:
    writer = Writer(str(path), **{"head_bytes": 8192, "tail_bytes": 65536, **budgets})
    for size in sizes:
        writer.write(content(writer.total_bytes, size))
    return writer


def test_no_output_no_file(tmp_path: Path) -> None:
    """A job that writes nothing leaves no file."""
    write(tmp_path / "log", []).close()
    assert not (tmp_path / "log").exists()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(
    sizes=st.lists(st.integers(1, 40_000), max_size=30),
    head=st.sampled_from([0, 1, 4096, 10_000]),
    tail=st.sampled_from([0, 4096, 65_536]),
    bytes_max=st.sampled_from([1000, 4096, 1 << 20]),
)
def test_head_and_tail_are_kept(
    tmp_path: Path, sizes: list[int], head: int, tail: int, bytes_max: int
) -> None:
    """Every byte read is the one written there; head and tail are whole; space is bounded."""
    path = tmp_path / "log"
    path.unlink(missing_ok=True)
    path.touch()
    writer = write(path, sizes, head_bytes=head, tail_bytes=tail)
    total = sum(sizes)
    writer.close()
    assert writer.total_bytes == total
    pieces = read_all(path, bytes_max=bytes_max)
    assert all(data == content(offset, len(data)) for offset, data in pieces)
    assert _covered(pieces, 0, min(head, total))
    assert _covered(pieces, max(total - tail, 0), total)
    # A step and the blocks at both borders come on top.
    assert (
        sum(len(data) for _, data in pieces)
        <= head + tail + max(tail // 16, 4096) + 4 * 4096 + (sizes or [0])[-1]
    )


def _covered(pieces: list[tuple[int, bytes]], begin: int, end: int) -> bool:
    for offset, data in pieces:
        if offset <= begin < offset + len(data):
            begin = offset + len(data)
    return begin >= end


def test_failed_writes_leave_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written is missing, not zeros, and what comes later is at its place."""
    path = tmp_path / "log"
    writer = write(path, [5000])
    real = joblog.os.pwrite

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(joblog.os, "pwrite", full)
    writer.write(content(5000, 10_000))
    monkeypatch.setattr(joblog.os, "pwrite", real)
    writer.write(content(15_000, 10_000))
    writer.close()
    assert writer.total_bytes == 25_000
    pieces = read_all(path)
    assert pieces[-1][0] + len(pieces[-1][1]) == 25_000
    resumed = next(offset for offset, _ in pieces if offset > 5000)
    assert resumed == 16_384
    data = dict(pieces)[resumed]
    assert data == content(resumed, len(data))


def test_without_holes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where holes cannot be punched, what comes after head and tail is dropped and counted."""

    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(kernel, "punch_hole", refuse)
    path = tmp_path / "log"
    writer = write(path, [20_000] * 20)
    writer.close()
    assert writer.total_bytes == 400_000
    assert path.stat().st_size < 120_000
    ((offset, data),) = read_all(path)
    assert (offset, data[:73_000]) == (0, content(0, 73_000))


def test_reader_goes_on(tmp_path: Path) -> None:
    """A reader at the end gets what is written afterwards."""
    path = tmp_path / "log"
    writer = write(path, [100])
    reader = Reader(str(path))
    assert reader.read(0, 60) == (0, content(0, 60))
    assert reader.read(60, 60) == (60, content(60, 40))
    assert reader.read(100, 60) is None
    writer.write(content(100, 5))
    assert reader.read(100, 60) == (100, content(100, 5))
    writer.close()
    reader.close()
