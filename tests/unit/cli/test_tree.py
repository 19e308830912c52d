"""What a command opens, it closes: whoever calls commands one after another keeps no file open."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetform.app.workspace import Workspace
from fleetform.cli.tree import directory_words


@pytest.mark.parametrize(
    "line",
    [
        "blame run/train",
        "diff train bad",
        "emergency list",
        "events",
        "fleet",
        "fleet show local",
        "history",
        "import volume/new --from new",
        "lock",
        "lock show",
        "logs train",
        "plan",
        "ps",
        "rerun train",
        "stop nobody",
        "volume",
        "volume show data",
        "why train",
        "why nobody",
    ],
)
def test_a_command_closes_the_ledger(typed, lab, tmp_path, line):
    """Also one that refuses; nobody waits for the garbage collector to do it."""
    typed(*line.split())
    assert [name for name in _open_files() if name.startswith(str(tmp_path / "state"))] == []


def test_completion_closes_the_ledger(typed, lab, tmp_path, monkeypatch):
    """A shell asks on each key press."""
    monkeypatch.setenv("_FLEETFORM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "fleetform why ")
    monkeypatch.setenv("COMP_CWORD", "2")
    _code, out, _err = typed()
    assert "train" in out
    assert [name for name in _open_files() if name.startswith(str(tmp_path / "state"))] == []


def _open_files():
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except OSError:  # The folder's own, which is closed by now.
            continue
    return sorted(found)


def test_a_command_that_finds_the_default_environment_needs_no_folder(root, tmp_path, monkeypatch):
    """Commands that plan or apply never use it by themselves: they keep their -C."""
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.chdir(outside)
    workspace = Workspace.open(str(root))
    assert directory_words(workspace, finds_default=True) == f" -C {root}"
    monkeypatch.setenv("FLEETFORM_ENVIRONMENT", str(root))
    assert directory_words(workspace, finds_default=True) == ""
    assert directory_words(workspace) == f" -C {root}"
    monkeypatch.chdir(root)
    assert directory_words(workspace) == ""
