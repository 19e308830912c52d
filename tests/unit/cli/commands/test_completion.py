from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(typed, shell):
    """What is printed is for that shell and calls this program."""
    code, out, _err = typed("completion", shell)
    assert code == 0
    assert "_FLEETFORM_COMPLETE" in out


def test_a_shell_without_completion_is_refused_with_those_that_have_one(typed, monkeypatch):
    """The shell is taken from $SHELL, and a foreign one gets an answer."""
    monkeypatch.setenv("SHELL", "/usr/bin/tcsh")
    code, _out, err = typed("completion")
    assert code == 1
    assert "bash, zsh, fish" in err


def completed(words, cwd):
    finished = subprocess.run(
        [sys.executable, "-c", "import sys; from fleetform.cli.main import main; sys.exit(main())"],
        env={**os.environ, "_FLEETFORM_COMPLETE": "bash_complete", "COMP_WORDS": words,
             "COMP_CWORD": str(len(words.split()) - 1)},
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.stderr == ""
    return [line.partition(",")[2] for line in finished.stdout.splitlines() if line]


def test_commands_and_runs_are_completed(lab):
    """From the table, and from the ledger."""
    assert completed("fleetform p", lab) == ["plan", "ps", "proxy"]
    assert completed("fleetform logs swe", lab) == ["sweep[lr=0.1]", "sweep[lr=0.2]"]


def test_completing_outside_an_environment_says_nothing(tmp_path):
    """A message would land in the middle of somebody's line."""
    assert completed("fleetform logs x", tmp_path) == []
