"""
`connect`: standard input and output become a connection to the agent's socket.

For a controller on another machine, whose SSH server forbids forwarding sockets as hardened
ones do: what it runs there is this.
"""

from __future__ import annotations

import os
import select
import socket

from fleetform.agents.host import layout

_READ_BYTES = 1 << 18


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
    """Pass bytes both ways until the agent ends the connection, or input and answers end."""
    poller = select.poll()
    poller.register(source, select.POLLIN)
    poller.register(connection, select.POLLIN)
    while True:
        for descriptor, _ in poller.poll():
            if descriptor == source:
                data = os.read(source, _READ_BYTES)
                if data:
                    connection.sendall(data)
                else:
                    poller.unregister(source)
                    connection.shutdown(socket.SHUT_WR)
            else:
                data = connection.recv(_READ_BYTES)
                if not data:
                    return
                _write_all(target, data)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
