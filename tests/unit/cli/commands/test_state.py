from __future__ import annotations

import json

import pytest

import applied
from fleetform.cli.exit import Exit


def test_a_backup_is_written_once_and_put_back(typed, asked, lab, tmp_path):
    """It is never overwritten; a restore keeps what was there and names the next command."""
    file = tmp_path / "backup"
    assert asked("state", "backup", str(file))["environment_uid"] == applied.UID
    code, _out, err = typed("state", "backup", str(file))
    assert (code, "exists already" in err) == (Exit.ERROR, True)
    code, out, _err = typed("state", "restore", str(file), "-y")
    assert code == 0
    assert "before-restore-" in out
    assert "fleetform state rebuild" in out
    (kept,) = (tmp_path / "state" / "environments" / applied.UID / "backups").iterdir()
    assert json.loads(kept.read_text().splitlines()[0])["epoch"] == 1
    assert "recovering" in typed("plan")[1]


def test_another_environments_backup_is_refused(typed, lab, tmp_path):
    """It says whose it is, and nothing is touched."""
    file = tmp_path / "backup"
    typed("state", "backup", str(file))
    text = (lab / "environment.yaml").read_text()
    (lab / "environment.yaml").write_text(text.replace(applied.UID, "f" * 32))
    code, _out, err = typed("state", "restore", str(file), "-y")
    assert (code, f"{applied.UID[:8]}…" in err) == (Exit.ERROR, True)
    assert not (tmp_path / "state" / "environments" / ("f" * 32)).exists()


def test_a_restore_waits_for_nobody(typed, lab, tmp_path):
    """Whoever manages the environment keeps it; the exit code is that of a lock."""
    from fleetform.app.managing import try_manage
    from fleetform.app.workspace import Workspace

    file = tmp_path / "backup"
    typed("state", "backup", str(file))
    with try_manage(Workspace.open(str(lab)), who="ada", command="serve"):
        assert typed("state", "restore", str(file), "-y")[0] == Exit.LOCKED


def test_a_lost_ledger_is_restored(typed, asked, lab, tmp_path):
    """Nothing needs to be there; a damaged file is put aside with its log."""
    file = tmp_path / "backup"
    typed("state", "backup", str(file))
    (ledger,) = (tmp_path / "state" / "environments").glob("*/ledger.db")
    ledger.write_bytes(b"no database" * 500)
    code, out, err = typed("state", "restore", str(file), "-y")
    assert code == 0, err
    assert "damaged-" in out
    for one in ledger.parent.glob("ledger.db*"):
        one.unlink()
    assert typed("state", "restore", str(file), "-y")[0] == 0
    assert {row["name"] for row in asked("ps")} >= {"train", "bad"}


@pytest.mark.parametrize(
    "content", [b"no database" * 500, b"", None], ids=["garbage", "empty", "cut"]
)
def test_a_damaged_ledger_is_rebuilt(typed, asked, lab, tmp_path, content):
    """What every command advises works: it is put aside, and the hosts are asked."""
    (ledger,) = (tmp_path / "state" / "environments").glob("*/ledger.db")
    if content is None:
        content = ledger.read_bytes()[: 2 * 4096]
        for suffix in ("-wal", "-shm"):
            ledger.with_name(ledger.name + suffix).unlink(missing_ok=True)
    ledger.write_bytes(content)
    code, _out, err = typed("plan")
    assert (code, "state rebuild" in err) == (Exit.ERROR, True)
    assert typed("state", "rebuild", "--dry-run")[0] == 0
    assert ledger.read_bytes() == content
    code, out, err = typed("state", "rebuild")
    assert code == 0, err
    (aside,) = (ledger.parent / "backups").glob("damaged-*")
    assert str(aside) in out
    assert (aside / "ledger.db").read_bytes() == content
    assert typed("state", "verify")[0] == 0


def test_a_rebuild_keeps_what_was_there(asked, lab):
    """The backup's name says what was about to happen."""
    assert "before-rebuild-" in asked("state", "rebuild")["kept"]


def test_a_sound_ledger_is_called_so(typed, asked, lab):
    """Also as JSON; hosts are asked only when that is wanted."""
    assert asked("state", "verify") == {"flaws": [], "hosts": None}
    assert "sound" in typed("state", "verify")[1]


def test_verify_finds_a_row_that_was_changed(typed, lab, tmp_path):
    """It exits with 1 and says what to do."""
    import sqlite3

    (ledger,) = (tmp_path / "state" / "environments").glob("*/ledger.db")
    with sqlite3.connect(ledger) as connection:
        connection.execute("UPDATE resources SET document = '{}' WHERE name = 'train'")
    code, out, _err = typed("state", "verify")
    assert code == Exit.ERROR
    assert "run/train" in out
    assert "state restore" in out


def test_nothing_applied_is_nothing_to_keep(typed, root, monkeypatch, tmp_path):
    """There is neither a backup of nothing nor a proof of it."""
    monkeypatch.chdir(root)
    assert typed("state", "backup", str(tmp_path / "backup"))[0] == Exit.ERROR
    assert typed("state", "verify")[0] == Exit.ERROR
    assert typed("state", "rebuild", "--from-nothing")[0] == Exit.ERROR


def test_a_lost_ledger_would_differ_where_no_host_knows(asked, lab):
    """These runs were never on a host: the proof says that they would be unknown."""
    differs = asked("state", "rebuild", "--dry-run", "--from-nothing")["differs"]
    assert {"run/train", "run/bad"} <= {row["resource"] for row in differs}
    assert all(row["here"] != row["rebuilt"] for row in differs)
