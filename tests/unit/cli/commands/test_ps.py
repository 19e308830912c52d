from __future__ import annotations


def test_each_run_has_a_line(typed, lab):
    """Titles, then a line a run, which `grep` and `awk` can take apart."""
    code, out, _err = typed("ps")
    title, *lines = out.splitlines()
    assert code == 0
    assert title.split()[:2] == ["NAME", "STATE"]
    states = {line.split()[0]: line.split()[1] for line in lines}
    assert states == {
        "train": "done", "bad": "failed", "next": "pending",
        "sweep[lr=0.1]": "done", "sweep[lr=0.2]": "done",
    }  # fmt: skip


def test_json_has_the_same_rows(asked, lab):
    """The documented keys are there, also where nothing is known."""
    rows = {row["name"]: row for row in asked("ps")}
    assert rows["bad"]["exit_code"] == 3
    assert rows["next"]["started_at_ms"] is None
    assert rows["sweep[lr=0.1]"]["parent"] == "sweep"


def test_runs_can_be_chosen_and_folded(typed, asked, lab):
    """By state, and a sweep as one line with counts."""
    assert [row["name"] for row in asked("ps", "--state", "failed")] == ["bad"]
    assert asked("ps", "--sweeps") == [{"name": "sweep", "total": 2, "states": {"done": 2}}]
    _code, out, _err = typed("ps", "--sweeps")
    assert "sweep" in out
    assert "sweep[" not in out


def test_nothing_applied_is_an_error_with_a_way_out(typed, root):
    """Before the first apply there is nothing to list, and the next command is named."""
    code, _out, err = typed("ps", str(root))
    assert code == 1
    assert "help: see what would be made with `fleetform plan`" in err
