"""A whole ledger in a file and back, from either database into either."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from contract.ledgers import ENVIRONMENT, CountingIds, Desk, StillClock, submit_step
from fleetform.model.ledger import LedgerStatus
from fleetform.model.ports import StalePlan
from fleetform.store.backup import TABLES, BackupError, read_head
from fleetform.store.opening import open_ledger
from fleetform.store.tables import metadata


def _busy(desk: Desk) -> Desk:
    """One run over, one at work, one that waits."""
    desk.submit(submit_step("a"), submit_step("b"), submit_step("c"))
    desk.run_to_end("a")
    desk.place("b")
    return desk


def test_every_table_is_in_a_backup() -> None:
    """All but who holds the environment, which is no part of what was written."""
    assert set(TABLES) == set(metadata.tables) - {"leases"}


def test_a_backup_is_one_file_of_one_moment(desk: Desk, tmp_path: Path) -> None:
    """Its head says whose it is and what is in it; nobody else may read it."""
    _busy(desk)
    path = tmp_path / "backup"
    head = desk.ledger.backup(path, who="ada", now_ms=7)
    live = desk.ledger.read_live()
    assert (head.environment_uid, head.ledger_id, head.epoch) == (ENVIRONMENT, live.ledger_id, 1)
    assert (head.made_at_ms, head.who, head.rows["runs"]) == (7, "ada", 3)
    assert read_head(path) == head
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + len(TABLES) + sum(head.rows.values())
    assert [path.name] == [one.name for one in tmp_path.iterdir() if "backup" in one.name]


def test_what_is_restored_is_what_was_there(desk: Desk, tmp_path: Path) -> None:
    """Runs, attempts, jobs and events are the same; epoch and fence are above both."""
    _busy(desk)
    ledger = desk.ledger
    before, events = ledger.read_runs(), ledger.read_events()
    ledger.backup(tmp_path / "backup", who="ada", now_ms=7)
    desk.run_to_end("c")
    fence = ledger.take_fence(who="me", now_ms=1)
    assert ledger.restore(tmp_path / "backup", who="ada", now_ms=8) == 2
    live = ledger.read_live()
    assert ledger.read_runs() == before
    assert ledger.read_events()[: len(events)] == events
    assert (live.epoch, live.status) == (2, LedgerStatus.RECOVERING)
    assert ledger.take_fence(who="me", now_ms=1) > fence
    # A desk writes something shorter than plans.
    assert {one.check for one in ledger.flaws()} == {"plans"}


def test_a_restored_ledger_starts_nothing(desk: Desk, tmp_path: Path) -> None:
    """It is recovering until the hosts were asked; no plan is entered meanwhile."""
    _busy(desk)
    desk.ledger.backup(tmp_path / "backup", who="ada", now_ms=7)
    desk.ledger.restore(tmp_path / "backup", who="ada", now_ms=8)
    with pytest.raises(StalePlan):
        desk.submit(submit_step("d"))


def test_numbers_go_on_after_a_restore(desk: Desk, tmp_path: Path) -> None:
    """Events and applies that follow get numbers above all that were restored."""
    _busy(desk)
    desk.ledger.backup(tmp_path / "backup", who="ada", now_ms=7)
    desk.ledger.restore(tmp_path / "backup", who="ada", now_ms=8)
    desk.ledger.end_recovery()
    highest = desk.ledger.read_events()[-1].number
    desk.submit(submit_step("d"))
    numbers = [event.number for event in desk.ledger.read_events()]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] > highest


def test_a_ledger_moves_to_another_database(desk: Desk, tmp_path: Path) -> None:
    """What one database wrote, a new file of SQLite takes; and back again."""
    _busy(desk)
    desk.ledger.backup(tmp_path / "there", who="ada", now_ms=7)
    other = open_ledger(tmp_path / "other.db", ENVIRONMENT, CountingIds(500), StillClock())
    other.restore(tmp_path / "there", who="ada", now_ms=8)
    assert other.read_runs() == desk.ledger.read_runs()
    assert other.read_live().ledger_id == desk.ledger.read_live().ledger_id
    other.backup(tmp_path / "back", who="ada", now_ms=9)
    assert desk.ledger.restore(tmp_path / "back", who="ada", now_ms=10) == 3
    assert desk.ledger.read_runs() == other.read_runs()
    other.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-20],
        lambda data: data.replace(b'"done"', b'"FAIL"', 1),
        lambda data: b"{}\n" + data,
        lambda _data: b"\x00\xff",
        lambda _data: b"",
        lambda data: data.replace(b'"version":1', b'"version":9', 1),
        lambda data: data.replace(b'"schema":"0', b'"schema":"9', 1),
    ],
    ids=["cut", "changed", "another head", "binary", "empty", "later form", "later ledger"],
)
def test_what_is_no_whole_backup_is_refused(desk: Desk, tmp_path: Path, damage) -> None:
    """It is told before anything is touched."""
    path = tmp_path / "backup"
    _busy(desk).ledger.backup(path, who="ada", now_ms=7)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BackupError) as caught:
        read_head(path)
    assert caught.value.advice


def test_a_backup_that_fails_leaves_nothing(desk: Desk, tmp_path: Path, monkeypatch) -> None:
    """A full disk leaves no half a file, under no name."""
    folder = tmp_path / "backups"
    folder.mkdir()

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fleetform.store.backup.os.fsync", refuse)
    with pytest.raises(BackupError, match="No space"):
        desk.ledger.backup(folder / "backup", who="ada", now_ms=7)
    assert list(folder.iterdir()) == []


def test_the_form_is_json_lines(desk: Desk, tmp_path: Path) -> None:
    """Another program reads it: objects name a table, arrays are its rows, bytes are base64."""
    _busy(desk).ledger.backup(tmp_path / "backup", who="ada", now_ms=7)
    tables: dict[str, int] = {}
    table = ""
    for line in (tmp_path / "backup").read_text().splitlines()[1:]:
        value = json.loads(line)
        if isinstance(value, dict):
            table, columns = value["table"], value["columns"]
            tables[table] = 0
        else:
            assert len(value) == len(columns)
            tables[table] += 1
    assert tables == read_head(tmp_path / "backup").rows
