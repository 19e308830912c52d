from __future__ import annotations

import json

import pytest

from fleetform.plan.file import load


def test_a_plan_is_printed_in_three_forms(typed, asked, root):
    """For people, for scripts, for pull requests; each names what would be made."""
    code, text, _err = typed("plan", str(root))
    assert code == 0
    assert "train" in text
    assert typed("plan", str(root), "--markdown")[1].count("train")
    addresses = [change["address"] for change in asked("plan", str(root))["resource_changes"]]
    assert "run/train" in addresses
    assert typed("plan", str(root), "--json", "--markdown")[0] == 1


def test_changes_have_an_exit_code_where_it_is_asked_for(typed, root):
    """A pipeline branches on 2."""
    assert typed("plan", str(root), "--detailed-exitcode")[0] == 2


def test_a_failed_run_keeps_a_pipeline_red(typed, lab):
    """Nothing is left to change, and a run has failed: that is not success."""
    code, out, _err = typed("plan", "--detailed-exitcode")
    assert code == 4
    assert "bad" in out


def test_a_plan_can_be_kept(typed, root, tmp_path):
    """The file reads back as the plan that was printed."""
    file = tmp_path / "today.plan"
    _code, out, _err = typed("plan", str(root), "--json", "--out", str(file))
    assert load(file.read_bytes()).digest == json.loads(out)["digest"]


def test_errors_are_shown_first_and_refused(typed, root):
    """Findings stand on standard error with their place; --keep-going plans the rest."""
    (root / "broken.yaml").write_text("type: task\nname: x\ncomands: [a]\n", encoding="utf-8")
    code, out, err = typed("plan", str(root))
    assert (code, out) == (1, "")
    assert "broken.yaml:3:1" in err
    assert "help: correct them, or pass --keep-going" in err
    code, out, _err = typed("plan", str(root), "--keep-going")
    assert code in {0, 3}
    assert "train" in out


@pytest.mark.parametrize("colour", ["NO_COLOR", "FORCE_COLOR"])
def test_colours_follow_the_conventions(typed, root, monkeypatch, colour):
    """A pipe has none unless it was forced."""
    monkeypatch.setenv(colour, "1")
    assert ("\x1b[" in typed("plan", str(root))[1]) == (colour == "FORCE_COLOR")


def test_the_whole_of_destroy_can_be_planned(typed, lab):
    """What `destroy` would do is a plan like any other."""
    code, out, _err = typed("plan", "--destroy", "--allow-destroy", "--detailed-exitcode")
    assert code in {2, 3, 4}
    assert "local" in out


def test_what_goes_is_not_made_anew(typed, lab):
    """A flag that could not be obeyed is refused."""
    code, out, err = typed("plan", "--destroy", "--replace", "train")
    assert (code, out) == (1, "")
    assert "--replace does not go with --destroy" in err


def test_errors_in_the_tree_keep_nobody_from_leaving(typed, lab):
    """`plan --destroy` shows what `destroy` would do, which reads on behind an error."""
    (lab / "broken.yaml").write_text("type: task\nname: x\ncomands: [a]\n", encoding="utf-8")
    code, out, err = typed("plan", "--destroy", "--allow-destroy")
    assert code in {0, 3, 4}, err
    assert "- fleet local" in out
