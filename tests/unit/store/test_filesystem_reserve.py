"""Room that is kept for an emergency; that it is enough is tried on a full disk, elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetform.store import filesystem
from fleetform.store.filesystem import SIZE_BYTES, give_up, is_needed, keep

MORE_THAN_THERE_IS = 1 << 62


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def names(ledger: Path) -> list[str]:
    return [one.name for one in ledger.parent.iterdir()]


def test_it_takes_its_room_and_is_its_owners(ledger: Path) -> None:
    """Blocks and not only a size; once is enough, and half of one is made whole."""
    path = ledger.with_name("ledger.reserve")
    for _ in range(2):
        keep(ledger)
        found = path.stat()
        assert (found.st_size, found.st_mode & 0o777) == (SIZE_BYTES, 0o600)
        assert found.st_blocks * 512 >= SIZE_BYTES
        assert names(ledger) == ["ledger.reserve"]
        path.write_bytes(b"half")


def test_it_is_not_what_fills_the_disk(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where little is free, that is left to others; where there is less than it seemed, all of it."""
    monkeypatch.setattr(filesystem, "PLENTY_BYTES", MORE_THAN_THERE_IS)
    keep(ledger)
    assert names(ledger) == []
    monkeypatch.setattr(filesystem, "PLENTY_BYTES", 0)
    monkeypatch.setattr(filesystem, "SIZE_BYTES", MORE_THAN_THERE_IS)
    keep(ledger)
    assert names(ledger) == []


def test_it_is_kept_while_there_is_room(ledger: Path) -> None:
    """An emergency that finds some leaves it for a worse one."""
    keep(ledger)
    assert not is_needed(ledger)
    assert names(ledger) == ["ledger.reserve"]


def test_it_is_given_up_once(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is free, and of what tried that nothing is left."""
    keep(ledger)
    monkeypatch.setattr(filesystem, "NEEDED_BYTES", MORE_THAN_THERE_IS)
    assert is_needed(ledger)
    give_up(ledger)
    assert names(ledger) == []
    assert not is_needed(ledger)


def test_without_a_folder_there_is_nothing(tmp_path: Path) -> None:
    """Before the first apply nobody has to know."""
    keep(tmp_path / "none" / "ledger.db")
    assert not is_needed(tmp_path / "none" / "ledger.db")
    give_up(tmp_path / "none" / "ledger.db")
    assert list(tmp_path.iterdir()) == []
