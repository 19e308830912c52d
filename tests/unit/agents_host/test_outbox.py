"""In which order things are said on a connection, and what waits."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetform.agents.host.joblog import Writer
from fleetform.agents.host.outbox import Outbox
from fleetform.agents.protocol.channels import Credit
from fleetform.agents.protocol.frames import Decoder
from fleetform.agents.protocol.link import LOG_CHANNEL, WINDOW_MIN_BYTES
from fleetform.agents.protocol.messages import LogData, Reply


class Line:
    """The other end: decodes what was written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[bytes] = []
        self.outbox = Outbox(self.said.append, str(folder))

    def output_of(self, uid: str, data: bytes) -> None:
        (self.folder / uid).mkdir()
        writer = Writer(str(self.folder / uid / "log"), head_bytes=1 << 20, tail_bytes=1 << 20)
        writer.write(data)
        writer.close()

    def messages(self) -> list[object]:
        while self.outbox.pump():
            pass
        self.outbox.flush()
        return list(Decoder().feed(b"".join(self.said)))


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    line = Line(tmp_path)
    yield line
    line.outbox.close()


def data_of(messages: list[object]) -> bytes:
    return b"".join(base64.b64decode(m.data) for m in messages if isinstance(m, LogData))


def test_output_follows_the_end(line: Line) -> None:
    """What is said of the end leaves at once; the last piece of the output says that it is complete."""
    line.output_of("job-a", b"x" * 700_000)
    line.outbox.follow("job-a", 0)
    line.outbox.say(Reply(1, True))
    line.outbox.end("job-a", 700_000)
    assert line.outbox.owes_output
    messages = line.messages()
    assert isinstance(messages[0], Reply)
    assert data_of(messages) == b"x" * 700_000
    pieces = [m for m in messages if isinstance(m, LogData)]
    assert [piece.complete for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert not line.outbox.owes_output


def test_output_waits_for_credit(line: Line) -> None:
    """No more than the window leaves without it, and answers do not wait."""
    line.output_of("job-a", b"x" * 700_000)
    line.outbox.limit_output()
    line.outbox.follow("job-a", 0)
    line.outbox.end("job-a", 700_000)
    line.outbox.say(Reply(1, True))
    heard = line.messages()
    assert Reply(1, True) in heard
    sent = sum(len(m.data) for m in heard if isinstance(m, LogData))
    assert WINDOW_MIN_BYTES <= sent < WINDOW_MIN_BYTES * 2
    while line.outbox.owes_output:
        line.outbox.credit(Credit(LOG_CHANNEL, WINDOW_MIN_BYTES))
        heard = line.messages()
    assert data_of(heard) == b"x" * 700_000


def test_no_output(line: Line) -> None:
    """A job without output is complete at once."""
    line.outbox.follow("job-a", 0)
    line.outbox.end("job-a", 0)
    assert line.messages() == [LogData("job-a", 0, "", complete=True)]


def test_lost_output(line: Line) -> None:
    """Output that is not there is told by the offset of the last piece."""
    line.output_of("job-a", b"x" * 10)
    line.outbox.follow("job-a", 0)
    line.outbox.end("job-a", 500)
    messages = line.messages()
    assert data_of(messages) == b"x" * 10
    assert messages[-1] == LogData("job-a", 500, "", complete=True)


def test_paused(line: Line) -> None:
    """While the other side does not read, output waits and answers do not."""
    line.output_of("job-a", b"late")
    line.outbox.follow("job-a", 0)
    line.outbox.paused = True
    line.outbox.say(Reply(1, True))
    assert line.messages() == [Reply(1, True)]
    line.outbox.paused = False
    assert data_of(line.messages()) == b"late"


def test_from_an_offset(line: Line) -> None:
    """Following from an offset sends what comes after it, once."""
    line.output_of("job-a", b"0123456789")
    line.outbox.follow("job-a", 4)
    assert data_of(line.messages()) == b"456789"
    line.outbox.touch("job-a")
    assert data_of(line.messages()) == b"456789"


def test_jobs_take_turns(line: Line) -> None:
    """A loud job does not keep a quiet one waiting until it is through."""
    line.output_of("job-a", b"a" * 2_000_000)
    line.output_of("job-b", b"b")
    line.outbox.follow("job-a", 0)
    line.outbox.follow("job-b", 0)
    order = [m.job_uid for m in line.messages() if isinstance(m, LogData)]
    assert order.index("job-b") == 1


def test_closed(line: Line) -> None:
    """Nothing is owed to a connection that is gone, and nothing breaks."""
    line.output_of("job-a", b"x")
    line.outbox.follow("job-a", 0)
    line.outbox.end("job-a", 1)
    line.outbox.close()
    assert not line.outbox.owes_output
    line.outbox.end("job-unknown", 0)
    assert line.messages() == []
