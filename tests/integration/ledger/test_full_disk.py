"""A disk that fills up under the ledger and the agents, and is given space again."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

from fleetform.store.filesystem import SIZE_BYTES
from integration.ledger.lab import FLEET, Lab, task

WRITER = """
import os, sys
descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while True:
    try:
        os.write(descriptor, bytes(4096))
    except OSError:
        pass
"""
"""Takes every block that becomes free, within microseconds."""


def fill(disk: Path) -> Path:
    """Take the last byte of the disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return filler


def processes_of(path: Path) -> dict[int, str]:
    """Return the processes that have this path in an argument, with the letter of their state."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(path).encode() in (folder / "cmdline").read_bytes():
                found[int(folder.name)] = (
                    (folder / "stat").read_text().rpartition(")")[2].split()[0]
                )
    return found


def test_a_full_disk_loses_nothing(lab: Lab, small_disk: Path) -> None:
    """Apply says that the disk is full; with space again the same command goes on from there."""
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("apply", "-y").returncode == 0
    filler = fill(small_disk)
    lab.declare(FLEET, task("first", lab.says("first")), task("second", lab.says("second")))
    done = lab.run("apply", "-y")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "full" in done.stderr or "no space" in done.stderr.lower(), done.stderr
    assert "bug in fleetform" not in done.stderr
    assert lab.run("ps").returncode in {0, 1}
    filler.unlink()
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.said() == ["first", "second"]
    assert lab.states() == {"first": "done", "second": "done"}


def test_a_disk_that_fills_while_runs_run(lab: Lab, small_disk: Path) -> None:
    """What ends meanwhile is told once there is space, and nothing runs twice."""
    gate = lab.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.05; done"
    lab.declare(FLEET, task("slow", lab.says("begun"), wait, lab.says("ended")))
    apply = lab.start("apply", "-y")
    lab.wait_until_said("begun")
    filler = fill(small_disk)
    gate.touch()
    lab.wait_until_said("ended")
    assert apply.poll() is None or apply.returncode == 0
    filler.unlink()
    code, output = lab.finish(apply)
    assert code == 0, output
    assert lab.states() == {"slow": "done"}
    assert lab.said() == ["begun", "ended"]


@pytest.mark.parametrize("managed", [True, False], ids=["managed", "alone"])
def test_an_emergency_needs_no_room(lab: Lab, small_disk: Path, managed: bool) -> None:
    """What was kept for it is used, and kept anew once there is room again."""
    lab.declare(FLEET, task("hungry", lab.says("begun"), "sleep 1000", more="stop_duration: 1s\n"))
    apply = lab.start("apply", "-y", *(() if managed else ("--detach",)))
    lab.wait_until_said("begun")
    if not managed:
        assert lab.finish(apply)[0] == 0
    reserve = lab.environment / "ledger.reserve"
    assert reserve.stat().st_size == SIZE_BYTES
    filler = fill(small_disk)
    done = lab.run("emergency", "stop", "hungry", "--reason", "it fills the disk")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the disk of the state folder is full" in done.stderr
    assert not reserve.exists()
    if managed:
        assert lab.finish(apply)[0] == 4
    assert lab.states() == {"hungry": "stopped"}
    assert filler.exists()
    filler.unlink()
    done = lab.run("emergency", "lift", "all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert reserve.stat().st_size == SIZE_BYTES


@pytest.mark.parametrize("manager", ["apply", "background", "none"])
def test_an_emergency_against_a_job_that_fills_the_disk(
    lab: Lab, small_disk: Path, manager: str
) -> None:
    """A job that writes all the room there is, and tries again for ever, is stopped all the same."""
    gate, filler = lab.folder / "gate", small_disk / "filler"
    writer = lab.folder / "writer.py"
    writer.write_text(WRITER, encoding="utf-8")
    lab.declare(
        FLEET,
        task(
            "hungry",
            f"until [ -e {gate} ]; do sleep 0.05; done",
            f"while :; do {sys.executable} {writer} {filler}; done",
        ),
        task("other", lab.says("begun"), "sleep 1000", more="stop_duration: 1s\n"),
    )
    apply = lab.start("apply", "-y", *(() if manager == "apply" else ("--detach",)))
    lab.wait_until_said("begun")
    lab.wait_until_state("hungry", "running")
    if manager != "apply":
        assert lab.finish(apply)[0] == 0
    if manager == "none":
        assert lab.run("controller", "stop").returncode == 0
    gate.touch()
    lab.wait_until(lambda: os.statvfs(small_disk).f_bavail == 0, "a full disk")
    done = lab.run("emergency", "stop", "hungry", "--reason", "it fills the disk")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("no controller is running" in done.stderr) == (manager == "none")
    lab.wait_until(lambda: not processes_of(filler), "the end of the job")
    (override,) = lab.json("emergency", "list")
    assert override["target"] == "run/hungry"
    assert override["reason"] == "it fills the disk"
    lab.wait_until_state("hungry", "stopped")
    assert lab.states() == {"hungry": "stopped", "other": "running"}
    assert lab.run("state", "verify").returncode == 0
    assert not any("T" in state for state in processes_of(Path("sleep\x001000")).values())


def test_no_space_for_a_first_ledger(lab: Lab, small_disk: Path) -> None:
    """Nothing half-made is left: the next apply makes the environment as if it were the first."""
    filler = fill(small_disk)
    lab.declare(FLEET, task("first", lab.says("first")))
    done = lab.run("apply", "-y")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "help:" in done.stderr
    assert "bug in fleetform" not in done.stderr
    filler.unlink()
    assert lab.run("apply", "-y").returncode == 0
    assert lab.said() == ["first"]
    assert not list(lab.environment.glob(".ledger*"))
