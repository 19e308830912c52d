"""
Runs a command in another rank of the same run: what `mpirun` and others use in place of `ssh`.

    fleetform-rsh [OPTIONS OF SSH] ADDRESS COMMAND...

It is a program of jobs on several nodes, which connects to a socket of its job; the agent and the
controller carry the streams, and no key and no SSH server is needed. It runs from a copy in the agent's
folder, so it imports nothing but the standard library, Python 3.9.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import struct
import sys

SOCKET = "ranks.sock"
"""In the directory of the job, which the file of hosts is in too."""

DATA, ERRORS, END_OF_INPUT, SIGNAL, NOTICE, END = range(6)
"""
The first byte of a frame; a length of four bytes and the content follow. From here: DATA,
END_OF_INPUT, SIGNAL with a name. To here: DATA, ERRORS, NOTICE with text for people, and END with how
the command ended: JSON with `exit_code`, `signal` or `error`.
"""

HEAD = struct.Struct(">BI")

_FAILED = 255
"""The exit code of `ssh` where it cannot connect."""

_READ_BYTES = 32 << 10
_WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"
"""Options of ssh(1) that take a value; they are ignored, because no SSH is spoken."""


def main(arguments: list[str] | None = None) -> int:
    try:
        host, words = _read(sys.argv[1:] if arguments is None else arguments)
        rank = _rank_of(host)
        connection = _connect()
    except _Problem as problem:
        return _complain(str(problem))
    with connection:
        return _run(connection, rank, words)


class _Problem(Exception):
    pass


def _read(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the host and the words of the command."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option = rest.pop(0)
        if option[1:] and option[-1] in _WITH_VALUE and len(option) == 2 and rest:
            rest.pop(0)
    if rest and rest[0] == "--":
        rest.pop(0)
    if len(rest) < 2:
        raise _Problem("usage: fleetform-rsh ADDRESS COMMAND...")
    return rest[0].rpartition("@")[2], rest[1:]


def _rank_of(host: str) -> int:
    """Find the rank by the address that the file of hosts has, or by a name that leads to it."""
    addresses = os.environ.get("FLEETFORM_NODES_IPS", "").split("\n")
    if host in addresses:
        return addresses.index(host)
    found: list[str] = []
    with contextlib.suppress(OSError, UnicodeError):
        found = [str(one[4][0]) for one in socket.getaddrinfo(host, None)]
    for rank, address in enumerate(addresses):
        if address in found:
            return rank
    raise _Problem(
        f"{host} is no node of this run; its nodes are {', '.join(filter(None, addresses)) or 'one'}"
    )


def _connect() -> socket.socket:
    folder = os.path.dirname(os.environ.get("FLEETFORM_HOSTFILE", ""))
    if not folder:
        raise _Problem("this job has no other nodes: FLEETFORM_HOSTFILE is not set")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # A socket's address holds 107 bytes, and the path of a job may be longer.
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            connection.connect(f"/proc/self/fd/{opened}/{SOCKET}")
        finally:
            os.close(opened)
    except OSError as error:
        connection.close()
        raise _Problem(f"the agent of this host does not answer: {error.strerror}") from error
    return connection


def _run(connection: socket.socket, rank: int, words: list[str]) -> int:
    # As `ssh`: a shell on the other side reads the words.
    command = ["sh", "-c", " ".join(words)]
    connection.sendall(json.dumps({"rank": rank, "argv": command}).encode() + b"\n")
    _pass_signals_on(connection)
    buffer = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        _watch_input(selector, connection)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not connection:
                    _send_input(selector, connection)
                    continue
                data = connection.recv(1 << 16)
                if not data:
                    return _complain("the agent of this host has ended the connection")
                buffer += data
                code = _take(buffer)
                if code is not None:
                    return code


def _watch_input(selector: selectors.BaseSelector, connection: socket.socket) -> None:
    try:
        selector.register(0, selectors.EVENT_READ)
    except (OSError, ValueError):
        # A file or /dev/null, which epoll does not take: it is read at once. A large one waits its turn.
        while data := _input():
            _send(connection, DATA, data)
        _send(connection, END_OF_INPUT)


def _send_input(selector: selectors.BaseSelector, connection: socket.socket) -> None:
    data = _input()
    if data:
        _send(connection, DATA, data)
    else:
        selector.unregister(0)
        _send(connection, END_OF_INPUT)


def _input() -> bytes:
    try:
        return os.read(0, _READ_BYTES)
    except OSError:
        return b""


def _send(connection: socket.socket, kind: int, content: bytes = b"") -> None:
    # An agent that has gone is seen by the next read.
    with contextlib.suppress(OSError):
        connection.sendall(HEAD.pack(kind, len(content)) + content)


def _pass_signals_on(connection: socket.socket) -> None:
    def pass_on(number: int, _frame: object) -> None:
        _send(connection, SIGNAL, signal.Signals(number).name[3:].encode())

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, pass_on)


def _take(buffer: bytearray) -> int | None:
    """Take whole frames; returns the exit code once the command has ended."""
    while len(buffer) >= HEAD.size:
        kind, size = HEAD.unpack_from(buffer)
        end = HEAD.size + size
        if len(buffer) < end:
            return None
        content = bytes(buffer[HEAD.size : end])
        del buffer[:end]
        if kind == DATA:
            _write(1, content)
        elif kind == ERRORS:
            _write(2, content)
        elif kind == NOTICE:
            _complain(content.decode("utf-8", "replace"))
        elif kind == END:
            return _code(json.loads(content))
    return None


def _code(ended: dict[str, object]) -> int:
    if "error" in ended:
        return _complain(str(ended["error"]))
    code, number = ended.get("exit_code"), ended.get("signal")
    return code if isinstance(code, int) else 128 + (number if isinstance(number, int) else 0)


def _write(descriptor: int, data: bytes) -> None:
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(descriptor, data) :]


def _complain(message: str) -> int:
    _write(2, f"fleetform-rsh: {message}\n".encode())
    return _FAILED


if __name__ == "__main__":
    raise SystemExit(main())
