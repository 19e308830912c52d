"""The ledgers that one suite is for; what a call means is in the docstrings of `model.ports`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contract.ledgers import (
    ENVIRONMENT,
    CountingIds,
    Desk,
    StillClock,
)
from fleetform.model.ports import Ledger
from fleetform.store.opening import open_ledger


def open_sqlite(folder: Path) -> Ledger:
    return open_ledger(folder / "ledger.db", ENVIRONMENT, CountingIds(), StillClock())


@pytest.fixture(params=[open_sqlite], ids=["sqlite"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Ledger]:
    """Open the test's one ledger once more, as another process would."""
    return lambda: request.param(tmp_path)


@pytest.fixture
def ledger(reopen: Callable[[], Ledger]) -> Iterator[Ledger]:
    ledger = reopen()
    yield ledger
    ledger.close()


@pytest.fixture
def desk(ledger: Ledger) -> Desk:
    return Desk.of(ledger)


@pytest.fixture
def two_hosts(ledger: Ledger) -> Desk:
    return Desk.of(ledger, nodes=2)
