"""Connections on real sockets: who waits too long, who makes room, and what a log takes."""

from __future__ import annotations

import asyncio
import errno
import itertools
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fleetform.api import server as under_test
from fleetform.api.server import Connections, LogLimit, accept_forever, make_connections

PATIENCE_SECONDS = 60.0
REQUEST = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
LARGE = b"x" * 20_000_000
MAY_ANSWER = threading.Event()


async def app(scope, receive, send):
    """Answers at once; `/large` with more than all buffers on the way hold, `/slow` once it may."""
    if scope["path"] == "/slow":
        await asyncio.to_thread(MAY_ANSWER.wait, PATIENCE_SECONDS)
    body = LARGE if scope["path"] == "/large" else b"state"
    length = str(len(body)).encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]}
    )
    await send({"type": "http.response.body", "body": body})


@contextmanager
def answering(connections: Connections) -> Iterator[Callable[[], socket.socket]]:
    """Answer in a thread; yields what connects to it."""
    opened = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        loop = asyncio.new_event_loop()
        make = make_connections(app, connections, loop)
        work = loop.create_task(accept_forever(listening, connections, make))

        def run() -> None:
            with pytest.raises(asyncio.CancelledError):
                loop.run_until_complete(work)
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

        thread = threading.Thread(target=run)
        thread.start()

        def connect() -> socket.socket:
            opened.append(socket.create_connection(listening.getsockname(), PATIENCE_SECONDS))
            return opened[-1]

        try:
            yield connect
        finally:
            for each in opened:
                each.close()
            loop.call_soon_threadsafe(work.cancel)
            thread.join()


def read_all(peer: socket.socket) -> bytes:
    """Read until the other side closes."""
    data = b""
    try:
        while piece := peer.recv(1 << 16):
            data += piece
    except ConnectionResetError:
        pass
    return data


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET / HTTP/1.1\r\nhost: loc", REQUEST], ids=len)
def test_a_peer_that_sends_nothing_more_is_left(sent):
    """Without a first byte, within the headers, and after an answer: the connection ends."""
    with answering(Connections(wait_seconds=0.2)) as connect:
        peer = connect()
        peer.sendall(sent)
        answer = read_all(peer)
    assert answer.endswith(b"state") == (sent == REQUEST)


def test_a_byte_now_and_then_gains_no_time():
    """Headers have to be there in time, however many pieces they come in."""
    with answering(Connections(wait_seconds=0.5)) as connect:
        peer = connect()
        peer.sendall(b"GET / HTTP/1.1\r\n")
        until(lambda: is_ended(peer))


def test_a_peer_that_does_not_read_is_left():
    """An answer that nobody takes is dropped with its connection."""
    connections = Connections(wait_seconds=0.2)
    with answering(connections) as connect:
        peer = connect()
        peer.sendall(b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert peer.recv(1)
        # What the kernel holds for it is no longer the process's.
        until(lambda: not connections._open)


def test_who_waited_longest_makes_room():
    """Of many that say nothing the first ends, and one that asks at once is answered."""
    with answering(Connections(4, wait_seconds=PATIENCE_SECONDS)) as connect:
        idle = [connect() for _ in range(20)]
        asking = connect()
        asking.sendall(REQUEST)
        read_answer(asking)
        assert read_all(idle[0]) == b""


def test_who_was_answered_makes_room_at_once():
    """Where all are being answered the next one waits for an answer, and not for a timeout."""
    MAY_ANSWER.clear()
    connections = Connections(1, wait_seconds=10 * PATIENCE_SECONDS)
    with answering(connections) as connect:
        slow = connect()
        slow.sendall(REQUEST.replace(b"/ ", b"/slow "))
        until(lambda: bool(connections._open) and not connections.waiting)
        asking = connect()
        asking.sendall(REQUEST)
        MAY_ANSWER.set()
        read_answer(slow)
        read_answer(asking)


def test_without_descriptors_fewer_are_open_and_accept_rests(monkeypatch, caplog):
    """It is said once, and not tried again at once: there is no hot loop."""
    monkeypatch.setattr(under_test, "_PAUSE_SECONDS", 0.01)
    tries = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listening:

            async def fail(_: socket.socket) -> None:
                tries.append(loop.time())
                if len(tries) == 5:
                    raise asyncio.CancelledError
                raise OSError(errno.EMFILE, "Too many open files")

            monkeypatch.setattr(loop, "sock_accept", fail)
            connections = Connections(64)
            with pytest.raises(asyncio.CancelledError):
                await accept_forever(listening, connections, lambda: pytest.fail("accepted"))
            assert connections._allowed == 1

    asyncio.run(story())
    assert all(after - before >= 0.009 for before, after in itertools.pairwise(tries))
    assert "Too many open files" in caplog.text


def test_a_log_has_a_limit():
    """Ten lines a minute, and the next one says how many were left out."""
    now = 0.0
    limit = LogLimit(10, 60.0, clock=lambda: now)
    records = [logging.makeLogRecord({"msg": "line %d", "args": (one,)}) for one in range(1002)]
    assert [limit.filter(record) for record in records[:1000]] == [True] * 10 + [False] * 990
    now = 60.0
    assert limit.filter(records[1000])
    assert records[1000].getMessage() == "line 1000 (990 earlier lines were left out)"
    assert limit.filter(records[1001])
    assert records[1001].getMessage() == "line 1001"


def read_answer(peer: socket.socket) -> None:
    answer = b""
    while not answer.endswith(b"state"):
        answer += peer.recv(1000) or pytest.fail("it was ended")


def is_ended(peer: socket.socket) -> bool:
    """Send one byte; tells whether the other side takes it no more."""
    try:
        peer.sendall(b"x")
    except OSError:
        return True
    return False


def until(holds: Callable[[], bool]) -> None:
    waited = threading.Event()
    for _ in range(int(PATIENCE_SECONDS / 0.02)):
        if holds():
            return
        waited.wait(0.02)
    pytest.fail("it never came to that")
