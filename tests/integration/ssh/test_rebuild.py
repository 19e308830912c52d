"""
A ledger that was lost, or replaced by an older backup, is put together again from hosts over SSH.

Jobs write to files on their hosts, which say that nothing ran twice.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from integration.ssh.environment import Environment, wait_for_exit
from lab import Lab

pytestmark = [pytest.mark.waits, pytest.mark.usefixtures("fault_row")]


def forget_everything(environment: Environment) -> None:
    """Have this machine know as little of the environment as another one does."""
    shutil.rmtree(environment.state)
    (Path(os.environ["FLEETFORM_CONFIG_HOME"]) / "generations" / environment.uid).unlink()


def rebuild(environment: Environment, *more: str) -> str:
    done = environment.run("state", "rebuild", *more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_lost_ledger_is_refused_and_found_again_on_the_hosts(environment: Environment) -> None:
    """The run that has ended is not run again, and the one that works goes on to its end."""
    fleet = environment.fleet("node1", "node2")
    ended, works = environment.job("ended"), environment.job("works")
    apply = environment.apply(fleet, ended, works)
    environment.wait_for_start("ended")
    environment.wait_for_start("works")
    environment.open_gate("ended")
    environment.wait_until_state("ended", "done")
    environment.wait_until(lambda: environment.allocations() == 1, "the units of one")
    apply.kill()
    environment.finish(apply)
    forget_everything(environment)

    refused = environment.run("apply", "-y")
    assert refused.returncode == 1
    said = refused.stdout + refused.stderr
    assert "know this environment, and the ledger is empty" in said
    assert "fleetform state rebuild" in said
    assert environment.run("plan").returncode == 1

    trial = environment.run("state", "rebuild", "--dry-run").stdout
    assert "works" in trial
    assert "running" in trial
    shown = rebuild(environment)
    assert "its agent answers" in shown
    environment.open_gate("works")
    apply = environment.control("apply", "-y")
    wait_for_exit(environment, apply)
    assert environment.states() == {"ended": "done", "works": "done"}
    environment.check_run("works")
    assert environment.starts("ended") == [(1, 0)]
    assert environment.host_states() == {"node1": "ready", "node2": "ready"}
    assert environment.allocations() == 0
    assert "No changes" in environment.run("plan").stdout


def test_an_older_backup_runs_nothing_again(environment: Environment) -> None:
    """What ran since is found, also on a host that the backup does not know; what works goes on."""
    first = environment.job("first")
    apply = environment.apply(environment.fleet("node1"), first)
    environment.wait_for_start("first")
    environment.open_gate("first")
    wait_for_exit(environment, apply)
    copy = environment.folder / "older.db"
    environment.copy_ledger(copy)
    jobs = [environment.job(name) for name in ("second", "third")]
    apply = environment.apply(environment.fleet("node1", "node2"), first, *jobs)
    for name in ("second", "third"):
        environment.wait_for_start(name)
    environment.open_gate("second")
    environment.wait_until_state("second", "done")
    apply.kill()
    environment.finish(apply)

    environment.restore_ledger(copy)
    refused = environment.run("apply", "-y")
    assert "was at commit" in refused.stdout + refused.stderr
    rebuild(environment)
    apply = environment.control("apply", "-y")
    environment.wait_for_work("third")
    environment.open_gate("third")
    wait_for_exit(environment, apply)
    assert environment.states() == {"first": "done", "second": "done", "third": "done"}
    for name in ("first", "second", "third"):
        assert environment.starts(name) == [(1, 0)]
    environment.check_run("third")
    assert environment.host_states() == {"node1": "ready", "node2": "ready"}
    environment.check_nothing_shared()


def test_a_silent_host_must_be_given_up_by_name(environment: Environment, hosts: Lab) -> None:
    """A rebuild without it leaves unknown what it may have run; nothing starts elsewhere."""
    fleet = environment.fleet("node1", "node2")
    apply = environment.apply(fleet, environment.job("one"), environment.job("two"))
    host = environment.wait_for_start("one").host
    environment.wait_for_start("two")
    apply.kill()
    environment.finish(apply)
    forget_everything(environment)
    hosts.kill(host)
    try:
        refused = environment.run("state", "rebuild")
        assert refused.returncode == 1
        said = refused.stdout + refused.stderr
        assert f"host {host} does not report its jobs" in said
        assert f"pass --lost {host}" in said
        rebuild(environment, "--lost", host)
        assert environment.states() == {"one": "unknown", "two": "running"}
    finally:
        hosts.start(host)
    environment.open_gate("two")
    serve = environment.control("serve")
    environment.wait_for_done(serve, "two")
    assert environment.starts("one") == [(1, 0)]
    assert environment.starts("two") == [(1, 0)]
