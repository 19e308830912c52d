"""
A process of its own in the background, and a caller that returns once it is there.

The caller learns over a pipe how it went, so nobody has to poll for a socket.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from fleetform.agents.host.ownlog import OwnLog

Report = Callable[[str], None]
"""Says in one line how it went, once; empty: all is well."""


def detach(body: Callable[[Report], None]) -> str:
    """
    Run `body` in a process without a terminal, and outside this session and its process tree.

    Returns:
        What it reported; a sentence of our own when it ended without a report.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _run_detached(body, write_end)
    os.close(write_end)
    os.waitpid(pid, 0)
    with os.fdopen(read_end, encoding="utf-8", errors="replace") as pipe:
        line = pipe.readline()
    return line.rstrip("\n") if line.endswith("\n") else "it ended before it was ready"


def _run_detached(body: Callable[[Report], None], write_end: int) -> NoReturn:
    status = 1
    try:
        os.setsid()
        # Not a session's leader any more, so no terminal can become its own (daemon(7)).
        if os.fork() != 0:
            os._exit(0)
        body(lambda line: _report(write_end, line))
        status = 0
    except BaseException as error:  # noqa: BLE001 -- nothing may return into the caller's code
        _report(write_end, f"{type(error).__name__}: {error}")
        if not isinstance(error, SystemExit):
            import traceback

            traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _report(descriptor: int, line: str) -> None:
    try:
        os.write(descriptor, " ".join(line.split()).encode() + b"\n")
        os.close(descriptor)
    except OSError:
        pass  # Said before, or the caller has not waited.


def redirect(path: str | None) -> None:
    """Give this process, and those forked from it, no input, and with `path` a bounded log."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    if path is not None:
        log = OwnLog(path)
        # What the interpreter itself says when it dies does not go through `sys.stderr`.
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        sys.stdout = sys.stderr = log
