"""
Requests to a supervisor: one line in the FIFO of the job's directory.

A FIFO rather than a signal: a pid may by now be somebody else's, a path in the job's own
directory may not. It needs no memory either, so an agent that has just started can stop a job.
"""

from __future__ import annotations

import errno
import os

from fleetform.agents.host import layout
from fleetform.agents.protocol.states import Cause


def ask_to_stop(path: str, cause: Cause, grace_seconds: int | None) -> bool:
    """Write the request; False when nobody listens yet, or no longer."""
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
