from __future__ import annotations


def test_each_run_has_a_line(typed, lab):
    """Titles, then a line a run, which `grep` and `awk` can take apart."""
    code, out, _err = typed("ps")
    title, *lines = out.splitlines()
    assert code == 0
    assert title.split()[:2] == ["NAME", "STATE"]
    states = {line.split()[0]: line.split()[1] for line in lines}
    assert states == {"train": "done", "bad": "failed", "next": "pending", "sweep": "done"}


def test_json_has_the_same_rows(asked, lab):
    """The documented keys are there, also where nothing is known."""
    rows = {row["name"]: row for row in asked("ps")}
    assert rows["bad"]["exit_code"] == 3
    assert rows["next"]["started_at_ms"] is None
    assert rows["sweep[lr=0.1]"]["parent"] == "sweep"


def test_runs_are_chosen_by_name_and_state(asked, lab):
    """Names, patterns and elements select rows, states narrow them; several are one list."""

    def names(*arguments):
        return [row["name"] for row in asked("ps", *arguments)]

    sweep = ["sweep[lr=0.1]", "sweep[lr=0.2]"]
    assert (
        names("sweep") == names("s*") == names("run/sweep") == names("sweep[lr=0.1|0.2]") == sweep
    )
    assert names("sweep[lr=0.10]", "train") == ["sweep[lr=0.1]", "train"]
    assert names("--state", "failed, pending") == ["bad", "next"]
    assert names("--state", "failed", "--state", "pending") == ["bad", "next"]
    assert names("t*", "--state", "failed") == []


def test_elements_are_listed_where_they_are_asked_for(typed, lab):
    """A name, a state or `--all-elements` unfolds; a pattern of names does not."""

    def names(*arguments):
        _code, out, _err = typed("ps", *arguments)
        return [line.split()[0] for line in out.splitlines()[1:]]

    sweep = ["sweep[lr=0.1]", "sweep[lr=0.2]"]
    assert names("s*") == ["sweep"]
    assert names("sweep") == sweep
    assert names("s*", "--all-elements") == sweep
    assert names("*[lr=0.2]") == ["sweep[lr=0.2]"]
    assert names("--state", "done") == [*sweep, "train"]


def test_a_name_that_means_nothing_is_answered_with_the_near_ones(typed, lab):
    """Names, elements, states and folders each have an answer of their own."""
    assert typed("ps", "swep")[2] == (
        "error: there is no run `swep`\nhelp: did you mean `sweep`?\n"
    )
    assert typed("ps", "sweep[lr=0.3]")[2] == (
        "error: `sweep` has no element `lr=0.3`\nhelp: its elements are [lr=0.1|0.2]\n"
    )
    assert typed("ps", "x*")[2].startswith("error: `x*` matches no run\n")
    assert typed("ps", "volume/data")[2].startswith("error: `volume/data` is not a run\n")
    assert typed("ps", "--state", "runing")[2] == (
        "error: there is no state `runing`\nhelp: did you mean `running`?\n"
    )
    assert typed("ps", f"{lab}/sets")[2].startswith("error: ")


def test_nothing_applied_is_an_error_with_a_way_out(typed, root):
    """Before the first apply there is nothing to list, and the next command is named."""
    code, _out, err = typed("ps", "-C", str(root))
    assert code == 1
    assert "help: `fleetform plan` shows what would be created" in err
