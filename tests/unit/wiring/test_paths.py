"""Where state and caches lie."""

from __future__ import annotations

from pathlib import Path

from fleetform.wiring.paths import cache_home


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
