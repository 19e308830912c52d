"""What lies where the ledger should be, and is none that may be used."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.ledger.lab import FLEET, Lab, task


def _applied(lab: Lab) -> None:
    lab.declare(FLEET, task("one", lab.says("one")))
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stderr
    assert lab.said() == ["one"]


def _zero(lab: Lab) -> None:
    lab.ledger.write_bytes(b"")


def _garbage(lab: Lab) -> None:
    lab.ledger.write_bytes(b"this is no database\n" * 500)


def _torn(lab: Lab) -> None:
    """The first page is whole and the rest is not."""
    content = bytearray(lab.ledger.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    lab.ledger.write_bytes(bytes(content))


def _another_database(lab: Lab) -> None:
    with contextlib.closing(sqlite3.connect(lab.ledger)) as connection:
        connection.execute("CREATE TABLE diary (day TEXT)")


def _newer(lab: Lab) -> None:
    with contextlib.closing(sqlite3.connect(lab.ledger, isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


def _foreign(lab: Lab) -> None:
    with contextlib.closing(sqlite3.connect(lab.ledger, isolation_level=None)) as connection:
        connection.execute("UPDATE meta SET environment_uid = ?", ("f" * 32,))


def _without_a_table(lab: Lab) -> None:
    with contextlib.closing(sqlite3.connect(lab.ledger, isolation_level=None)) as connection:
        connection.execute("DROP TABLE overrides")


def _of_no_release(lab: Lab) -> None:
    with contextlib.closing(sqlite3.connect(lab.ledger, isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001b'")


@pytest.mark.parametrize(
    ("damage", "word", "rebuilt"),
    [
        (_zero, "is empty", True),
        (_garbage, "not a database", True),
        (_torn, "damaged", True),
        (_another_database, "not a ledger", True),
        (_without_a_table, "an earlier build of this version created it", True),
        (_of_no_release, "0001b, which no release has written", True),
        (_newer, "9999", False),
        (_foreign, "f" * 8 + "…", False),
    ],
    ids=[
        "zero bytes",
        "garbage",
        "torn",
        "another database",
        "without a table",
        "of no release",
        "newer",
        "another environment's",
    ],
)
def test_what_is_no_ledger_is_refused_and_kept(
    lab: Lab, damage: Callable[[Lab], None], word: str, rebuilt: bool
) -> None:
    """
    Each command says what is wrong and what to do, and neither runs anything nor writes.

    A rebuild puts aside what cannot be read, and what others can read is theirs.
    """
    _applied(lab)
    if rebuilt:
        copy = lab.folder / "copy.db"
        lab.copy_ledger(copy)
        lab.restore_ledger(copy)
        if damage is _another_database:
            lab.lose_ledger()
    damage(lab)
    before = lab.ledger.read_bytes()
    refused = [["plan"], ["apply", "-y"], ["ps"], ["serve", "--once"]]
    for command in refused if rebuilt else [*refused, ["state", "rebuild"]]:
        done = lab.run(*command)
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert word in done.stderr, command
        assert "help:" in done.stderr, command
        assert "Traceback" not in done.stderr
        assert "bug in fleetform" not in done.stderr
    assert lab.ledger.read_bytes() == before
    if rebuilt:
        assert "fleetform state rebuild" in done.stderr
        done = lab.run("state", "rebuild")
        assert done.returncode == 0, done.stdout + done.stderr
        kept = [one for one in lab.ledger.parent.rglob("*") if one != lab.ledger and one.is_file()]
        assert before in [one.read_bytes() for one in kept]
        done = lab.run("apply", "-y")
        assert done.returncode == 0, done.stdout + done.stderr
    assert lab.said() == ["one"]


def test_a_damaged_ledger_is_moved_away_and_rebuilt(lab: Lab) -> None:
    """Who moves it away by hand gets a ledger that runs nothing again, too."""
    _applied(lab)
    lab.lose_ledger()
    _garbage(lab)
    assert lab.run("apply", "-y").returncode == 1
    lab.ledger.rename(lab.folder / "moved.db")
    assert lab.run("state", "rebuild").returncode == 0
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.said() == ["one"]


def test_a_state_folder_that_cannot_be_written_is_said(lab: Lab, small_disk: Path) -> None:
    """On a disk that is mounted read-only a plan is made and an apply refused."""
    _applied(lab)
    lab.end_agents()
    _remount_read_only(small_disk)
    lab.declare(FLEET, task("one", lab.says("one")), task("two", lab.says("two")))
    done = lab.run("apply", "-y")
    assert done.returncode == 1, done.stdout
    assert "help:" in done.stderr
    assert "bug in fleetform" not in done.stderr
    assert lab.said() == ["one"]
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert lab.run("apply", "-y").returncode == 0
    assert lab.said() == ["one", "two"]


def _remount_read_only(disk: Path) -> None:
    """Agents that were ended may have files open for some moments more."""
    for _ in range(300):
        if not subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=False).returncode:
            return
        time.sleep(0.1)
    pytest.fail("the disk stays in use")
