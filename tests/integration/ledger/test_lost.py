"""A ledger that was lost, or restored from an older copy, and what its hosts remember."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from integration.agent.rig import is_alive
from integration.ledger.lab import FLEET, Lab, task


@pytest.fixture(autouse=True)
def nothing_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the proof to the hosts: this machine notes nothing (`test_put_back` has what it notes)."""
    monkeypatch.setenv("FLEETFORM_CONFIG_HOME", "")


PAIR = FLEET.replace("nodes: 1", "nodes: 2")
VOLUME = "type: volume\nname: data\nfleet: local\npath: data\n"


def _everything(lab: Lab) -> tuple[str, ...]:
    return (
        PAIR,
        VOLUME,
        task("good", lab.says("good"), more="volumes: ['data:data']\n"),
        task("bad", lab.says("bad"), "exit 3", more="rerun: 2\n"),
        task("many", lab.says("many-$FLEETFORM_ARRAY_INDEX"), more="array: 1-3\n"),
        task("gang", lab.says("gang-$FLEETFORM_NODE_RANK"), more="nodes: 2\n"),
    )


def _ran_once(lab: Lab) -> None:
    lab.declare(*_everything(lab))
    done = lab.run("apply", "-y")
    assert done.returncode == 4, done.stdout + done.stderr
    assert sorted(lab.said()) == ["bad", "gang-0", "gang-1", "good", "many-1", "many-2", "many-3"]


def test_a_lost_ledger_starts_nothing(lab: Lab) -> None:
    """Plan, apply and serve name the hosts that remember, and none of them runs or makes anything."""
    _ran_once(lab)
    before = sorted(lab.said())
    lab.lose_ledger()
    for command in (["plan"], ["apply", "-y"], ["serve", "--once"]):
        done = lab.run(*command)
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert "local-0" in done.stdout + done.stderr, command
        assert "local-1" in done.stdout + done.stderr, command
        assert "state rebuild" in done.stdout + done.stderr, command
    assert sorted(lab.said()) == before


def test_a_rebuild_runs_nothing_again(lab: Lab) -> None:
    """What hosts prove is found; the unchanged tree then plans no change, and apply runs nothing."""
    _ran_once(lab)
    before = sorted(lab.said())
    lab.lose_ledger()
    told = {
        (row["kind"], row["name"]): row
        for row in lab.json("state", "rebuild", "--dry-run")["found"]
    }
    assert not lab.ledger.exists()
    rows = {(row["kind"], row["name"]): row for row in lab.json("state", "rebuild")["found"]}
    assert told == rows
    states = {name: row["state"] for (kind, name), row in rows.items() if kind == "run"}
    assert states == {
        "bad": "failed",
        "gang": "done",
        "good": "done",
        "many[1]": "done",
        "many[2]": "done",
        "many[3]": "done",
    }
    assert ("volume", "data") in rows
    assert ("fleet", "local") in rows
    assert lab.json("plan")["resource_changes"] == []
    assert lab.run("plan", "--detailed-exitcode").returncode == 4
    assert lab.run("apply", "-y").returncode == 0
    assert sorted(lab.said()) == before
    assert lab.states() == states


def test_what_changed_since_is_planned_as_ever(lab: Lab) -> None:
    """After a rebuild another document of a finished run is one run anew, and a new one is made."""
    _ran_once(lab)
    lab.lose_ledger()
    assert lab.run("state", "rebuild").returncode == 0
    tree = [one.replace("good >>", "better >>") for one in _everything(lab)]
    lab.declare(*tree, task("later", lab.says("later")))
    changes = {change["name"]: change["action"] for change in lab.json("plan")["resource_changes"]}
    assert changes == {"good": "replace", "later": "create"}
    lab.run("apply", "-y")
    assert sorted(lab.said())[:2] == ["bad", "better"]
    assert lab.said().count("good") == 1
    assert lab.said().count("later") == 1


def test_what_nobody_proves_is_unknown_until_somebody_says_so(lab: Lab) -> None:
    """A declared run without a record is not run, shows in each plan, and `rerun` settles it."""
    _ran_once(lab)
    lab.lose_ledger()
    lab.declare(*_everything(lab), task("lost", lab.says("lost")))
    found = {row["name"]: row for row in lab.json("state", "rebuild")["found"]}
    assert found["lost"]["state"] == "unknown"
    assert "fleetform rerun lost" in found["lost"]["note"]
    done = lab.run("apply", "-y", "--target", "lost")
    assert done.returncode == 4
    assert "`fleetform rerun NAME`" in done.stdout
    assert "lost" not in lab.said()
    assert lab.run("rerun", "lost").returncode == 0
    lab.run("apply", "-y")
    assert lab.said().count("lost") == 1
    assert lab.states()["lost"] == "done"


