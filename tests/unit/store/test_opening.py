"""A ledger's file: made whole, opened, or refused with the kind of error that says what to do."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

import pytest

from contract.ledgers import ENVIRONMENT, CountingIds, StillClock, carry_out, submit_step
from fleetform.model.ports import LedgerUnavailable
from fleetform.store import filesystem, schema
from fleetform.store.database import connect, make_durable
from fleetform.store.errors import (
    DamagedLedgerError,
    ForeignLedgerError,
    LedgerBusyError,
    LedgerError,
    LedgerFullError,
    MissingLedgerError,
    NetworkFileSystemError,
    NewerLedgerError,
    OlderLedgerError,
    ReadOnlyLedgerError,
)
from fleetform.store.ledger import StoredLedger
from fleetform.store.opening import is_new, open_ledger
from fleetform.store.reads import open_snapshot
from fleetform.store.soundness import Upgraded, upgrade_file
from released import OLDER, UID, write_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.db"


def reopen(path: Path, environment: str = ENVIRONMENT) -> StoredLedger:
    return open_ledger(path, environment, CountingIds(), StillClock())


def test_new_ledger_is_private_and_whole(path: Path) -> None:
    """The folder is the user's alone, and holds the ledger and nothing that was left over."""
    assert is_new(path)
    ledger = reopen(path)
    live = ledger.read_live()
    assert (live.environment_uid, live.epoch, len(live.ledger_id)) == (ENVIRONMENT, 1, 32)
    ledger.close()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]
    assert not is_new(path)


def test_promises_of_the_connection(path: Path) -> None:
    """A commit survives a power cut, and rows that belong together cannot come apart."""
    ledger = reopen(path)
    connection = ledger._database.connection
    settings = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    ledger.close()


