"""A state folder, or a part of it, that was put back as it was before, and what tells that."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.ledger.lab import FLEET, Lab, task

SIZE = 60


def note_of(lab: Lab) -> Path:
    """Return the file that says how far the ledger has come."""
    return Path(os.environ["FLEETFORM_CONFIG_HOME"]) / "generations" / lab.uid


def put_back(lab: Lab, copy: Path) -> None:
    """Replace the whole state folder by an older copy of it."""
    lab.end_agents()
    shutil.rmtree(lab.state)
    subprocess.run(["cp", "-a", copy, lab.state], check=True)


def copy_amid_an_array(lab: Lab, copy: Path) -> None:
    """Run an array to its end, and copy the state folder when a third of it has run."""
    lab.declare(
        FLEET,
        task(
            "many",
            lab.says("$FLEETFORM_ARRAY_INDEX"),
            "sleep 0.2",
            more=f"array: 1-{SIZE}\nresources: {{cpu: 2, memory: 1GB}}\n",
        ),
    )
    apply = lab.start("apply", "-y")
    lab.wait_until(lambda: len(lab.said()) >= SIZE // 3, "a third")
    # As a snapshot of the disk would have it: of one moment.
    apply.send_signal(signal.SIGSTOP)
    subprocess.run(["cp", "-a", lab.state, copy], check=True)
    apply.send_signal(signal.SIGCONT)
    code, output = lab.finish(apply)
    assert code == 0, output
    assert len(lab.said()) == SIZE


def test_a_whole_state_folder_put_back_runs_nothing_again(lab: Lab, tmp_path: Path) -> None:
    """It is recognised by what lies outside of it, and after a rebuild no element runs a second time."""
    copy = tmp_path / "copy"
    copy_amid_an_array(lab, copy)
    put_back(lab, copy)
    for command in ("plan", "apply -y", "serve --once", "apply -y"):
        done = lab.run(*command.split())
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert re.search(
            rf"{note_of(lab)} records that ledger \w+ was at commit \d+ of epoch 1, and this one"
            r" is at commit \d+ of epoch 1",
            done.stdout + done.stderr,
        ), (command, done.stdout, done.stderr)
        assert "fleetform state rebuild" in done.stdout + done.stderr
    assert len(lab.said()) == SIZE
    done = lab.run("state", "rebuild")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "unknown" in done.stdout
    # Whether a job is over whose supervisor is gone may take a host long to prove: not waited for.
    lab.run("apply", "-y", "--detach")
    states = Counter(lab.states().values())
    assert states["done"] >= 1
    assert states["unknown"] >= SIZE // 3
    assert sum(states.values()) == SIZE
    assert lab.states()[f"many[{SIZE}]"] == "unknown"
    assert sorted(lab.said(), key=int) == [str(number) for number in range(1, SIZE + 1)]


def test_hosts_that_kept_their_memory_settle_all(lab: Lab) -> None:
    """Where only the ledger was put back, what its hosts remember is proof, and nothing is unknown."""
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("apply", "-y").returncode == 0
    copy = lab.folder / "copy.db"
    lab.copy_ledger(copy)
    lab.declare(FLEET, task("first", lab.says("first")), task("second", lab.says("second")))
    assert lab.run("apply", "-y").returncode == 0
    lab.restore_ledger(copy)
    assert "was at commit" in lab.run("apply", "-y").stdout
    assert lab.run("state", "rebuild").returncode == 0
    assert lab.run("apply", "-y").returncode == 0
    assert lab.states() == {"first": "done", "second": "done"}
    assert lab.said() == ["first", "second"]


def _lose_log(lab: Lab) -> None:
    """Leave the file as it was made: all that was committed since was in the log beside it."""
    for suffix in ("-wal", "-shm"):
        lab.ledger.with_name(f"ledger.db{suffix}").unlink(missing_ok=True)
    shutil.copy(lab.folder / "new.db", lab.ledger)


def _empty(lab: Lab) -> None:
    lab.lose_ledger()
    lab.ledger.touch()


def _remove(lab: Lab) -> None:
    lab.end_agents()
    shutil.rmtree(lab.state)


@pytest.mark.parametrize("spoil", [_lose_log, _empty, _remove], ids=lambda one: one.__name__[1:])
def test_a_ledger_without_its_rows_is_never_taken_for_a_new_one(
    lab: Lab, spoil: Callable[[Lab], None]
) -> None:
    """Who plans gets an error and no proposal to create all of it; who looks is told in a line."""
    lab.declare(FLEET, task("first", lab.says("first")))
    serve = lab.start("serve")
    lab.wait_until(lab.ledger.exists, "a ledger")
    shutil.copy(lab.ledger, lab.folder / "new.db")
    lab.wait_until_state("first", "done")
    serve.kill()
    lab.finish(serve)
    spoil(lab)
    for command in ("plan", "apply -y"):
        done = lab.run(*command.split())
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert "state rebuild" in done.stdout + done.stderr
        assert "to create" not in done.stdout
    for command in ("ps", "why first", "events", "history", "volume list"):
        said = lab.run(*command.split()).stderr
        assert "was at commit" in said or "content was lost" in said, (command, said)
    assert lab.said() == ["first"]


def test_looking_does_not_hide_an_older_ledger(lab: Lab) -> None:
    """However often people plan and look, a ledger that was put back stays recognised."""
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("apply", "-y").returncode == 0
    copy = lab.folder / "copy.db"
    lab.copy_ledger(copy)
    lab.declare(FLEET, task("first", lab.says("first")), task("second", lab.says("second")))
    assert lab.run("apply", "-y").returncode == 0
    lab.restore_ledger(copy)
    for _ in range(12):
        assert lab.run("plan").returncode == 1
    assert lab.run("emergency", "pause", "--reason", "noise").returncode == 0
    assert lab.run("apply", "-y").returncode == 1


def test_a_restored_backup_is_no_surprise(lab: Lab) -> None:
    """`state restore` takes a new epoch and notes it: after a rebuild all goes on."""
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("apply", "-y").returncode == 0
    backup = lab.folder / "backup"
    assert lab.run("state", "backup", str(backup)).returncode == 0
    lab.declare(FLEET, task("first", lab.says("first")), task("second", lab.says("second")))
    assert lab.run("apply", "-y").returncode == 0
    assert lab.run("state", "restore", str(backup), "-y").returncode == 0
    done = lab.run("apply", "-y")
    assert "it was restored from a backup" in done.stdout + done.stderr
    assert lab.run("state", "rebuild").returncode == 0
    assert lab.run("apply", "-y").returncode == 0
    assert lab.states() == {"first": "done", "second": "done"}
    assert lab.said() == ["first", "second"]


@pytest.mark.parametrize("content", ["", "{", '{"ledger_id": 3}', "\x00" * 40])
def test_a_damaged_note_proves_nothing(lab: Lab, content: str) -> None:
    """It is written again by the next command that manages the environment."""
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("apply", "-y").returncode == 0
    note_of(lab).write_text(content)
    assert lab.run("plan").returncode == 0
    lab.declare(FLEET, task("first", lab.says("first")), task("second", lab.says("second")))
    assert lab.run("apply", "-y").returncode == 0
    assert '"commits": ' in note_of(lab).read_text()


def test_a_note_that_cannot_be_written_is_said_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All works without it, as in a container whose home is read-only; an empty variable ends the note."""
    monkeypatch.setenv("FLEETFORM_CONFIG_HOME", "/proc/no/such/place")
    lab.declare(FLEET, task("first", lab.says("first")))
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("/proc/no/such/place") == 1
    monkeypatch.setenv("FLEETFORM_CONFIG_HOME", "")
    lab.declare(FLEET, task("first", lab.says("first")), task("second", lab.says("second")))
    done = lab.run("apply", "-y")
    assert done.returncode == 0
    assert "cannot be written" not in done.stdout + done.stderr


def test_to_begin_anew_is_to_remove_the_note(lab: Lab) -> None:
    """Whoever removed the state folder on purpose is told which file to remove."""
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("apply", "-y").returncode == 0
    _remove(lab)
    said = lab.run("plan").stdout
    assert f"{note_of(lab)} records that" in said
    assert "to start with an empty ledger, remove that file" in said
    note_of(lab).unlink()
    assert lab.run("apply", "-y").returncode == 0
    assert lab.said() == ["first", "first"]


def test_a_state_folder_that_is_gone_leaves_everything_unknown(lab: Lab) -> None:
    """Where only this machine remembers, a rebuild runs nothing again, and says what is unknown."""
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("apply", "-y").returncode == 0
    _remove(lab)
    done = lab.run("state", "rebuild", "--dry-run")
    assert done.returncode == 0
    assert "unknown" in done.stdout
    assert not lab.state.exists()
    assert lab.run("apply", "-y").returncode == 1
    assert lab.run("state", "rebuild").returncode == 0
    lab.run("apply", "-y")
    assert lab.said() == ["first"]
    assert lab.states() == {"first": "unknown"}
