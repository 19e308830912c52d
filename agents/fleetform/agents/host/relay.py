"""
`connect`: standard input and output become a connection to the agent's socket.

For a controller on another machine, whose SSH server forbids forwarding sockets as hardened
ones do: what it runs there is this.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket

from fleetform.agents.host import layout

_BUFFER_BYTES = 1 << 18
"""Of each way; as much again is read at a time."""


def open_socket(root: str) -> socket.socket:
    """Connect; raises OSError. A root's path may be longer than a socket's address may be."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{layout.AGENT_SOCKET}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


def relay(connection: socket.socket, source: int, target: int) -> None:
    """Pass bytes both ways until the agent ends the connection and all that it said is out."""
    ends = (source, target, connection.fileno())
    blocking = [os.get_blocking(descriptor) for descriptor in ends]
    for descriptor in ends:
        os.set_blocking(descriptor, False)
    try:
        _Relay(connection, source, target).run()
    finally:
        # Standard input and output may be shared with whoever started this process.
        for descriptor, was_blocking in zip(ends, blocking):
            os.set_blocking(descriptor, was_blocking)


class _Relay:
    """
    Two ways with a buffer each; neither waits for the other.

    While output is stuck, because nobody reads it, a request still reaches the agent. A way whose
    buffer is full is not read: what cannot leave stays where it came from.
    """

    def __init__(self, connection: socket.socket, source: int, target: int) -> None:
        self._connection = connection
        self._agent = connection.fileno()
        self._source = source
        self._target = target
        self._to_agent = bytearray()
        self._from_agent = bytearray()
        self._source_ended = False
        self._agent_ended = False
        self._end_sent = False

    def run(self) -> None:
        while not (self._agent_ended and not self._from_agent):
            for descriptor, events in self._wait():
                if descriptor == self._target:
                    _write(self._target, self._from_agent)
                elif descriptor == self._source:
                    self._source_ended = not _read(self._source, self._to_agent)
                else:
                    self._serve_agent(events)
            if self._source_ended and not self._to_agent and not self._end_sent:
                self._end_sent = True
                with contextlib.suppress(OSError):
                    self._connection.shutdown(socket.SHUT_WR)

    def _wait(self) -> list[tuple[int, int]]:
        """Wait for what can be done; a descriptor of which nothing is wanted is not looked at."""
        poller = select.poll()
        if not self._source_ended and len(self._to_agent) < _BUFFER_BYTES:
            poller.register(self._source, select.POLLIN)
        if self._from_agent:
            poller.register(self._target, select.POLLOUT)
        wanted = select.POLLOUT if self._to_agent else 0
        if not self._agent_ended and len(self._from_agent) < _BUFFER_BYTES:
            wanted |= select.POLLIN
        if wanted:
            poller.register(self._agent, wanted)
        return poller.poll()

    def _serve_agent(self, events: int) -> None:
        if events & select.POLLOUT and self._to_agent:
            try:
                _write(self._agent, self._to_agent)
            except OSError:
                # It no longer listens; what it has said before is still read.
                self._to_agent.clear()
                self._source_ended = self._end_sent = True
        if events & ~select.POLLOUT and len(self._from_agent) < _BUFFER_BYTES:
            self._agent_ended = not _read(self._agent, self._from_agent)


def _read(descriptor: int, buffer: bytearray) -> bool:
    """Read what there is; tell whether the end has not come yet."""
    try:
        data = os.read(descriptor, _BUFFER_BYTES)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    buffer += data
    return bool(data)


def _write(descriptor: int, buffer: bytearray) -> None:
    """Write what fits."""
    with contextlib.suppress(BlockingIOError):
        del buffer[: os.write(descriptor, buffer)]