def test_two_who_make_it_get_one(path: Path) -> None:
    """Of two processes that find no ledger both end up with the same one."""
    ids: list[str] = []

    def make(first: int) -> None:
        ledger = open_ledger(path, ENVIRONMENT, CountingIds(first), StillClock())
        ids.append(ledger.read_live().ledger_id)
        ledger.close()

    threads = [threading.Thread(target=make, args=(first * 1000,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 4
    assert len(set(ids)) == 1


def test_many_who_switch_to_the_log_at_once_all_do(tmp_path: Path) -> None:
    """SQLite waits for nobody who makes the same switch; of eight, one in two hundred was refused."""
    refused: list[LedgerError] = []

    def switch(path: Path, together: threading.Barrier) -> None:
        with contextlib.closing(connect(path)) as connection:
            together.wait()
            try:
                make_durable(connection)
            except LedgerError as error:
                refused.append(error)

    for number in range(60):
        path = tmp_path / f"{number}.db"
        with contextlib.closing(sqlite3.connect(path)) as new:
            new.execute("CREATE TABLE one (value)")
        together = threading.Barrier(8)
        threads = [threading.Thread(target=switch, args=(path, together)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not refused


def spoil_empty(path: Path) -> None:
    path.write_bytes(b"")


def spoil_text(path: Path) -> None:
    path.write_text("not a database at all, but long enough for a header" * 40)


def spoil_other_program(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()


def spoil_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    # The first page has the schema; what it points to is overwritten.
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)


def spoil_version(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "error", "sentence"),
    [
        (spoil_empty, DamagedLedgerError, "is empty"),
        (spoil_text, DamagedLedgerError, "not a database"),
        (spoil_other_program, DamagedLedgerError, "not a ledger"),
        (spoil_pages, DamagedLedgerError, "damaged"),
        (spoil_version, NewerLedgerError, "has version 9999"),
    ],
)
@pytest.mark.parametrize("reading", [False, True], ids=["write", "read"])
def test_file_that_is_no_ledger_is_refused(
    path: Path, spoil: object, error: type[LedgerError], sentence: str, reading: bool
) -> None:
    """A spoilt file is never taken for a new one, and stays as it is."""
    reopen(path).close()
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(error, match=sentence) as caught:
        open_snapshot(path, ENVIRONMENT) if reading else reopen(path)
    assert caught.value.advice
    assert path.read_bytes() == before


def test_other_environment_is_refused(path: Path) -> None:
    """A ledger is its environment's alone, and the error names the owner."""
    reopen(path).close()
    for attempt in (lambda: reopen(path, "f" * 32), lambda: open_snapshot(path, "f" * 32)):
        with pytest.raises(ForeignLedgerError) as caught:
            attempt()
        assert caught.value.owner == ENVIRONMENT


def test_nothing_to_read_yet(path: Path) -> None:
    """A reader makes no ledger."""
    with pytest.raises(MissingLedgerError):
        open_snapshot(path, ENVIRONMENT)
    assert not path.parent.exists()


def test_folder_that_is_a_file(tmp_path: Path) -> None:
    """A path that cannot be a folder is said so."""
    (tmp_path / "state").write_text("")
    with pytest.raises(LedgerError) as caught:
        reopen(tmp_path / "state" / "ledger.db")
    assert caught.value.advice


def test_snapshot_cannot_write(path: Path) -> None:
    """The read path is read-only by the driver."""
    reopen(path).close()
    snapshot = open_snapshot(path, ENVIRONMENT)
    with pytest.raises(ReadOnlyLedgerError), snapshot._database.write():
        pass
    snapshot.close()


def test_full_disk_loses_nothing(path: Path) -> None:
    """A transaction that finds the disk full is undone, and works once there is room."""
    ledger = reopen(path)
    connection = ledger._database.connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    before = ledger.read_live()
    steps = [submit_step(f"r{n}") for n in range(500)]
    with pytest.raises(LedgerFullError, match="full") as caught:
        carry_out(ledger, steps)
    assert isinstance(caught.value, LedgerUnavailable)
    assert ledger.read_live() == before
    connection.execute(f"PRAGMA max_page_count = {pages + 4000}")
    carry_out(ledger, steps)
    assert len(ledger.read_book().runs) == 500
    ledger.close()


def test_busy_ledger_is_said_so(path: Path) -> None:
    """Who waits too long for another's transaction is told, and may try again."""
    ledger, other = reopen(path), reopen(path)
    ledger._database.connection.execute("PRAGMA busy_timeout = 20")
    with other._database.write(), pytest.raises(LedgerBusyError, match="another process"):
        ledger.take_fence(who="a", now_ms=1)
    assert ledger.take_fence(who="a", now_ms=1) == 1
    ledger.close()
    other.close()


def test_older_ledger_is_upgraded_where_that_is_asked_for(path: Path) -> None:
    """Opening it changes nothing; an upgrade has its backup written first, then runs the migrations."""
    write_file(path, OLDER[0])
    before = path.read_bytes()
    for attempt in (
        lambda: open_ledger(path, UID, CountingIds(), StillClock()),
        lambda: open_snapshot(path, UID),
    ):
        with pytest.raises(OlderLedgerError, match="has version 0001") as caught:
            attempt()
        assert "fleetform state upgrade" in caught.value.advice
    assert path.read_bytes() == before

    def refuse(_source: object, version: str) -> Path:
        raise OSError(version)

    with pytest.raises(OSError, match="0001"):
        upgrade_file(path, UID, refuse)
    assert path.read_bytes() == before
    backup = path.with_name("backup")
    done = upgrade_file(path, UID, lambda _source, _version: backup)
    assert done == Upgraded(OLDER[0], schema.VERSION, backup)
    assert upgrade_file(path, UID, refuse) is None
    open_snapshot(path, UID).close()


MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /home rw - nfs4 server:/home rw
31 30 254:3 / /home/anna/local\\040disk rw - xfs /dev/vdb rw
32 22 0:41 / /mnt/far rw - fuse.sshfs anna@far:/ rw
33 32 0:42 / /mnt/far rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", "ext4"),
        ("/home", "nfs4"),
        ("/home/anna/.local/state", "nfs4"),
        ("/home/anna/local disk/state", "xfs"),
        ("/homes", "ext4"),
        ("/mnt/far/x", "tmpfs"),
    ],
)
def test_file_system_of_a_path(path: str, kind: str) -> None:
    """The deepest mount above a path holds it; of two on one point the last one shows."""
    assert filesystem.file_system_of(Path(path), MOUNTS) == kind


def test_network_file_system_is_refused(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No ledger is made on a network file system, unless somebody vouches for it."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 1 0:1 / {tmp_path} rw - nfs4 server:/ rw\n")
    monkeypatch.setattr(filesystem, "_MOUNTS", mounts)
    with pytest.raises(NetworkFileSystemError, match="nfs4"):
        reopen(path)
    assert is_new(path)
    monkeypatch.setenv(filesystem.ALLOW_VARIABLE, "1")
    reopen(path).close()


def altered(path: Path, *statements: str) -> bytes:
    """Make a ledger, change its tables behind its back, and return its bytes."""
    reopen(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("statement", "lacks"),
    [
        ("ALTER TABLE resources DROP COLUMN observed", "lacks resources.observed: an earlier"),
        ("DROP TABLE overrides", "lacks overrides: an earlier build of this version created it"),
        ("ALTER TABLE plans RENAME COLUMN who TO maker", "lacks plans.who: an earlier"),
    ],
)
def test_an_older_form_of_this_version_is_refused(path: Path, statement: str, lacks: str) -> None:
    """Who writes is told what it lacks, before anything is written."""
    before = altered(path, statement)
    with pytest.raises(DamagedLedgerError, match=lacks) as caught:
        reopen(path)
    assert "state rebuild" in caught.value.advice
    assert path.read_bytes() == before


def test_who_reads_an_older_form_is_told_the_same(path: Path) -> None:
    """At the first column that is not there, with its name."""
    altered(path, "ALTER TABLE overrides RENAME COLUMN who TO maker")
    snapshot = open_snapshot(path, ENVIRONMENT)
    with pytest.raises(DamagedLedgerError, match=r"earlier build of this .*who") as caught:
        snapshot.read_overrides()
    assert "or run `fleetform state rebuild`, which renames it" in caught.value.advice
    snapshot.close()


def test_what_somebody_added_is_no_reason_to_refuse(path: Path) -> None:
    """A table or an index of their own is nobody's loss."""
    altered(path, "CREATE TABLE notes (text)", "ALTER TABLE runs ADD COLUMN note")
    ledger = reopen(path)
    assert ledger.read_live().epoch == 1
    ledger.close()


def test_a_half_migrated_ledger_is_refused_and_left(path: Path) -> None:
    """It says the version before, and has tables of this one: an upgrade by hand that broke off."""
    before = altered(path, "UPDATE alembic_version SET version_num = '0001'")
    with pytest.raises(DamagedLedgerError, match="duplicate column name") as caught:
        upgrade_file(path, ENVIRONMENT, lambda _source, _version: path)
    assert "restore a backup with `fleetform state restore`" in caught.value.advice
    assert path.read_bytes() == before


def test_a_ledger_that_cannot_say_its_version_is_refused(path: Path) -> None:
    """Ours by its header, without the table; with a word that no release has written."""
    altered(path, "DROP TABLE alembic_version")
    for open_one in (reopen, lambda path: open_snapshot(path, ENVIRONMENT)):
        with pytest.raises(DamagedLedgerError, match="no such table: alembic_version"):
            open_one(path)
    path.unlink()
    altered(path, "UPDATE alembic_version SET version_num = '0001b'")
    for open_one in (reopen, lambda path: open_snapshot(path, ENVIRONMENT)):
        with pytest.raises(DamagedLedgerError, match="version 0001b, which no release has written"):
            open_one(path)


def test_a_fault_of_ours_stays_one(path: Path) -> None:
    """A statement that is wrong is no damage to the ledger."""
    ledger = reopen(path)
    with pytest.raises(sqlite3.OperationalError, match="syntax"), ledger._database.read() as rows:
        rows.execute("SELEC 1")
    ledger.close()
