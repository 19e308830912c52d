"""Commands outside any environment: what falls back to the default one, and what never does."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fleetform.app.workspace import create_default, default_root
from leftovers import end_agents

FALLING_BACK = ("ps", "logs x", "why x", "status", "events", "stop x", "rerun x", "controller show", "history",
                "show last", "drift", "blame run/x", "fleet list", "fleet show x", "volume list",
                "volume list --snapshots", "volume show x", "agent list", "lock show", "emergency list")  # fmt: skip
NEVER = ("plan", "apply", "destroy", "serve", "set run/x priority=1", "scale fleet/local 2", "keep x",
         "drain local --reason x", "import volume/x", "state verify", "diff a b", "emergency stop x --reason x",
         "validate", "render", "fmt", "lock break")  # fmt: skip


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A folder outside any environment and any git repository, and the place of the default one."""
    folder = tmp_path / "nowhere"
    folder.mkdir()
    (folder / "hello.py").write_text("print('hello')\n")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FLEETFORM_ENVIRONMENT", raising=False)
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FLEETFORM_CONFIG_HOME", str(tmp_path / "config/fleetform"))
    yield tmp_path / "config/fleetform/default"
    end_agents(tmp_path / "state")


@pytest.mark.parametrize("line", FALLING_BACK)
def test_commands_about_runs_use_the_default_environment(typed, nowhere, line):
    """Without one they say how it is created; with one they say where it is, on standard error."""
    code, out, err = typed(*line.split())
    assert (code, out) == (1, "")
    assert err == (
        "error: there is no environment here and no default environment\n"
        "help: `fleetform submit FILE` creates a default one; `-C PATH` names another\n"
    )
    create_default()
    _code, out, err = typed(*line.split())
    assert err.startswith(f"Using the default environment in {nowhere}\n")
    assert "Using" not in out


@pytest.mark.parametrize("line", NEVER)
def test_commands_that_plan_or_edit_never_use_it(typed, nowhere, line):
    """They would change, or find right, another one than the person thinks of; they say where it is."""
    says = (
        "error: no environment.yaml here or in any folder above\nhelp: go to an environment's folder,"
        " name it with `-C PATH`, or create one with `fleetform init`"
    )
    assert typed(*line.split())[::2] == (1, f"{says}\n")
    create_default()
    code, _out, err = typed(*line.split())
    assert (code, err) == (1, f"{says}; the default environment is `-C {nowhere}`\n")


def test_the_environment_around_this_folder_comes_first(typed, nowhere, lab):
    """Inside an environment nothing changes, whatever the variable says."""
    create_default()
    _code, out, err = typed("ps")
    assert "train" in out
    assert "Using" not in err


def test_the_variable_names_another_environment(typed, nowhere, root, monkeypatch):
    """It is used as it is: never created, and its runs are edited but not applied unasked."""
    monkeypatch.setenv("FLEETFORM_ENVIRONMENT", str(root))
    assert f"Using the default environment in {root}\n" in typed("status")[2]
    assert "cannot ask" not in typed("stop", "train")[2]
    for wrong, sentence in ((nowhere, "is not an environment"), ("lab", "a relative path")):
        monkeypatch.setenv("FLEETFORM_ENVIRONMENT", str(wrong))
        code, _out, err = typed("submit", "hello.py")
        assert code == 1
        assert sentence in err
    assert not nowhere.exists()


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_nobody_else_may_read_it(nowhere, umask):
    """Its folders are private and its files too, whatever the umask."""
    before = os.umask(umask)
    try:
        create_default()
    finally:
        os.umask(before)
    assert {_mode(one) for one in (nowhere, nowhere.parent)} == {0o700}
    assert {_mode(one) for one in nowhere.iterdir()} == {0o600}
    assert sorted(one.name for one in nowhere.parent.iterdir()) == ["default"]


def test_a_damaged_folder_is_named_and_left_as_it_is(typed, nowhere):
    """Another uid would hide the runs that the folder stands for."""
    create_default()
    (nowhere / "environment.yaml").unlink()
    for line in ("submit hello.py", "ps"):
        code, _out, err = typed(*line.split())
        assert code == 1
        assert err.startswith(f"error: the default environment {nowhere} is damaged: it has no")
    assert [one.name for one in nowhere.iterdir()] == ["fleet.yaml"]
    (nowhere / "environment.yaml").write_text("type: environment\n")
    err = typed("submit", "hello.py")[2]
    assert f"{nowhere}/environment.yaml has" in err
    assert f"`fleetform validate -C {nowhere}` checks it" in err
    (nowhere / "environment.yaml").unlink()
    (nowhere / "fleet.yaml").unlink()
    nowhere.rmdir()
    nowhere.write_text("")
    assert "is damaged" in typed("submit", "hello.py")[2]


def test_without_a_folder_for_it_submit_says_so(typed, nowhere, monkeypatch):
    """An empty FLEETFORM_CONFIG_HOME means that nothing is kept."""
    monkeypatch.setenv("FLEETFORM_CONFIG_HOME", "")
    assert default_root() is None
    _code, _out, err = typed("submit", "hello.py")
    assert err.startswith("error: there is no folder for a default environment")


def test_first_submits_at_once_do_not_meet(nowhere):
    """Several create one environment together, each runs its file, and nothing half-made is left."""
    program = "import sys; from fleetform.cli.main import main; sys.exit(main())"
    names = ("one", "two", "three")
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", program, "submit", "hello.py", "-n", name],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for name in names
        ]
        ended = [(*one.communicate(timeout=240), one.returncode) for one in started]
    assert [(out, code) for out, _err, code in ended] == [("hello\n", 0)] * 3, ended
    assert sorted(one.name for one in nowhere.parent.glob(".*")) == []
    assert sorted(one.stem for one in (nowhere / "scratch").glob("*.yaml")) == sorted(names)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
