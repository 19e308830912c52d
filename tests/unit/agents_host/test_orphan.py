"""A host that no controller needs any more ends itself."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from fleetform.agents.host.contact import boot_ms
from fleetform.agents.host.orphan import is_watched, note_needed
from fleetform.providers.first_boot.orphan_watch import FOLDER, orphan_watch


def test_the_agent_notes_the_latest_moment(tmp_path):
    """An earlier one, of another agent of the host, does not take its place."""
    for seconds in (5, 9, 7):
        note_needed(seconds * 1000, str(tmp_path))
    assert (tmp_path / "needed").read_text() == "9\n"


def test_a_broken_note_is_written_again(tmp_path):
    """A full disk left half of it."""
    (tmp_path / "needed").write_text("x")
    note_needed(5000, str(tmp_path))
    assert (tmp_path / "needed").read_text() == "5\n"


def test_hosts_without_a_watch(tmp_path):
    """The agent looks for the folder that the watch makes."""
    assert is_watched(str(tmp_path))
    assert not is_watched(str(tmp_path / "absent"))
    assert FOLDER in orphan_watch(3600)[-1]


@pytest.fixture
def watch(tmp_path):
    """Start the real watch with a `shutdown` that leaves a file; return the folder and that file."""
    programs, folder, ended = tmp_path / "programs", tmp_path / "run", tmp_path / "ended"
    programs.mkdir()
    # The watch ends with its host: here, with the process that it calls.
    (programs / "shutdown").write_text(f'#!/bin/sh\necho "$@" > {ended}\nkill $PPID\n')
    (programs / "shutdown").chmod(0o755)
    pids = []

    def start(seconds):
        command = orphan_watch(seconds, folder=str(folder), look_seconds=0.05)
        command[-1] = command[-1].replace("sh -c '", f"sh -c 'echo $$ > {tmp_path}/pid; ")
        subprocess.run(command, check=True, env={"PATH": f"{programs}:{os.environ['PATH']}"})
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        pids.append(int((tmp_path / "pid").read_text()))
        return folder, ended

    yield start
    for pid in pids:
        if not ended.exists():
            os.kill(pid, 9)


def until(happened):
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_host_that_was_needed_long_ago_shuts_down(watch):
    """It counts from its boot where it was never needed."""
    folder, ended = watch(1)
    until(lambda: ended.exists() and ended.read_text())
    assert ended.read_text() == "-h now\n"
    assert folder.is_dir()


def test_a_host_that_is_needed_stays(watch, tmp_path):
    """As long as the note is recent it stays, and it ends when the note has become old."""
    (tmp_path / "run").mkdir()
    note_needed(boot_ms() + 3000, str(tmp_path / "run"))
    began = time.monotonic()
    _, ended = watch(2)
    until(ended.exists)
    assert time.monotonic() - began > 3
