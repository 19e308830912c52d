"""A ledger that an earlier release wrote: refused to those who read, upgraded by those who write."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleetform.store.backup import read_head
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.schema import VERSION
from integration.ledger.lab import Lab
from integration.ledger.test_full_disk import fill
from postgres_server import PostgresServer
from released import CONFIGURATION, OLDER, RELEASED, UID, write_file, write_schema


@pytest.fixture(params=["sqlite", "postgresql"])
def old(
    request: pytest.FixtureRequest, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], None]]:
    """Write a ledger of a version where the lab has its own."""
    lab.take_uid(UID)
    lab.declare(CONFIGURATION)
    if request.param == "sqlite":
        yield lambda version: write_file(lab.ledger, version)
        return
    url = request.getfixturevalue("postgres").url
    monkeypatch.setenv("FLEETFORM_LEDGER", url)
    yield lambda version: write_schema(url, version)
    lab.close()
    connection = Connection(Address.parse(url), schema=schema_of(UID))
    connection.script(f"DROP SCHEMA IF EXISTS {schema_of(UID)} CASCADE")
    connection.close()


def backups(lab: Lab) -> list[Path]:
    return sorted((lab.environment / "backups").glob("before-upgrade-*.jsonl"))


@pytest.mark.parametrize("version", OLDER)
def test_a_reader_names_the_command_that_upgrades(
    lab: Lab, old: Callable[[str], None], version: str
) -> None:
    """`plan` and `ps` change nothing, and say what to run; that command then upgrades it."""
    old(version)
    for command in ("plan", "ps", "why long", "events"):
        done = lab.run(*command.split())
        assert done.returncode == 1, command
        assert f"has version {version}" in done.stderr
        assert "fleetform state upgrade" in done.stderr
    assert not backups(lab)
    done = lab.run("state", "upgrade")
    assert done.returncode == 0, done.stderr
    (backup,) = backups(lab)
    assert str(backup) in done.stdout
    assert read_head(backup).schema == version
    assert "nothing to upgrade" in lab.run("state", "upgrade").stdout


@pytest.mark.parametrize("version", RELEASED)
def test_the_same_configuration_plans_no_change_after_an_upgrade(
    lab: Lab, old: Callable[[str], None], version: str
) -> None:
    """Digests of an earlier release are still those of this one: nothing runs again."""
    old(version)
    assert lab.run("state", "upgrade").returncode == 0
    assert lab.json("plan")["resource_changes"] == []
    states = {name: state for name, state in lab.states().items() if name != "long"}
    assert states == {
        "after": "done", "bad": "failed", "good": "done",
        "many[1]": "done", "many[2]": "done", "many[3]": "done",
    }  # fmt: skip
    assert lab.run("state", "verify").returncode == 0


# From which version matters to other tests: what is the command's own is that it upgrades.
@pytest.mark.parametrize("version", OLDER[:1])
@pytest.mark.parametrize(
    "command",
    [
        "apply -y --detach",
        "serve",
        "emergency pause --reason noise",
        "set good --apply -y description=first",
        "state rebuild --lost local-0 --lost local-1 --lost solo-0",
    ],
    ids=lambda command: command.split()[0],
)
def test_a_command_that_writes_upgrades_first(
    lab: Lab, old: Callable[[str], None], version: str, command: str
) -> None:
    """It says from which version to which, and where the backup is."""
    old(version)
    if command == "serve":
        serve = lab.start(command)
        assert serve.stdout is not None
        lines: list[str] = []
        while not lines or "serving lab" not in lines[-1]:
            lines.append(serve.stdout.readline())
            assert lines[-1], lines
        said = "".join(lines)
        serve.send_signal(signal.SIGTERM)
        lab.finish(serve)
    else:
        said = lab.run(*command.split()).stderr
    (backup,) = backups(lab)
    assert (
        f"upgraded the ledger from version {version} to {VERSION};"
        f" the backup from before is {backup}" in said
    )
    assert "good" in lab.states()


@pytest.mark.parametrize("version", OLDER)
def test_two_who_upgrade_at_once_make_one_upgrade(
    lab: Lab, old: Callable[[str], None], version: str
) -> None:
    """The second waits for the first and finds nothing to do: there is one backup."""
    old(version)
    children = [lab.start("state", "upgrade") for _ in range(3)]
    ends = [lab.finish(child) for child in children]
    assert [code for code, _ in ends] == [0, 0, 0], ends
    assert len(backups(lab)) == 1
    assert lab.json("plan")["resource_changes"] == []


@pytest.mark.parametrize("version", OLDER)
def test_a_backup_from_before_an_upgrade_can_be_put_back(
    lab: Lab, old: Callable[[str], None], version: str
) -> None:
    """This release restores it, and upgrades what it restores."""
    old(version)
    assert lab.run("state", "upgrade").returncode == 0
    (backup,) = backups(lab)
    done = lab.run("state", "restore", str(backup), "-y")
    assert done.returncode == 0, done.stderr
    assert lab.states()["many[2]"] == "done"
    assert lab.run("state", "verify").returncode == 0


_DIE = """
import os, signal, sys
from fleetform.cli.entry import main
from fleetform.store import {module} as module
{wrap}
sys.argv = ["fleetform", "state", "upgrade"]
sys.exit(main())
"""

_DIE_ON_SQLITE = """
from fleetform.store import soundness
connect, seen = soundness.connect, [0]
def counted(path):
    connection = connect(path)
    def look(statement):
        seen[0] += 1
        if seen[0] == {number}:
            os.kill(os.getpid(), signal.SIGKILL)
    connection.set_trace_callback(look)
    return connection
