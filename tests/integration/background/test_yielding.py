"""A background controller makes way for commands that manage the environment, and ends by itself."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from fleetform.app.background import LINGER_MS
from integration.background.background import process_of
from integration.ledger.lab import FLEET, PATIENCE_SECONDS, Lab, task, wait_until

LONG = "until [ -e {gate} ]; do sleep 0.05; done"


@pytest.fixture
def detached(lab: Lab) -> Lab:
    """Apply a run that waits for a file `gate` and go away; returns once it has begun."""
    wait = LONG.format(gate=lab.folder / "gate")
    lab.declare(FLEET, task("long", lab.says("begun"), wait, lab.says("ended")))
    done = lab.run("apply", "-y", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    lab.wait_until_said("begun")
    return lab


def _wait_for_end(pid: int) -> None:
    """Return once a process that has given the lease up is gone."""
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), lambda: f"{pid} goes on")


def _log(lab: Lab) -> str:
    return (lab.environment / "background.log").read_text(encoding="utf-8")


def _open_gate(lab: Lab) -> None:
    (lab.folder / "gate").touch()


def test_apply_takes_its_place_and_leaves_another(detached: Lab) -> None:
    """The run of the first apply goes on; each job is started once, whoever drives it."""
    first = process_of(detached)
    wait = LONG.format(gate=detached.folder / "gate")
    detached.declare(
        FLEET,
        task("long", detached.says("begun"), wait, detached.says("ended")),
        task("more", detached.says("more")),
    )
    began = time.monotonic()
    done = detached.run("apply", "-y", "--target", "run/more")
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < PATIENCE_SECONDS
    second = process_of(detached)
    assert second != first
    assert f"(pid {second}) drives the runs" in done.stderr
    assert "gave" not in done.stderr
    _wait_for_end(first)
    _open_gate(detached)
    wait_until(lambda: detached.states()["long"] == "done", lambda: str(detached.states()))
    assert sorted(detached.said()) == ["begun", "ended", "more"]


def test_serve_takes_its_place_and_an_apply_beside_it_leaves_none(detached: Lab) -> None:
    """While `serve` drives the runs, nothing is started in the background."""
    first = process_of(detached)
    serve = detached.start("serve")
    wait_until(
        lambda: detached.run("controller", "show").stdout.startswith("serve"),
        lambda: detached.run("controller", "show").stdout,
    )
    _wait_for_end(first)
    wait = LONG.format(gate=detached.folder / "gate")
    detached.declare(
        FLEET,
        task("long", detached.says("begun"), wait, detached.says("ended")),
        task("more", wait),
    )
    done = detached.run("apply", "-y", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "background controller" not in done.stdout + done.stderr
    assert "no background controller is running" in detached.run("controller", "stop").stdout
    _open_gate(detached)
    wait_until(lambda: set(detached.states().values()) == {"done"}, lambda: str(detached.states()))
    serve.terminate()
    assert detached.finish(serve)[0] == 0
    assert detached.said() == ["begun", "ended"]


def test_the_lease_is_given_up_within_a_second(detached: Lab) -> None:
    """Whoever asks for it has it before a person has wondered."""
    from fleetform.store.lock import asking, who_holds

    pid = process_of(detached)
    lock = detached.environment / "manager.lock"
    with asking(detached.environment / "manager.request"):
        began = time.monotonic()
        while (holder := who_holds(lock)) is not None:
            assert holder.pid == pid
            assert time.monotonic() - began < 10, "it does not answer"
            time.sleep(0.01)
    # Ten times what it takes here, for a machine that does much else.
    assert time.monotonic() - began < 5
    assert _log(detached).endswith("background controller ends\n")


def test_an_error_that_ends_it_is_in_its_log(detached: Lab) -> None:
    """It ends once its state folder is moved, and the last line of its log says why."""
    pid = process_of(detached)
    moved = detached.environment.with_name("moved")
    detached.environment.rename(moved)
    _wait_for_end(pid)
    moved.rename(detached.environment)
    last = _log(detached).splitlines()[-1]
    assert "ERROR background controller ends: " in last
    assert "was moved or removed while it was in use" in last


def test_one_that_does_not_answer_is_named(detached: Lab) -> None:
    """It was stopped: the caller ends with 6 and says how it is ended, and does not hang."""
    pid = process_of(detached)
    os.kill(pid, signal.SIGSTOP)
    try:
        done = detached.run("apply", "-y", "--replace", "long", "--allow-restart")
        assert done.returncode == 6, done.stdout + done.stderr
        assert f"(pid {pid} on " in done.stderr
        assert "lock break --force" in done.stderr
        broken = detached.run("lock", "break", "--force", "--reason", "it hangs")
        assert broken.returncode == 0, broken.stderr
    finally:
        if Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGCONT)
    _open_gate(detached)
    assert detached.run("apply", "-y").returncode == 0
    assert detached.said() == ["begun", "ended"]


def test_one_that_was_killed_is_missed_and_apply_goes_on(detached: Lab) -> None:
    """`ps` says that no controller is running; the job goes on meanwhile; `apply` drives it."""
    os.kill(process_of(detached), signal.SIGKILL)
    wait_until(
        lambda: "no controller is running" in detached.run("ps").stderr,
        lambda: detached.run("ps").stderr,
    )
    assert "no controller is running" in detached.run("why", "long").stdout
    assert "no controller is running" in detached.run("logs", "long").stderr
    assert detached.run("controller").stdout == "no controller is running\n"
    # Nothing differs, and what goes on has no controller: it gets one again.
    assert detached.run("apply", "-y", "--detach").returncode == 0
    process_of(detached)
    assert "no controller" not in detached.run("ps").stderr
    _open_gate(detached)
    assert detached.run("apply", "-y").returncode == 0
    assert detached.said() == ["begun", "ended"]


def test_it_is_stopped_and_what_stands_still_is_said(detached: Lab) -> None:
    """The run is counted, also in an event; a second stop finds none, and that is no error."""
    pid = process_of(detached)
    done = detached.run("controller", "stop")
    assert done.returncode == 0
    assert f"stopped the background controller (pid {pid} on" in done.stdout
    assert "1 run is not over, and is not driven until `fleetform serve`" in done.stderr
    assert "no controller drives the runs any more" in detached.run("events").stdout
    _wait_for_end(pid)
    again = detached.run("controller", "stop")
    assert (again.returncode, again.stdout) == (0, "no background controller is running\n")
    assert "no controller is running" in detached.run("ps").stderr


def test_a_restore_asks_it_to_make_way(detached: Lab) -> None:
    """A backup is put back although a background controller had the environment."""
    pid = process_of(detached)
    backup = detached.folder / "backup"
    assert detached.run("state", "backup", str(backup)).returncode == 0
    done = detached.run("state", "restore", "-y", str(backup))
    assert done.returncode == 0, done.stdout + done.stderr
    _wait_for_end(pid)
    # The ledger is recovering: nothing may be driven before its hosts were asked.
    assert detached.run("controller").stdout == "no controller is running\n"
    done = detached.run("state", "rebuild")
    assert done.returncode == 0, done.stdout + done.stderr
    _open_gate(detached)
    assert detached.run("apply", "-y").returncode == 0
    assert detached.said() == ["begun", "ended"]


def test_a_rebuild_leaves_one_again(detached: Lab) -> None:
    """The runs were driven before it, and are driven after it."""
    first = process_of(detached)
    done = detached.run("state", "rebuild")
    assert done.returncode == 0, done.stdout + done.stderr
    assert process_of(detached) != first
    _open_gate(detached)
    wait_until(lambda: detached.states()["long"] == "done", lambda: str(detached.states()))
    assert detached.said() == ["begun", "ended"]


def test_it_ends_the_runs_of_an_emergency_stop(detached: Lab) -> None:
    """Break glass leaves the ends to it, as to every controller that is running."""
    pid = process_of(detached)
    done = detached.run("emergency", "stop", "long", "--reason", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    wait_until(lambda: detached.states()["long"] == "stopped", lambda: str(detached.states()))
    assert f"(pid {pid})" in _log(detached)
    assert detached.said() == ["begun"]


def test_two_that_detach_at_once_leave_one(lab: Lab) -> None:
    """Each run is executed once, and one process drives them all."""
    lab.declare(FLEET, task("many", lab.says("$FLEETFORM_ARRAY_INDEX"), more="array: 1-12\n"))
    for child in [lab.start("apply", "-y", "--detach") for _ in range(2)]:
        code, output = lab.finish(child)
        assert code == 0, output
    wait_until(lambda: set(lab.states().values()) == {"done"}, lambda: str(lab.states()))
    assert sorted(lab.said(), key=int) == [str(number) for number in range(1, 13)]


def test_it_waits_for_what_may_begin_later_and_then_ends(lab: Lab) -> None:
    """A run that is kept from starting keeps it, at next to no cost; after the run it ends."""
    lab.declare(FLEET)
    assert lab.run("apply", "-y").returncode == 0
    # Longer than it stays without work.
    paused = lab.run("emergency", "pause", "--for", "15s", "--reason", "fans")
    assert paused.returncode == 0, paused.stderr
    lab.declare(FLEET, task("later", lab.says("later")))
    began = time.monotonic()
    done = lab.run("apply", "-y", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    process = Path(f"/proc/{process_of(lab)}")
    before = _processor_seconds(process)
    lab.wait_until_said("later")
    used = _processor_seconds(process) - before
    assert used < (time.monotonic() - began) / 4, "it is busy while it waits"
    wait_until(lambda: not process.exists(), lambda: lab.run("controller").stdout)
    assert lab.run("controller").stdout == "no controller is running\n"
    assert _log(lab).endswith("background controller ends\n")


def test_a_retry_that_is_not_due_keeps_it(lab: Lab) -> None:
    """Its delay is longer than a background controller stays without work; the same one retries."""
    flaky = task(
        "flaky",
        lab.says("$FLEETFORM_ATTEMPT"),
        'test "$FLEETFORM_ATTEMPT" = 2',
        more=f"retry: {{on: [error], max_attempts: 2, delay: {LINGER_MS // 1000 + 5}s}}\n",
    )
    lab.declare(FLEET, flaky)
    done = lab.run("apply", "-y", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    lab.wait_until_said("1")
    process = process_of(lab)
    lab.wait_until_said("2")
    wait_until(lambda: lab.states() == {"flaky": "done"}, lambda: str(lab.states()))
    assert process_of(lab) == process
    assert lab.said() == ["1", "2"]


def test_one_that_cannot_start_is_an_error_with_its_reason(lab: Lab) -> None:
    """The plan is carried out, and whoever does not wait is told that nothing drives its runs."""
    lab.declare(FLEET, task("long", "sleep 600"))
    (lab.environment / "background.log").mkdir(parents=True)
    done = lab.run("apply", "-y", "--detach")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "no background controller could be started" in done.stderr
    assert "Is a directory" in done.stderr
    assert "no controller is running" in lab.run("ps").stderr


def _processor_seconds(process: Path) -> float:
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
