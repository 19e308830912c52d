from __future__ import annotations


def test_what_waits_is_asked_to_stop_and_what_is_over_is_not(typed, lab):
    """Each name gets its answer; nobody drives the runs, and that is said."""
    code, out, err = typed("stop", "next", "train")
    assert code == 0
    assert out.splitlines()[:2] == ["next: asked to stop", "train: was over already"]
    assert "fleetform serve" in err


def test_a_sweep_stands_for_its_elements(typed, lab):
    """One name ends them all; an unknown one ends none."""
    _code, out, _err = typed("stop", "sweep")
    assert out.splitlines() == [
        "sweep[lr=0.1]: was over already",
        "sweep[lr=0.2]: was over already",
    ]
    assert typed("stop", "next", "nobody")[0] == 1
    assert "asked to stop" in typed("stop", "next")[1]
