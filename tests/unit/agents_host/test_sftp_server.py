"""The SFTP server with packets: what clients of OpenSSH do not send, or hide. They test the rest."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import pytest

from fleetform.agents.host import sftp_server
from fleetform.agents.host.sftp_server import Server

INIT = struct.pack(">BI", 1, 3)
STATUS, HANDLE, NAME, ATTRS = 101, 102, 104, 105


def text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def answers(*packets: bytes) -> list[bytes]:
    """Serve packets, and return what is answered, without lengths."""
    source = io.BytesIO(b"".join(map(text, packets)))
    target = io.BytesIO()
    assert Server(source, target).serve() == 0
    data, found = target.getvalue(), []
    while data:
        (size,) = struct.unpack(">I", data[:4])
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


def request(kind: int, *parts: bytes, number: int = 7) -> bytes:
    return struct.pack(">BI", kind, number) + b"".join(parts)


def status(answer: bytes) -> int:
    assert answer[0] == STATUS, answer
    assert answer[1:5] == struct.pack(">I", 7)
    return int.from_bytes(answer[5:9], "big")


def test_it_says_what_it_has() -> None:
    """Version 3, with the extensions of OpenSSH that clients ask for."""
    (hello,) = answers(INIT)
    assert hello[:5] == struct.pack(">BI", 2, 3)
    assert text(b"posix-rename@openssh.com") + text(b"1") in hello


def test_a_request_that_is_wrong_is_answered(tmp_path: Path) -> None:
    """Unknown kinds, packets that are cut, handles that are none, and paths with a NUL."""
    path = os.fsencode(tmp_path)
    found = answers(
        INIT,
        request(99),
        request(200, text(b"never@heard.of")),
        request(17, struct.pack(">I", 100) + b"short"),
        request(4, text(b"12")),
        request(12, text(b"12")),
        request(17, text(b"a\0b")),
        request(17, text(path + b"/missing")),
        request(18, text(path), text(path)),
    )[1:]
    assert [status(one) for one in found] == [8, 8, 5, 4, 4, 5, 2, 4]


def test_a_directory_comes_in_parts_and_ends(tmp_path: Path) -> None:
    """A hundred names at a time; the end is a status."""
    for number in range(130):
        (tmp_path / f"{number}").touch()
    opened = answers(INIT, request(11, text(os.fsencode(tmp_path))))[1]
    assert opened[0] == HANDLE
    handle = opened[5:]
    found = answers(
        INIT,
        request(11, text(os.fsencode(tmp_path))),
        *[request(12, handle)] * 3,
        request(4, handle),
    )[2:]
    counts = [int.from_bytes(one[5:9], "big") for one in found[:2]]
    assert ([one[0] for one in found[:2]], sorted(counts)) == ([NAME, NAME], [30, 100])
    assert [status(one) for one in found[2:]] == [1, 0]


def test_times_of_a_link_are_its_own(tmp_path: Path) -> None:
    """`lsetstat` does not follow; SETSTAT does."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("x" * 10)
    link.symlink_to(target)
    times = struct.pack(">III", 8, 1000, 2000)
    size = struct.pack(">IQ", 1, 4)
    found = answers(
        INIT,
        request(200, text(b"lsetstat@openssh.com"), text(os.fsencode(link)), times),
        request(9, text(os.fsencode(link)), size),
    )[1:]
    assert [status(one) for one in found] == [0, 0]
    assert link.lstat().st_mtime == 2000
    assert target.stat().st_mtime != 2000
    assert target.read_text() == "xxxx"


def test_a_packet_without_end_is_refused() -> None:
    """A length beyond any packet is noise: nothing of it is read."""
    with pytest.raises(SystemExit, match="too long"):
        Server(io.BytesIO(struct.pack(">I", 1 << 30)), io.BytesIO()).serve()


def test_handles_are_limited(tmp_path: Path, monkeypatch) -> None:
    """More than a few are an error of the request, not of the server."""
    monkeypatch.setattr(sftp_server, "_HANDLES_MAX", 2)
    asked = request(11, text(os.fsencode(tmp_path)))
    kinds = [one[0] for one in answers(INIT, asked, asked, asked)[1:]]
    assert kinds == [HANDLE, HANDLE, STATUS]
