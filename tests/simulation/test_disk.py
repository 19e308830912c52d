"""The disk of a simulated machine does what a real one does to a ledger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleetform.model.override import OverrideKind
from fleetform.model.ports import LedgerUnavailable
from simulation.apply.ports import FILLED, Torn
from simulation.disk import SimulatedDisk
from unit.plan.trees import UID


class Same:
    def uid(self) -> str:
        return "1" * 32


@pytest.fixture
def disk() -> Iterator[SimulatedDisk]:
    disk = SimulatedDisk(UID, Same())
    yield disk
    disk.drain()


class Mortal:
    """A writer that dies after so many statements; 0: it lives."""

    def __init__(self, statements: int = 0) -> None:
        self._statements = statements
        self.calls: list[str] = []

    def begins(self, call: str) -> int:
        self.calls.append(f"begins {call}")
        return self._statements

    def has_committed(self, call: str) -> None:
        self.calls.append(f"has committed {call}")


def pause(disk: SimulatedDisk, writer: Mortal | None = None) -> None:
    """A transaction of a few statements."""
    disk.open(writer or Mortal()).put_overrides(
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


@pytest.mark.parametrize("statements", [1, 2, 3, 100])
def test_a_torn_transaction_has_not_been(disk: SimulatedDisk, statements: int) -> None:
    """Wherever a process dies inside of one, at the latest at its commit, the disk is as before."""
    writer = Mortal(statements)
    with pytest.raises(Torn):
        pause(disk, writer)
    assert writer.calls == ["begins put_overrides"]
    assert disk.ask("SELECT count(*) FROM overrides") == [(0,)]
    assert disk.ask("SELECT serial FROM meta") == [(0,)]
    pause(disk)
    assert disk.ask("SELECT count(*) FROM overrides") == [(1,)]


def test_a_writer_is_asked_and_told_by_the_name_of_the_call(disk: SimulatedDisk) -> None:
    """Which write it is, is known before it begins and after it is committed."""
    writer = Mortal()
    pause(disk, writer)
    assert writer.calls == ["begins put_overrides", "has committed put_overrides"]


@pytest.mark.parametrize("refuses", FILLED)
def test_a_full_disk_refuses_to_be_written(disk: SimulatedDisk, refuses: tuple[str, ...]) -> None:
    """The real error in the real place: nothing is written, and later everything is."""
    disk.fill(refuses)
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
