"""The tree that is shown to everybody, applied for real: a copy of it, with a state of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leftovers import end_agents

SHOWN = Path(__file__).parents[2] / "environments" / "local"
PROGRAMS = Path(sys.executable).parent
PATIENCE_SECONDS = 120.0


def _edit(path: Path, pattern: str, text: str) -> None:
    """Replace what stands there once: a tree that no longer has it fails the test."""
    content, count = re.subn(pattern, text, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert count == 1, f"{path.name}: {count} times {pattern}"
    path.write_text(content, encoding="utf-8")


class Copy:
    """The shown tree in a folder of a test: with its own uid, state and port to meet on."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "local"
        self.state = folder / "state"
        shutil.copytree(SHOWN, self.tree)
        _edit(self.tree / "environment.yaml", r"^uid: .*$", f"uid: {uuid.uuid4().hex}")
        _edit(self.tree / "environment.yaml", r"^  python: .*$", f"  python: {PROGRAMS}/python")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            _edit(self.tree / "train.yaml", r"--port \d+", f"--port {free.getsockname()[1]}")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAMS / "fleetform", *arguments],
            cwd=self.tree,
            env={
                **os.environ,
                "FLEETFORM_STATE_HOME": str(self.state),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )


@pytest.fixture
def copy(tmp_path: Path, need: Callable[[str, bool, str], None]) -> Iterator[Copy]:
    found = importlib.util.find_spec("sklearn") is not None
    need("scikit-learn", found, "the tree's programs compute with it")
    copy = Copy(tmp_path)
    yield copy
    end_agents(copy.state)


def test_the_shown_tree_does_what_it_says(copy: Copy) -> None:
    """It trains a network that reads digits, retries once, and one changed setting is one run."""
    applied = copy.run("apply", "-y")
    assert applied.returncode == 0, applied.stdout + applied.stderr

    printed = copy.run("logs", "evaluate").stdout
    found = re.search(r"accuracy .*: (\d\.\d+)$", printed, re.MULTILINE)
    assert found is not None, printed
    assert float(found[1]) > 0.9

    runs = {row["name"]: row for row in json.loads(copy.run("ps", "--json").stdout)}
    assert {row["state"] for row in runs.values()} == {"done"}
    assert runs["flaky"]["attempt"] == 2

    again = copy.run("plan", "--detailed-exitcode")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "No changes" in again.stdout

    _edit(copy.tree / "sweep.yaml", r"\[0\.001, ", "[0.0015, ")
    planned = json.loads(copy.run("plan", "--json").stdout)
    changes = [(change["address"], change["action"]) for change in planned["resource_changes"]]
    assert changes == [("run/sweep[lr=0.0015]", "replace")]
