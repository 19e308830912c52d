from __future__ import annotations

import json


def test_what_is_over_is_asked_to_run_again(typed, asked, lab):
    """The number goes above all before, and a plan then runs the document once more."""
    code, out, err = typed("rerun", "bad", "next")
    assert code == 0
    assert "+rerun: 1" in out
    assert "next is not over yet" in err
    changes = asked("plan")["resource_changes"]
    assert [one["name"] for one in changes if one["change"]["actions"] != ["no-op"]] == ["bad"]


def test_one_element_has_its_own_number(typed, lab):
    """Only what the brackets mean runs again; a part of the parameters is enough."""
    assert typed("rerun", "sweep[lr=0.10]")[0] == 0
    assert "rerun:\n  lr=0.10: 1\n" in (lab / "tree.yaml").read_text()
    code, out, _err = typed("plan", "--detailed-exitcode")
    assert code in {2, 4}
    assert "sweep[lr=0.1]" in out
    assert "sweep[lr=0.2]" not in out
    code, _out, err = typed("rerun", "sweep[lr=7]")
    assert code == 1
    assert "no element `lr=7`" in err


def test_a_reverted_rerun_is_not_asked_again_with_the_same_number(typed, lab):
    """The number is above the highest that the ledger knows, whatever the tree says now."""
    tree = lab / "tree.yaml"
    before = tree.read_text()
    typed("rerun", "bad")
    assert "rerun: 1" in tree.read_text()
    import applied

    applied.enter(lab)
    tree.write_text(before)
    applied.run_all(lab, exit_codes={"bad": 3})
    applied.enter(lab)
    typed("rerun", "bad")
    assert "rerun: 2" in tree.read_text()


def test_json_names_files_and_resources(typed, lab):
    """Scripts get what was written, and nothing is printed beside."""
    code, out, _err = typed("rerun", "bad", "--json")
    assert code == 0
    value = json.loads(out)
    assert value["resources"] == ["run/bad"]
    assert value["files"][0]["path"] == "tree.yaml"
    assert value["files"][0]["after"] == (lab / "tree.yaml").read_text()


def test_nothing_that_runs_once_more_is_no_success(typed, lab):
    """Whoever wanted a run and its end hears that there was none, by the exit code too."""
    before = (lab / "tree.yaml").read_bytes()
    code, out, err = typed("rerun", "next", "--apply", "-y")
    assert code == 1
    assert "next is not over yet" in err
    assert "nothing was applied" in err
    assert "the tree says so" not in out
    assert (lab / "tree.yaml").read_bytes() == before


def test_an_element_that_is_applied_is_the_only_target(typed, lab, monkeypatch):
    """`--apply` targets the elements that were named, and not their whole document."""
    asked = {}

    def take(_workspace, scope, **_options):
        asked.update(targets=scope.targets)
        return 0

    monkeypatch.setattr("fleetform.cli.apply_flow.apply_scoped", take)
    assert typed("rerun", "sweep[lr=0.1]", "bad", "--apply", "-y")[0] == 0
    assert asked["targets"] == ("run/sweep[lr=0.1]", "run/bad")
