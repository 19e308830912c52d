from __future__ import annotations

import json

import jsonschema
import pytest

from fleetform.plan.serialize import load


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


def test_warnings_of_documents_that_do_not_change_are_one_line(typed, lab):
    """
    A plan prints a warning whole where it changes the document, and counts the others.

    `next` and `late` cannot be placed on any fleet; the sweep's document is changed and fits.
    """
    late = "---\ntype: task\nname: late\ncommands: [a]\nresources: {cpu: 300}\n"
    tree = lab / "tree.yaml"
    code, _out, err = typed("plan")
    assert code == 0
    assert err == "1 warning in documents that this plan does not change: `fleetform validate`\n\n"
    tree.write_text(tree.read_text() + late)
    _code, _out, err = typed("plan")
    assert err.count("warning[never-placed]") == 1
    assert "of the 300 asked for" in err
    assert "1 warning in documents that this plan does not change: `fleetform validate`\n" in err
    _code, _out, err = typed("set", "next", "resources.cpu=500")
    assert "of the 500 asked for" in err
    assert "of the 300 asked for" not in err
    assert "1 warning in documents that this edit does not change: `fleetform validate`\n" in err


def test_a_warning_about_a_sweep_is_whole_where_the_sweep_is_planned(typed, root):
    """Elements are what a plan changes; the warning is about the document that declares them."""
    sweep = "type: task\nname: wide\ncommands: [a]\nmatrix: {n: [1, 2]}\nresources: {cpu: 300}\n"
    (root / "wide.yaml").write_text(sweep)
    _code, _out, err = typed("plan", str(root), "--target", "wide[*]")
    assert err.count("of the 300 asked for") == 1
    assert err.count("of the 400 asked for") == 0


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


def test_errors_of_the_configuration_are_json_too(typed, lab):
    """A program that reads `errored` gets a document of the same shape, and the same exit code."""
    from fleetform.views.plan.schema import plan_schema

    (lab / "bad.yaml").write_text("type: task\nname: bad\ncommands: [ls]\nnodez: 2\n")
    code, out, err = typed("plan", "--format", "json")
    assert code == typed("plan")[0] == 1
    document = json.loads(out)
    assert (document["errored"], document["applyable"], document["complete"]) == (
        True,
        False,
        False,
    )
    assert document["resource_changes"] == []
    assert "unknown-field" in {one["code"] for one in document["findings"]}
    assert document["summary"]["text"].startswith("the configuration has ")
    assert f"error: {document['summary']['text']}" in err
    jsonschema.validate(document, plan_schema())
