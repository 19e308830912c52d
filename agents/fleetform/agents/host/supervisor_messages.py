"""
Messages between agent and supervisor: requests to stop, and notices that the agent should look.

A request is one line in the FIFO of the job's directory. A FIFO rather than a signal: a pid may by
now be somebody else's, a path in the job's own directory may not. It needs no memory either, so an
agent that has just started can stop a job.

A notice is a datagram to a socket in the agent's root, if there is an agent, and never waited for.
One that is lost costs nothing, since all that it says lies in the job's directory; an agent that
comes later looks there anyway.
"""

from __future__ import annotations

import errno
import os
import socket
import time

from fleetform.agents.host import layout
from fleetform.agents.protocol.states import Cause


def ask_to_stop(path: str, cause: Cause, grace_seconds: int | None) -> bool:
    """Write the request; False when no supervisor listens yet, or no longer."""
    grace = "-" if grace_seconds is None else str(grace_seconds * 1000)
    try:
        descriptor = os.open(f"{path}/{layout.CONTROL}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ENXIO, errno.ENOENT}:
            return False
        raise
    try:
        # Shorter than PIPE_BUF, so whole or not at all (pipe(7)).
        os.write(descriptor, f"stop {cause.value} {grace}\n".encode())
    except (BlockingIOError, BrokenPipeError):
        return False
    finally:
        os.close(descriptor)
    return True


BYTES_MAX = 256

_INTERVAL_MS = 15
"""Between two notices of output: lines still show at once, and a flood costs 66 wake-ups/s."""


class Notices:
    """Expects the job's directory as the current one: the path to the socket is relative."""

    def __init__(self, job_uid: str) -> None:
        self._job_uid = job_uid.encode()
        self._socket: socket.socket | None = None
        self._waiting = False
        self._next_ms = 0

    def output(self) -> None:
        """There is more of it; said at the next `send_due` for which it is time."""
        self._waiting = True

    def cleaning(self) -> None:
        self._send(b"cleaning")

    def wait_ms(self) -> int | None:
        """Return when `send_due` has something to do; None: not as long as nothing happens."""
        return max(self._next_ms - _boot_ms(), 0) if self._waiting else None

    def send_due(self) -> None:
        if self._waiting and _boot_ms() >= self._next_ms:
            self._next_ms = _boot_ms() + _INTERVAL_MS
            # Tried again in a while when the agent's queue was full, which holds 10 by default.
            self._waiting = not self._send(b"output")

    def _send(self, kind: bytes) -> bool:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.sendto(kind + b" " + self._job_uid, layout.NOTICE_FROM_JOB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # No agent is there.
        return True


def receive(listener: socket.socket) -> tuple[str, str] | None:
    """Return the next notice as (kind, job uid); None when there is none for now."""
    try:
        kind, _, uid = listener.recv(BYTES_MAX).decode("ascii", "replace").partition(" ")
    except BlockingIOError:
        return None
    return kind, uid


def _boot_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
