"""Where state and caches lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetform.app.paths import cache_home, state_home
from fleetform.app.problems import Problem


def test_the_cache_lies_where_people_say(monkeypatch):
    """The variable comes first, then the XDG one, then the home folder; empty means none."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("FLEETFORM_CACHE_HOME", "/here")
    assert cache_home() == Path("/here")
    monkeypatch.setenv("FLEETFORM_CACHE_HOME", "")
    assert cache_home() is None
    monkeypatch.delenv("FLEETFORM_CACHE_HOME")
    assert cache_home() == Path("/xdg/fleetform")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert cache_home() == Path("/home/ada/.cache/fleetform")


@pytest.mark.parametrize(
    ("variable", "find"),
    [("FLEETFORM_STATE_HOME", state_home), ("FLEETFORM_CACHE_HOME", cache_home)],
)
def test_a_relative_folder_of_ours_is_refused(monkeypatch, tmp_path, variable, find):
    """Each folder would have another ledger, and all that was made would be made again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "./state")
    with pytest.raises(Problem, match=f"{variable} is `./state`") as refused:
        find()
    assert str(tmp_path / "state") in refused.value.advice


@pytest.mark.parametrize("below", ["", "/deeper/still"])
def test_what_is_no_folder_is_not_an_empty_one(monkeypatch, tmp_path, below):
    """A pipeline whose disk is not mounted must not be told that nothing is there."""
    (tmp_path / "state").write_text("")
    monkeypatch.setenv("FLEETFORM_STATE_HOME", f"{tmp_path}/state{below}")
    with pytest.raises(Problem, match="is not a folder"):
        state_home()
    monkeypatch.setenv("FLEETFORM_STATE_HOME", f"{tmp_path}/elsewhere{below}")
    assert state_home() == Path(f"{tmp_path}/elsewhere{below}")


def test_a_relative_folder_of_xdg_is_ignored(monkeypatch):
    """As the XDG base directory specification has it."""
    for variable in ("FLEETFORM_STATE_HOME", "FLEETFORM_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert state_home() == Path("/home/ada/.local/state/fleetform")
    assert cache_home() == Path("/home/ada/.cache/fleetform")
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert state_home() == Path("/xdg/fleetform")
