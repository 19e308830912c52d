"""Two connections in one order: a transaction that stands still until the other has had its turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from fleetform.store.database import Transaction
from fleetform.store.ledger import StoredLedger

MOMENT_SECONDS = 0.15
"""How long somebody is watched who must be waiting; nothing passes because of it."""


class Pause:
    """Holds a ledger's next write transaction right after it has begun."""

    def __init__(self, ledger: StoredLedger) -> None:
        self._reached = threading.Event()
        self._go_on = threading.Event()
        database: Any = ledger._database
        self._write = database.write
        database.write = self._paused

    @contextmanager
    def _paused(self, **arguments: Any) -> Iterator[Transaction]:
        with self._write(**arguments) as transaction:
            self._reached.set()
            assert self._go_on.wait(20)
            yield transaction

    def wait(self) -> None:
        """Return once the transaction stands still."""
        assert self._reached.wait(20)

    def end(self) -> None:
        self._go_on.set()


@contextmanager
def beside() -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Give a function that calls another on a thread of its own."""
    with ThreadPoolExecutor(4) as threads:
        yield threads.submit


def is_waiting(call: Future[Any]) -> bool:
    """Tell whether a call has not come back in a moment."""
    try:
        call.exception(MOMENT_SECONDS)
    except TimeoutError:
        return True
    return False
