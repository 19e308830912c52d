"""Bytes both ways between a pair of pipes and the agent's socket; neither way waits for the other."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator

import pytest

from fleetform.agents.host.relay import relay

WAIT_SECONDS = 60


class Relayed:
    """A relay in a thread: `agent` is the socket's other end, `into` and `out` are its pipes'."""

    def __init__(self) -> None:
        ours, self.agent = socket.socketpair()
        self._ours = ours
        source, self.into = os.pipe()
        self.out, target = os.pipe()
        self._ends = (source, target)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        relay(self._ours, *self._ends)
        self._ours.close()
        for descriptor in self._ends:
            os.close(descriptor)

    def close_input(self) -> None:
        os.close(self.into)
        self.into = -1

    def read_out(self, size: int) -> bytes:
        """Read so much of what has come out, or all up to its end."""
        data = b""
        while len(data) < size and (piece := os.read(self.out, size - len(data))):
            data += piece
        return data

    def close(self) -> None:
        if self.into >= 0:
            os.close(self.into)
        self.agent.close()
        while os.read(self.out, 1 << 20):
            pass
        os.close(self.out)
        self.thread.join(WAIT_SECONDS)
        assert not self.thread.is_alive()


@pytest.fixture
def relayed() -> Iterator[Relayed]:
    made = Relayed()
    yield made
    made.close()


def fill(relayed: Relayed) -> int:
    """Have the agent say as much as fits while nobody reads it; returns how much."""
    relayed.agent.setblocking(False)
    sent = 0
    while select.select([], [relayed.agent], [], 1.0)[1]:
        sent += relayed.agent.send(bytes(1 << 16))
    relayed.agent.setblocking(True)
    return sent


def test_both_ways_until_the_agent_ends(relayed: Relayed) -> None:
    """What is said last arrives too."""
    os.write(relayed.into, b"hello")
    relayed.agent.settimeout(WAIT_SECONDS)
    assert relayed.agent.recv(100) == b"hello"
    relayed.agent.sendall(b"welcome")
    relayed.agent.shutdown(socket.SHUT_WR)
    assert relayed.read_out(100) == b"welcome"
    relayed.thread.join(WAIT_SECONDS)
    assert not relayed.thread.is_alive()


def test_a_stop_reaches_the_agent_while_output_is_stuck(relayed: Relayed) -> None:
    """Nobody reads the output, and what is said to the agent arrives all the same."""
    stuck = fill(relayed)
    os.write(relayed.into, b"stop")
    relayed.agent.settimeout(WAIT_SECONDS)
    assert relayed.agent.recv(100) == b"stop"
    assert len(relayed.read_out(stuck)) == stuck


def test_output_arrives_while_the_agent_does_not_read(relayed: Relayed) -> None:
    """The other way round."""
    os.set_blocking(relayed.into, False)
    stuck = 0
    while select.select([], [relayed.into], [], 1.0)[1]:
        stuck += os.write(relayed.into, bytes(4096))
    relayed.agent.sendall(b"output")
    assert relayed.read_out(6) == b"output"
    relayed.agent.settimeout(WAIT_SECONDS)
    while stuck:
        stuck -= len(relayed.agent.recv(1 << 16))


def test_memory_is_bounded(relayed: Relayed) -> None:
    """What is not read stays with the agent, which keeps it on disk."""
    assert fill(relayed) < 4 << 20


def test_the_end_of_input_follows_what_was_said(relayed: Relayed) -> None:
    """The agent hears all of it, then the end, and may still answer."""
    os.write(relayed.into, b"x" * 40_000)
    relayed.close_input()
    relayed.agent.settimeout(WAIT_SECONDS)
    heard = b""
    while piece := relayed.agent.recv(1 << 16):
        heard += piece
    assert heard == b"x" * 40_000
    relayed.agent.sendall(b"answer")
    assert relayed.read_out(6) == b"answer"


def test_an_agent_that_is_gone_is_the_end(relayed: Relayed) -> None:
    """Also while much was still to be said to it."""
    os.set_blocking(relayed.into, False)
    while select.select([], [relayed.into], [], 0.5)[1]:
        os.write(relayed.into, bytes(4096))
    relayed.agent.close()
    relayed.thread.join(WAIT_SECONDS)
    assert not relayed.thread.is_alive()
