from __future__ import annotations

import json
import re

import pytest


def test_a_new_environment_is_valid_and_plans(typed, tmp_path, monkeypatch):
    """The first two commands of a newcomer work, one after the other."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    assert typed("init", "my-lab")[0] == 0
    assert typed("validate", "my-lab")[:2] == (0, "2 documents in 3 files: 0 errors, 0 warnings\n")
    assert typed("plan", "my-lab")[0] == 0


def test_each_environment_has_a_uid_of_its_own(typed, tmp_path):
    """Two made by the same command own different things."""
    uids = set()
    for name in ("one", "two"):
        typed("init", str(tmp_path / name))
        text = (tmp_path / name / "environment.yaml").read_text(encoding="utf-8")
        uids.add(re.search(r"^uid: ([0-9a-f]{32})$", text, re.MULTILINE)[1])
    assert len(uids) == 2


def test_editors_find_the_schema_beside_the_tree(typed, tmp_path):
    """Every modeline and the editor's settings lead to a file that is there."""
    root = tmp_path / "lab"
    typed("init", str(root))
    documents = sorted(root.rglob("*.yaml"))
    assert len(documents) == 3
    for document in documents:
        line = document.read_text(encoding="utf-8").splitlines()[0]
        schema = document.parent / line.removeprefix("# yaml-language-server: $schema=")
        assert json.loads(schema.read_text(encoding="utf-8"))["$schema"]
    settings = json.loads((root / ".vscode" / "settings.json").read_text(encoding="utf-8"))
    assert all((root / schema).exists() for schema in settings["yaml.schemas"])


def test_nothing_is_overwritten(typed, tmp_path):
    """Whatever somebody wrote stays, and is named."""
    (tmp_path / "fleets").mkdir()
    (tmp_path / "fleets" / "local.yaml").write_text("mine", encoding="utf-8")
    code, out, _err = typed("init", "--name", "lab", str(tmp_path))
    assert code == 0
    assert "kept" in out
    assert (tmp_path / "fleets" / "local.yaml").read_text(encoding="utf-8") == "mine"
    before = (tmp_path / "environment.yaml").read_text(encoding="utf-8")
    typed("init", "--name", "lab", str(tmp_path))
    assert (tmp_path / "environment.yaml").read_text(encoding="utf-8") == before


@pytest.mark.parametrize("name", ["X", "-", "1st", "a" * 50, "with space"])
def test_a_name_that_cannot_be_one_is_refused(typed, tmp_path, name):
    """Nothing is written before the name is known to be good."""
    code, _out, err = typed("init", "--name", name, str(tmp_path / "new"))
    assert code == 1
    assert "pass --name" in err
    assert not (tmp_path / "new").exists()
