from __future__ import annotations

import os
import pty
import sys

import pytest


def test_nobody_to_ask_is_a_refusal(typed, root, monkeypatch):
    """A pipeline that forgot -y changes nothing and is told what to pass."""
    with open(os.devnull, encoding="utf-8") as nothing:  # noqa: PTH123 -- os.devnull is no Path
        monkeypatch.setattr(sys, "stdin", nothing)
        code, out, err = typed("apply", str(root))
    assert code == 1
    assert "train" in out
    assert err.endswith("help: look at the plan above, then pass -y to apply it\n")


@pytest.mark.parametrize("answer", ["n", "", "yess"])
def test_anything_but_yes_is_no(typed, root, monkeypatch, answer):
    """A return key pressed by accident changes nothing."""
    with terminal(answer) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        code, _out, err = typed("apply", str(root))
    assert code == 1
    assert "changes? [y/N]" in err
    assert err.endswith("error: not confirmed: nothing was changed\n")
    assert typed("ps", str(root))[0] == 1


def test_a_file_that_is_no_plan_is_refused(typed, root, tmp_path):
    """Whatever is passed as a plan is read as one and never guessed at."""
    file = tmp_path / "x"
    file.write_text("{}", encoding="utf-8")
    code, _out, err = typed("apply", str(root), "--plan", str(file))
    assert code == 1
    assert "fleetform plan --out" in err


def test_a_plan_of_another_environment_is_refused(typed, root, tmp_path, monkeypatch):
    """A plan is of one environment, by its uid and not by its name."""
    file = tmp_path / "x"
    typed("plan", str(root), "--out", str(file))
    environment = root / "environment.yaml"
    text = environment.read_text(encoding="utf-8")
    environment.write_text(text.replace("0123", "fedc"), encoding="utf-8")
    code, _out, err = typed("apply", str(root), "--plan", str(file))
    assert code == 1
    assert "is a plan of the environment `lab`" in err


class terminal:  # noqa: N801 -- used as a function
    """A terminal on which somebody has typed a line."""

    def __init__(self, line):
        self._line = line

    def __enter__(self):
        self._master, slave = pty.openpty()
        os.write(self._master, f"{self._line}\n".encode())
        self._stdin = os.fdopen(slave, encoding="utf-8")
        return self._stdin

    def __exit__(self, *_error):
        self._stdin.close()
        os.close(self._master)