def test_a_running_run_goes_on_through_a_rebuild(lab: Lab) -> None:
    """Its process is not touched, its output comes in, and its end is its own."""
    gate = lab.folder / "gate"
    lab.declare(
        FLEET,
        task("long", lab.says("begun"), f"until [ -e {gate} ]; do sleep 0.05; done", "echo over"),
    )
    assert lab.run("apply", "-y", "--detach").returncode == 0
    lab.wait_until_said("begun")
    lab.lose_ledger()
    found = {row["name"]: row for row in lab.json("state", "rebuild")["found"]}
    assert found["long"]["state"] == "running"
    gate.touch()
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.states() == {"long": "done"}
    assert lab.run("logs", "long").stdout == "over\n"
    assert lab.said() == ["begun"]


def test_a_host_that_is_gone_must_be_declared_lost(lab: Lab) -> None:
    """A rebuild needs every host that it can know of, or a person's word."""
    _ran_once(lab)
    lab.lose_ledger()
    for pid in lab.agents():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    host = lab.state / "hosts" / lab.uid / "local-1"
    # What an agent cannot open keeps it from starting.
    (host / "journal").unlink()
    (host / "journal").mkdir()
    done = lab.run("state", "rebuild")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "--lost local-1" in done.stderr
    done = lab.run("state", "rebuild", "--lost", "local-1")
    assert done.returncode == 0, done.stderr
    assert lab.run("state", "rebuild", "--lost", "local-7").returncode == 1


def test_an_older_ledger_is_recognised_before_anything_starts(lab: Lab) -> None:
    """Yesterday's copy meets hosts that know today's: refused, rebuilt, and nothing runs twice."""
    copy = lab.folder / "yesterday.db"
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("apply", "-y").returncode == 0
    lab.copy_ledger(copy)
    lab.declare(FLEET, task("first", lab.says("first")), task("second", lab.says("second")))
    assert lab.run("apply", "-y").returncode == 0
    lab.restore_ledger(copy)
    for command in (["apply", "-y"], ["serve", "--once"], ["apply", "-y"]):
        done = lab.run(*command)
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert "local-0" in done.stdout + done.stderr
    assert lab.said() == ["first", "second"]
    assert lab.run("state", "rebuild").returncode == 0
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.said() == ["first", "second"]
    assert lab.states() == {"first": "done", "second": "done"}


def test_a_copy_with_the_same_fence_is_told_by_what_hosts_acknowledge(lab: Lab) -> None:
    """Within one manager's life the events that were acknowledged give an older copy away."""
    copy = lab.folder / "before.db"
    gate = lab.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.05; done"
    lab.declare(FLEET, task("one", lab.says("one"), wait), task("two", wait, lab.says("two")))
    apply = lab.start("apply", "-y")
    lab.wait_until_said("one")
    lab.copy_ledger(copy)
    gate.touch()
    code, output = lab.finish(apply)
    assert code == 0, output
    lab.restore_ledger(copy)
    done = lab.run("apply", "-y")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "local-0" in done.stdout + done.stderr
    assert lab.said() == ["one", "two"]
    assert lab.run("state", "rebuild").returncode == 0
    assert lab.run("apply", "-y").returncode == 0
    assert lab.states() == {"one": "done", "two": "done"}
    assert lab.said() == ["one", "two"]


def test_a_copy_from_within_one_manager_enters_nothing(lab: Lab) -> None:
    """A month of `serve` has one fence: what is declared since is neither entered nor run again."""
    copy = lab.folder / "before.db"
    one, two = task("one", lab.says("one")), task("two", lab.says("two"))
    gate = lab.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.05; done"
    three = task("three", lab.says("three"), wait)
    lab.declare(FLEET, one)
    serve = lab.start("serve")
    lab.wait_until_state("one", "done")
    lab.copy_ledger(copy)
    lab.declare(FLEET, one, two, three)
    lab.wait_until_state("two", "done")
    lab.wait_until_state("three", "running")
    serve.send_signal(signal.SIGTERM)
    lab.finish(serve)
    lab.restore_ledger(copy)
    for command in (["apply", "-y"], ["serve", "--once"], ["apply", "-y"]):
        done = lab.run(*command)
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert "local-0" in done.stdout + done.stderr, command
    assert lab.states() == {"one": "done"}
    assert lab.run("state", "rebuild").returncode == 0
    gate.touch()
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.states() == {"one": "done", "two": "done", "three": "done"}
    assert sorted(lab.said()) == ["one", "three", "two"]


