from __future__ import annotations

from fleetform.views.run_list import change_text, state_changes

NOW_MS = 1_795_377_662_000
BEFORE = {"a": "running", "b": "running", "gone": "done"}
AFTER = {"a": "done", "b": "running", "c": "submitted"}


def lines(**more):
    return [change_text(one) for one in state_changes(BEFORE, AFTER, now_ms=NOW_MS, **more)]


def test_only_runs_whose_state_changed_have_a_line():
    """A new run has no state before; one that is not listed any more has no line."""
    assert lines() == [
        "2026-11-22T20:01:02Z a running → done",
        "2026-11-22T20:01:02Z c new → submitted",
    ]


def test_states_keep_changes_to_and_from_them():
    """A run that enters the list of `--state` has a line, and so has one that leaves it."""
    assert lines(states=["running"]) == ["2026-11-22T20:01:02Z a running → done"]
    assert lines(states=["submitted"]) == ["2026-11-22T20:01:02Z c new → submitted"]
    assert lines(states=["failed"]) == []
