from __future__ import annotations


def test_what_is_over_runs_again(typed, asked, lab):
    """The failed run waits for a place once more; one that waits already is left."""
    code, out, _err = typed("rerun", "bad", "next")
    assert code == 0
    assert out.splitlines()[:2] == ["bad: runs again", "next: is not over yet"]
    states = {row["name"]: row["state"] for row in asked("ps")}
    assert states["bad"] in {"pending", "submitted"}
