"""The disk of a simulated machine does what a real one does to a ledger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleetform.model.override import OverrideKind
from fleetform.model.ports import LedgerUnavailable
from fleetform.simulate.apply.ports import Torn
from fleetform.wiring.simulated_disk import SimulatedDisk
from unit.plan.trees import UID


class Same:
    def uid(self) -> str:
        return "1" * 32


@pytest.fixture
def disk() -> Iterator[SimulatedDisk]:
    disk = SimulatedDisk(UID, Same())
    yield disk
    disk.drain()


def pause(disk: SimulatedDisk) -> None:
    """A transaction of a few statements."""
    disk.ledger.put_overrides(
        OverrideKind.PAUSE, [""], reason="noise", who="me", now_ms=1, until_ms=None
    )


def test_a_new_one_is_empty(disk: SimulatedDisk) -> None:
    """Seeds share a database, and none finds what another has left."""
    pause(disk)
    again = SimulatedDisk(UID, Same())
    assert again.ask("SELECT count(*) FROM overrides") == [(0,)]
    assert again.ask("SELECT count(*) FROM events") == [(0,)]
    pause(again)
    assert again.ask("SELECT number FROM events") == [(1,)]


@pytest.mark.parametrize("statements", [0, 1, 2, 3])
def test_a_torn_transaction_has_not_been(disk: SimulatedDisk, statements: int) -> None:
    """Wherever a process dies inside of one, the disk is as it was before."""
    before = disk.image()
    disk.tear(statements)
    with pytest.raises(Torn):
        pause(disk)
    assert disk.untear()
    disk.load(before)
    assert disk.ask("SELECT count(*) FROM overrides") == [(0,)]
    assert disk.ask("SELECT serial FROM meta") == [(0,)]
    pause(disk)
    assert disk.ask("SELECT count(*) FROM overrides") == [(1,)]


def test_a_full_disk_refuses_rows(disk: SimulatedDisk) -> None:
    """The real error in the real place: nothing is written, and later everything is."""
    disk.fill()
    with pytest.raises(LedgerUnavailable, match="full"):
        pause(disk)
    assert disk.ask("SELECT serial FROM meta") == [(0,)]
    disk.drain()
    pause(disk)


def test_an_earlier_copy_is_all_there_is(disk: SimulatedDisk) -> None:
    """What was written after it was taken is gone, and it can be gone on with."""
    copy = disk.image()
    pause(disk)
    disk.load(copy)
    assert disk.outline().serial == 0
    pause(disk)
    assert disk.ledger.read_live().overrides
