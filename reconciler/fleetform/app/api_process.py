"""
The process that answers the API: started by `api_server`, and ended with the process that did.

    python -P -m fleetform.app.api_process FOLDER

Its first line of input says which environment it is and which descriptor listens; the end of its
input ends it, which the kernel sees to even where `serve` is killed. It opens the ledger for reading
only. The ledger's address, which has a password, comes with the environment variables.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from fleetform.model.leadership import Holder

T = TypeVar("T")

NICENESS = 10
"""`serve` gets nine times the processor time, where both want all (sched(7))."""

_OOM_SCORE = 500
"""Where the machine has no memory left, the kernel ends this and not `serve` or a job."""

_DESCRIPTORS_MAX = 4096

_DESCRIPTORS_KEPT = 48
"""For the ledger, logs, and what the libraries open: not for connections."""


def main() -> None:
    """Answer until the input ends."""
    _make_harmless()
    setup = json.loads(sys.stdin.buffer.readline() or "null")
    if setup is None:
        # The parent has ended already.
        return
    threading.Thread(target=_end_with_starter, name="starter", daemon=True).start()
    # Not before it is harmless: they take most of a second.
    from fleetform.api.app import create_app
    from fleetform.api.server import answer_forever, log_to_stderr
    from fleetform.app.clock import SystemClock
    from fleetform.app.workspace import Workspace
    from fleetform.spec.desired import Environment

    log_to_stderr()
    workspace = Workspace(Path(sys.argv[1]), Environment(setup["name"], setup["uid"]))
    app = create_app(
        lambda: _readable(workspace.reader),
        workspace.logs,
        environment=workspace.environment,
        now_ms=SystemClock().now_ms,
        listen_host=setup["host"],
        controller=_Remembered(lambda: _readable(workspace.manager)).get,
    )
    listening = socket.socket(fileno=setup["socket"])
    answer_forever(app, listening, maximum=_connections_max())


def _make_harmless() -> None:
    """Give way to everything else, in processor time and in memory."""
    os.nice(NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))


def _connections_max() -> int:
    """Raise the limit of descriptors as far as it may be, and say how many connections it allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS_MAX)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(1, wanted - _DESCRIPTORS_KEPT)


def _end_with_starter() -> None:
    """In a thread: it ends this process whatever the loop does."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)


def _readable(read: Callable[[], T]) -> T:
    """Say in the API's own words that the ledger cannot be read, for whatever reason."""
    from fleetform.app.problems import Problem
    from fleetform.model.refusals import LedgerUnavailable

    try:
        return read()
    except Problem as problem:
        raise LedgerUnavailable(problem.message) from problem


@dataclass
class _Remembered:
    """
    Who manages the environment, asked at most once a second.

    Each look holds the lock for some microseconds: a flood of them would keep it from a process that
    begins to manage.
    """

    _SECONDS = 1.0

    ask: Callable[[], Holder | None]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: float | None = None
        self._holder: Holder | None = None

    def get(self) -> Holder | None:
        with self._lock:
            if self._asked is None or self.clock() - self._asked > self._SECONDS:
                self._holder = self.ask()
                self._asked = self.clock()
            return self._holder


if __name__ == "__main__":
    main()
