from __future__ import annotations

import threading

import pytest

from fleetform.app import api_process
from fleetform.app.problems import LedgerProblem
from fleetform.model.leadership import Holder
from fleetform.model.refusals import LedgerUnavailable


def test_a_ledger_that_cannot_be_opened_is_no_fault() -> None:
    """Whatever keeps it from being read, the API answers that it cannot be read now."""

    def read() -> None:
        raise LedgerProblem("the server does not answer", "look at it")

    with pytest.raises(LedgerUnavailable, match="the server does not answer"):
        api_process._readable(read)
    assert api_process._readable(lambda: 5) == 5


def test_who_manages_is_asked_once_a_second_at_most() -> None:
    """Each look has the lock for a moment: many readers look as often as one."""
    now = [100.0]
    asked: list[float] = []
    holder = Holder(17, "serve", "serve", 1, "node1")

    def ask() -> Holder | None:
        asked.append(now[0])
        return holder if len(asked) > 1 else None

    remembered = api_process._Remembered(ask, lambda: now[0])
    found: list[Holder | None] = []
    threads = [threading.Thread(target=lambda: found.append(remembered.get())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [None] * 8
    now[0] = 101.5
    assert remembered.get() == holder
    assert asked == [100.0, 101.5]