soundness.connect = counted
"""


def test_a_crash_amid_an_upgrade_leaves_the_old_ledger_or_the_new_one(lab: Lab) -> None:
    """Killed before each of its statements in turn, it has upgraded nothing or all."""
    lab.take_uid(UID)
    lab.declare(CONFIGURATION)
    version, number, ends = OLDER[0], 0, set()
    while True:
        number += 7
        lab.lose_ledger()
        write_file(lab.ledger, version)
        wrap = _DIE_ON_SQLITE.format(number=number)
        done = lab.run_python(_DIE.format(module="soundness", wrap=wrap))
        with contextlib.closing(sqlite3.connect(lab.ledger)) as connection:
            (found,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert found in {version, VERSION}
        ends.add(found)
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr
            break
        assert lab.run("state", "upgrade").returncode == 0
        assert lab.json("plan")["resource_changes"] == []
    assert version in ends
    assert number > 30


def test_a_crash_amid_an_upgrade_on_postgresql(
    lab: Lab, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after its last statement and before the commit, it has upgraded nothing."""
    monkeypatch.setenv("FLEETFORM_LEDGER", postgres.url)
    lab.take_uid(UID)
    lab.declare(CONFIGURATION)
    write_schema(postgres.url, OLDER[0])
    wrap = (
        "from fleetform.store.postgres import opening\n"
        "opening._require_shape = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = lab.run_python(_DIE.format(module="soundness", wrap=wrap))
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert f"has version {OLDER[0]}" in lab.run("plan").stderr
    assert lab.run("state", "upgrade").returncode == 0
    assert lab.json("plan")["resource_changes"] == []


def test_no_room_for_the_backup(lab: Lab, small_disk: Path) -> None:
    """Nothing is upgraded where its backup cannot be written; with room again it is."""
    lab.take_uid(UID)
    lab.declare(CONFIGURATION)
    write_file(lab.ledger, OLDER[0])
    filler = fill(small_disk)
    for command in ("apply -y", "state upgrade"):
        done = lab.run(*command.split())
        assert done.returncode == 1, done.stdout + done.stderr
        assert "help:" in done.stderr
        assert "bug in fleetform" not in done.stderr
    filler.unlink()
    assert not backups(lab)
    assert f"has version {OLDER[0]}" in lab.run("plan").stderr
    assert lab.run("state", "upgrade").returncode == 0


_HOLD = """
import sys
from pathlib import Path
from fleetform.store.lock import try_lock
lock = try_lock(Path({path!r}), who="ada", command="serve", now_ms=1)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_process_of_the_earlier_release_keeps_its_ledger(lab: Lab) -> None:
    """While it manages the environment nothing is upgraded under it, and it is named."""
    lab.take_uid(UID)
    lab.declare(CONFIGURATION)
    write_file(lab.ledger, OLDER[0])
    holder = subprocess.Popen(
        [
            sys.executable, "-c",
            _HOLD.format(path=str(lab.environment / "manager.lock")),
        ],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        done = lab.run("apply", "-y")
        assert done.returncode == 6, done.stdout + done.stderr
        assert f"serve of ada (pid {holder.pid} on {os.uname().nodename})" in done.stderr
        assert not backups(lab)
    finally:
        holder.communicate()
    assert lab.run("state", "upgrade").returncode == 0


def test_a_ledger_of_a_later_release_is_refused(lab: Lab) -> None:
    """Whoever reads or writes is told to upgrade fleetform, and nothing is changed."""
    lab.take_uid(UID)
    lab.declare(CONFIGURATION)
    write_file(lab.ledger, OLDER[0])
    with contextlib.closing(sqlite3.connect(lab.ledger)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0099'")
    for command in ("plan", "apply -y", "state upgrade"):
        done = lab.run(*command.split())
        assert done.returncode == 1, command
        assert "has version 0099" in done.stderr
        assert "help: upgrade fleetform" in done.stderr


def test_old_backups_of_one_kind_go(lab: Lab) -> None:
    """At most ten stay, the newest, whatever else lies there."""
    lab.take_uid(UID)
    lab.declare(CONFIGURATION)
    folder = lab.environment / "backups"
    folder.mkdir(parents=True)
    for number in range(20):
        (folder / f"before-upgrade-{OLDER[0]}-{number}.jsonl").touch()
    (folder / "before-restore-3.jsonl").touch()
    (folder / "mine.jsonl").touch()
    write_file(lab.ledger, OLDER[0])
    assert lab.run("state", "upgrade").returncode == 0
    assert len(backups(lab)) == 10
    assert f"before-upgrade-{OLDER[0]}-19.jsonl" in {one.name for one in backups(lab)}
    assert (folder / "before-restore-3.jsonl").exists()
    assert (folder / "mine.jsonl").exists()