def test_the_old_ledger_is_refused_after_a_rebuild(lab: Lab) -> None:
    """Once hosts obey the rebuilt ledger, the one that was lost and found again starts nothing."""
    old = lab.folder / "old.db"
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("apply", "-y").returncode == 0
    lab.copy_ledger(old)
    lab.lose_ledger()
    assert lab.run("state", "rebuild").returncode == 0
    lab.restore_ledger(old)
    lab.declare(FLEET, task("first", lab.says("first")), task("second", lab.says("second")))
    done = lab.run("apply", "-y")
    assert done.returncode == 1, done.stdout + done.stderr
    assert lab.said() == ["first"]


def test_a_healthy_ledger_has_nothing_to_find(lab: Lab) -> None:
    """A trial on it proves that a rebuild would find the same, and changes no host and no row."""
    _ran_once(lab)
    with contextlib.closing(sqlite3.connect(lab.ledger)) as connection:
        before = connection.execute("SELECT epoch, fence, serial, status FROM meta").fetchall()
    owner = lab.state / "hosts" / lab.uid / "local-0" / "owner.json"
    owned = json.loads(owner.read_text())
    result = lab.json("state", "rebuild", "--dry-run")
    assert result["needed"] is False
    assert {row["state"] for row in result["found"] if row["kind"] == "run"} == {"done", "failed"}
    with contextlib.closing(sqlite3.connect(lab.ledger)) as connection:
        assert (
            connection.execute("SELECT epoch, fence, serial, status FROM meta").fetchall() == before
        )
    assert json.loads(owner.read_text()) == owned
    assert lab.json("plan")["resource_changes"] == []


def _kill_agents(lab: Lab) -> None:
    """Without warning, and wait until they have gone; their jobs go on."""
    agents = lab.agents()
    for pid in agents:
        os.kill(pid, signal.SIGKILL)
    while any(map(is_alive, agents)):
        time.sleep(0.01)


def test_a_host_that_has_lost_its_memory_says_so(lab: Lab) -> None:
    """What it ran is ended and lost, and not at work for ever; a look alone finds it, too."""
    number = lab.folder / "number"
    lab.declare(FLEET)
    assert lab.run("apply", "-y").returncode == 0
    root, older = lab.state / "hosts" / lab.uid / "local-0", lab.folder / "older"
    _kill_agents(lab)
    subprocess.run(["cp", "-a", root, older], check=True)
    lab.declare(FLEET, task("long", f"echo $$ > {number}", lab.says("begun"), "sleep 600"))
    serve = lab.start("serve")
    lab.wait_until_said("begun")
    lab.wait_until_state("long", "running")
    assert lab.run("state", "verify", "--hosts").returncode == 0
    serve.send_signal(signal.SIGTERM)
    lab.finish(serve)
    _kill_agents(lab)
    shutil.rmtree(root)
    subprocess.run(["cp", "-a", older, root], check=True)
    (agent,) = (lab.state / "agent").glob("*.pyz")
    subprocess.run([sys.executable, "-I", "-S", agent, "daemon", "--root", root], check=True)
    assert not is_alive(int(number.read_text()))
    looked = lab.run("state", "verify", "--hosts")
    assert looked.returncode == 1, looked.stdout + looked.stderr
    assert "has no record of job 0 of run long" in looked.stdout
    lab.start("serve")
    lab.wait_until_state("long", "failed")
    assert "run long was lost: host local-0 was installed again" in lab.run("events").stdout
    assert lab.run("state", "verify", "--hosts").returncode == 0
    assert lab.said() == ["begun"]


def test_a_ledger_lost_with_its_hosts_is_a_new_environment(lab: Lab) -> None:
    """Nobody remembers: there is nothing to rebuild from, and an apply begins anew."""
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("apply", "-y").returncode == 0
    for pid in lab.agents():
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(lab.state)
    done = lab.run("state", "rebuild", "--dry-run")
    assert done.returncode == 0
    assert "nothing to rebuild" in done.stdout
    assert not Path(lab.state).exists()
    assert lab.run("apply", "-y").returncode == 0
    assert lab.said() == ["first", "first"]
