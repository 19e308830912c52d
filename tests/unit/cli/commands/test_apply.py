from __future__ import annotations

import errno
import json
import os
import pty
import sys
from pathlib import Path

import pytest

import applied
from leftovers import end_agents


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
    assert typed("ps", "-C", str(root))[0] == 1


def test_a_file_that_is_no_plan_is_refused(typed, root, tmp_path):
    """Whatever is passed as a plan is read as one and never guessed at."""
    file = tmp_path / "x"
    file.write_text("{}", encoding="utf-8")
    code, _out, err = typed("apply", str(file), "-C", str(root))
    assert code == 1
    assert "fleetform plan --out" in err


def test_a_plan_of_another_environment_is_refused(typed, root, tmp_path, monkeypatch):
    """A plan is of one environment, by its uid and not by its name."""
    file = tmp_path / "x"
    typed("plan", str(root), "--out", str(file))
    environment = root / "environment.yaml"
    text = environment.read_text(encoding="utf-8")
    environment.write_text(text.replace("0123", "fedc"), encoding="utf-8")
    code, _out, err = typed("apply", str(file), "-C", str(root))
    assert code == 1
    assert "is a plan of another environment of this name" in err


@pytest.mark.parametrize("flag", ["--allow-destroy", "--allow-restart", "--refresh"])
def test_a_plan_in_a_file_brings_its_own_permissions(typed, root, tmp_path, flag):
    """What it may do was said when it was made; a flag now would promise what it cannot keep."""
    file = tmp_path / "x"
    typed("plan", str(root), "--out", str(file))
    code, _out, err = typed("apply", str(file), "-C", str(root), flag)
    assert code == 1
    assert f"plan again with {flag} and --out" in err


def test_a_file_is_readable_for_its_owner_alone(typed, root, tmp_path):
    """Steps carry what jobs are given: nobody else reads that."""
    file = tmp_path / "x"
    assert typed("plan", str(root), "--out", str(file))[0] == 0
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_full_disk_leaves_the_earlier_plan(typed, root, tmp_path, monkeypatch):
    """A plan is in its file whole or not at all, and what kept it from being there is said."""
    file = tmp_path / "x"
    assert typed("plan", str(root), "--out", str(file))[0] == 0
    earlier = file.read_bytes()

    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    code, _out, err = typed("plan", str(root), "--out", str(file))
    assert code == 1
    assert "No space left on device" in err
    assert file.read_bytes() == earlier
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".x.")] == []


def test_what_is_no_plain_file_is_not_replaced(typed, root):
    """A rename onto a device would put a file in its place."""
    code, _out, err = typed("plan", str(root), "--out", os.devnull)
    assert code == 1
    assert "is not a regular file" in err


def test_a_plan_takes_the_place_of_a_plan_only(typed, root, tmp_path):
    """A document of the tree is not lost to a slip of the hand."""
    document = root / "environment.yaml"
    before = document.read_text()
    code, _out, err = typed("plan", str(root), "--out", str(document))
    assert code == 1
    assert "exists and is not a plan" in err
    assert document.read_text() == before
    kept = tmp_path / "kept.plan"
    kept.touch()
    for _ in range(2):
        assert typed("plan", str(root), "--out", str(kept))[0] == 0
        assert kept.read_bytes()
    assert not Path(os.devnull).is_file()


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


def test_where_nothing_is_to_be_done_the_progress_says_so(typed, root, tmp_path):
    """Whoever waits for a result in the file gets one."""
    for document in root.glob("*.yaml"):
        if document.name != "environment.yaml":
            document.unlink()
    file = tmp_path / "progress"
    code, _out, _err = typed("apply", str(root), "-y", "--json-into", str(file))
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [record["type"] for record in records] == ["plan", "result"]
    assert (records[-1]["state"], records[-1]["exit_code"]) == ("done", code)


def test_what_jobs_print_is_not_promised_to_who_leaves(typed, root):
    """Who does not wait for the runs sees nothing of their output, and is told before."""
    code, out, err = typed("apply", str(root), "-y", "--detach", "--show-output")
    assert (code, out) == (1, "")
    assert "--show-output does not go with --detach" in err
    assert "fleetform logs" in err


@pytest.mark.parametrize("flags", [(), ("--detach",)], ids=str)
def test_a_cause_is_printed_once(typed, tmp_path, monkeypatch, flags):
    """In a pipe a failed step is printed as it fails, on standard error, and not again at the end."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "words"
    path.mkdir()
    (path / "first").touch()
    volume = f"type: volume\nname: words\nfleet: local\npath: {path}\n"
    tree = applied.write_tree(tmp_path / "lab", applied.FLEET, volume)
    try:
        code, out, err = typed("apply", "-y", "-C", str(tree), *flags)
    finally:
        end_agents(tmp_path / "state")
    assert code == 1
    cause = "error: volume/words: "
    assert (out.count("volume/words: "), err.count(cause)) == (0, 1), out + err
