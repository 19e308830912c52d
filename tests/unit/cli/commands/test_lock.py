from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

import applied
from fleetform.app.managing import try_manage
from fleetform.app.workspace import Workspace
from fleetform.cli.exit import Exit
from fleetform.model.leadership import Holder
from fleetform.model.redaction import fingerprint

_HOLD = """
import sys, time
from pathlib import Path
from fleetform.store.lock import try_lock
lock = try_lock(Path(sys.argv[1]), who="ada", command="serve", now_ms=time.time_ns() // 1_000_000)
print("held" if lock else "not held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def held(lab):
    """Another process that manages the environment."""
    path = Workspace.open(str(lab)).paths.manager_lock
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_every_environment_is_listed(asked, typed, lab, held):
    """By name, with holder, process and since when; the same row is shown."""
    (row,) = asked("lock", "list")
    assert (row["environment"], row["uid"], row["held"]) == ("lab", applied.UID[:8], True)
    assert row["fingerprint"] == fingerprint(applied.UID)
    assert (row["command"], row["who"], row["pid"]) == ("serve", "ada", held.pid)
    assert asked("lock", "show")["lock"] == row
    assert str(held.pid) in typed("lock", "list")[1]


def test_nobody_holds_a_free_environment(asked, typed, lab):
    """It is listed all the same, and there is nothing to break."""
    (row,) = asked("lock", "list")
    assert (row["held"], row["pid"]) == (False, 0)
    code, out, _err = typed("lock", "break")
    assert (code, out.strip()) == (0, "no process manages this environment")


def test_a_holder_that_lives_is_named_and_left_alone(typed, lab, held):
    """Without --force it is refused as locked; --force needs a reason."""
    code, _out, err = typed("lock", "break")
    assert code == Exit.LOCKED
    assert str(held.pid) in err
    assert typed("lock", "break", "--force")[0] == Exit.ERROR
    assert held.poll() is None


def test_force_ends_the_holder_and_says_why(asked, typed, lab, held):
    """Its process gets SIGTERM, the lock is free, and the reason is an event."""
    code, out, _err = typed("lock", "break", "--force", "--reason", "it hangs")
    assert code == 0, out
    assert held.wait(60) == -signal.SIGTERM
    assert asked("lock", "show")["lock"]["held"] is False
    events = asked("events")
    (event,) = [one for one in events if one["kind"] == "lock.broken"]
    assert "it hangs" in event["message"]
    workspace = Workspace.open(str(lab))
    manager_lease = try_manage(workspace, who="me", command="apply")
    assert manager_lease is not None
    manager_lease.release()


def test_a_process_that_has_its_number_now_is_not_ended(typed, lab, held, monkeypatch):
    """Whoever took the environment meanwhile is left alone."""
    held.kill()
    held.wait()
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        from fleetform.app import lock as locking
        from fleetform.model.leadership import Holder

        found = Holder(bystander.pid, "ada", "serve", 1, locking.socket.gethostname())
        holders = [found]
        monkeypatch.setattr(Workspace, "manager", lambda _self: holders[-1])

        def open_after_it_has_ended(pid):
            holders.append(None)
            return pidfd_open(pid)

        pidfd_open = locking.os.pidfd_open
        monkeypatch.setattr(locking.os, "pidfd_open", open_after_it_has_ended)
        code, _out, err = typed("lock", "break", "--force", "--reason", "x")
        assert code == Exit.LOCKED, err
        time.sleep(0.1)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_what_is_open_is_shown(asked, typed, lab):
    """An apply that nobody carries out is listed with its steps, and what goes on with it."""
    from contextlib import closing

    from fleetform.app.ledger import open_for_writing
    from fleetform.app.plan import make_plan
    from fleetform.model.plan import Permissions
    from fleetform.plan.serialize import dump

    text = (lab / "tree.yaml").read_text()
    (lab / "tree.yaml").write_text(text.replace("nodes: 1", "nodes: 2", 1))
    workspace = Workspace.open(str(lab))
    plan = make_plan(workspace, workspace.load(), Permissions(), now_ms=applied.NOW_MS)
    with closing(open_for_writing(workspace)) as ledger:
        accepted = ledger.accept(plan, dump(plan), who="ada", now_ms=applied.NOW_MS)
        (step,) = [one for one in plan.steps if one.verb == "fleet.update"]
        ledger.begin_steps(accepted.apply_uid, [step], now_ms=applied.NOW_MS)
    shown = asked("lock", "show")
    (waiting,) = shown["waiting"]
    assert (waiting["apply"], waiting["open_steps"]) == (accepted.apply_uid, len(plan.steps))
    assert [one["step"] for one in shown["open_operations"]] == [step.key]
    assert "fleetform apply" in typed("lock", "show")[1]


def test_an_ended_lease_is_taken_up_again_by_whoever_lives(typed, lab, monkeypatch):
    """No process was ended, so that it is not said that somebody else may go on now."""
    holder = Holder(7, "serve", "serve", 0, "node1", fence=3, left_ms=9000)
    monkeypatch.setattr("fleetform.app.lock.break_lock", lambda *_a, **_k: holder)
    code, out, _err = typed("lock", "break", "--force", "--reason", "it hangs")
    assert code == 0
    assert "taken from serve (pid 7 on node1)" in out
    assert "takes the lease again" in out
    assert "fleetform apply --takeover" in out
    assert "goes on with it" not in out
