from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

import applied

BROKEN = "type: task\nname: broken\ncomands: [a]\n"
NOWHERE = "type: task\nname: nowhere\ncommands: [a]\nfleets: [elsewhere]\n"


@pytest.fixture
def broken(root):
    """A tree within a repository, with one file that has an error and one that has none."""
    (root.parent / ".git").mkdir()
    (root / "runs").mkdir()
    (root / "runs" / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    return root


def test_a_sound_tree_is_counted(typed, asked, root):
    """People see how much was read."""
    applied.write_tree(root, applied.FLEET)
    code, out, err = typed("validate", str(root))
    assert (code, err) == (0, "")
    assert out.endswith(": 0 errors, 0 warnings\n")
    value = asked("validate", str(root))
    assert (value["valid"], value["findings"]) == (True, [])


def test_what_is_wrong_is_shown_with_its_place(typed, broken):
    """Findings go to standard error, and the exit code says so."""
    code, out, err = typed("validate", str(broken))
    assert code == 1
    assert "runs/broken.yaml:3:1" in err
    assert "error" in out


def test_a_broken_environment_file_is_a_finding_too(typed, root):
    """The one file that everything needs is explained like any other."""
    (root / "environment.yaml").write_text("type: environment\nnaem: lab\n", encoding="utf-8")
    code, _out, err = typed("validate", str(root))
    assert code == 1
    assert "environment.yaml:" in err


def test_a_folder_that_is_no_environment_is_refused(typed, tmp_path):
    """A tree that nobody named is never taken for an empty one."""
    code, _out, err = typed("validate", str(tmp_path))
    assert code == 1
    assert "is not an environment" in err


def test_a_file_is_checked_within_its_environment(typed, asked, broken):
    """What it refers to is known, and what is wrong elsewhere is not told."""
    sound = broken / "runs" / "sound.yaml"
    sound.write_text(NOWHERE.replace("elsewhere", "local"), encoding="utf-8")
    assert typed("validate", str(sound)) == (
        0,
        "1 document in 1 file: 0 errors, 0 warnings\n",
        "",
    )
    sound.write_text(NOWHERE, encoding="utf-8")
    code, out, _err = typed("validate", str(sound), "--json")
    (found,) = json.loads(out)["findings"]
    assert (code, found["code"], found["place"]["file"]) == (
        1,
        "unknown-reference",
        "runs/sound.yaml",
    )


def test_a_file_outside_of_any_environment_is_checked_by_itself(typed, tmp_path):
    """Its own mistakes are told, and nothing of names that may be declared anywhere."""
    file = tmp_path / "alone.yaml"
    file.write_text(f"{NOWHERE}---\n{BROKEN}", encoding="utf-8")
    code, out, err = typed("validate", str(file))
    assert (code, out.split(":")[0]) == (1, "2 documents in 1 file")
    assert "alone.yaml:8:1" in err
    assert "elsewhere" not in err


def test_a_file_that_the_tree_does_not_read_is_checked_by_itself(typed, broken):
    """A hidden folder belongs to tools, so its documents are not the environment's."""
    hidden = broken / ".drafts" / "draft.yaml"
    hidden.parent.mkdir()
    hidden.write_text(NOWHERE, encoding="utf-8")
    assert typed("validate", str(hidden))[0] == 0


def test_the_environments_own_file_can_be_named(typed, broken):
    """It is a file of the tree like any other."""
    code, out, err = typed("validate", str(broken / "environment.yaml"))
    assert (code, out, err) == (0, "1 document in 1 file: 0 errors, 0 warnings\n", "")


def test_pipelines_get_paths_from_the_repositorys_root(typed, broken):
    """Annotations, code scanning and test reports look for files there."""
    path = f"{broken.name}/runs/broken.yaml"
    assert (
        f"::error file={path},line=3,col=1"
        in typed("validate", str(broken), "--format", "github")[1]
    )
    log = json.loads(typed("validate", str(broken), "--format", "sarif")[1])
    places = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in log["runs"][0]["results"]
    ]
    assert path in places
    suites = ET.fromstring(typed("validate", str(broken), "--format", "junit")[1])
    cases = {case.get("file"): case.find("failure") for case in suites.iter("testcase")}
    assert cases[path] is not None
    assert cases[f"{broken.name}/environment.yaml"] is None


@pytest.mark.parametrize("form", ["json", "sarif", "github", "junit"])
def test_a_format_is_all_that_is_printed(typed, broken, form):
    """It can be redirected whole; the exit code is that of the text."""
    code, out, err = typed("validate", str(broken), "--format", form)
    assert (code, err) == (1, "")
    assert out.endswith("\n")


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "junit"])
def test_a_report_can_be_written_beside_the_text(typed, broken, tmp_path, form):
    """The pipeline's log stays readable, and the file has what would have been printed."""
    file = tmp_path / "report"
    told = typed("validate", str(broken), "--format", form, "--output", str(file))
    assert told == typed("validate", str(broken))
    code, out, err = typed("validate", str(broken), "--format", form)
    assert (code, file.read_text(encoding="utf-8")) == (1, err + out)


def test_text_is_kept_on_a_runner_of_github(typed, broken, monkeypatch):
    """A format is asked for and never guessed: scripts on runners read the text as well."""
    elsewhere = typed("validate", str(broken))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert typed("validate", str(broken)) == elsewhere


def test_a_name_that_is_no_text_can_be_told(typed, broken):
    """A file's name is bytes; each format finds a way to write it."""
    (broken / "runs" / "caf\udce9.yaml").write_text(BROKEN, encoding="utf-8")
    for form in ("text", "json", "sarif", "github", "junit"):
        code, out, err = typed("validate", str(broken), "--format", form)
        assert (code, "bug" in err) == (1, False), form
        assert "caf" in out + err


def test_warnings_fail_a_strict_check(typed, root):
    """A run that no fleet can hold waits in vain; strictness is for pipelines."""
    assert typed("validate", str(root))[0] == 0
    code, out, err = typed("validate", str(root), "--strict")
    assert code == 1
    assert "warning[never-placed]" in err
    assert "0 errors, 1 warning" in out


def test_runs_without_any_fleet_are_one_warning(typed, asked, root):
    """A configuration whose runs can never start is told once, with the document that is missing."""
    run = "type: task\nname: {}\ncommands: [a]\n"
    applied.write_tree(root, run.format("one"), run.format("two"))
    (found,) = asked("validate", str(root))["findings"]
    assert (found["level"], found["code"]) == ("warning", "no-fleet")
    assert "`type: fleet`" in found["advice"]
    assert typed("validate", str(root), "--strict")[0] == 1
