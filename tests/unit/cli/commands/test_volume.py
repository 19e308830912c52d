from __future__ import annotations


def test_volumes_are_listed_and_shown(asked, typed, lab):
    """Where each lies; the same row by name."""
    (row,) = asked("volume", "list")
    assert (row["name"], row["fleet"], row["path"]) == ("data", "local", "data")
    assert asked("volume", "show", "data") == row
    assert "data" in typed("volume", "list")[1]
    code, out, _err = typed("volume", "show", "data")
    assert code == 0
    assert out.splitlines()[3].endswith("/data")
    assert typed("volume", "show", "other")[0] == 1
