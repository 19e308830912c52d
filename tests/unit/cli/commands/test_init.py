from __future__ import annotations

import json
import re
import shlex
from xml.etree import ElementTree as ET

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


def test_settings_are_written_for_the_editor_that_is_used(typed, tmp_path):
    """Visual Studio Code where nobody has left a trace, and whoever has left one."""
    settings = {".vscode/settings.json", ".vscode/extensions.json", ".idea/jsonSchemas.xml"}

    def written(*arguments, folder=None):
        root = tmp_path / f"lab-{len(list(tmp_path.iterdir()))}"
        if folder is not None:
            (root / folder).mkdir(parents=True)
        assert typed("init", str(root), *arguments)[0] == 0
        return {name for name in settings if (root / name).exists()}

    vscode = {".vscode/settings.json", ".vscode/extensions.json"}
    assert written() == vscode
    assert written(folder=".idea") == {".idea/jsonSchemas.xml"}
    assert written("--editor", "none") == set()
    assert written("--editor", "jetbrains", folder=".vscode") == {".idea/jsonSchemas.xml"}
    assert written("--editor", "vscode", "--editor", "jetbrains") == settings


def test_jetbrains_is_told_where_the_schema_is(typed, tmp_path):
    """The mapping leads to the schema by a path in the project, and names its draft."""
    root = tmp_path / "lab"
    typed("init", str(root), "--editor", "jetbrains")
    project = ET.parse(root / ".idea" / "jsonSchemas.xml").getroot()
    (info,) = project.iter("SchemaInfo")
    options = {one.get("name"): one.get("value") for one in info.findall("option")}
    schema = json.loads((root / options["relativePathToSchema"]).read_text(encoding="utf-8"))
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert options["schemaVersion"] == "JSON Schema version 7"
    paths = {one.get("value") for one in info.iter("option") if one.get("name") == "path"}
    assert {"environment.yaml", "fleets", "tasks"} <= paths


@pytest.mark.parametrize("editor", ["vscode", "jetbrains"])
def test_settings_of_somebody_else_are_left_alone_and_told_about(typed, tmp_path, editor):
    """Files that say something else stay as they are, and what to add to them is said."""
    for name in (".vscode/settings.json", ".vscode/extensions.json", ".idea/jsonSchemas.xml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("// mine", encoding="utf-8")
    _code, out, _err = typed("init", "--name", "lab", str(tmp_path), "--editor", editor)
    assert "help: for completion" in out
    assert (tmp_path / ".vscode" / "settings.json").read_text(encoding="utf-8") == "// mine"


def test_settings_of_an_earlier_init_are_not_complained_about(typed, tmp_path):
    """What already leads to the schema needs nothing added."""
    root = str(tmp_path / "lab")
    both = ("--editor", "vscode", "--editor", "jetbrains")
    typed("init", root, *both)
    _code, out, _err = typed("init", root, *both)
    assert "help:" not in out


def test_an_environment_has_one_schema(typed, tmp_path):
    """Only the file that editors read, and `fleetform schema` keeps it current from there."""
    root = tmp_path / "lab"
    typed("init", str(root))
    folder = root / ".fleetform" / "schemas"
    assert [path.name for path in folder.iterdir()] == ["fleetform.json"]
    assert typed("schema", "--check", "--into", str(folder))[0] == 0
    (folder / "fleetform.json").write_text("{}", encoding="utf-8")
    assert typed("schema", "--check", "--into", str(folder))[0] == 1
    assert typed("schema", "--write", "--into", str(folder))[0] == 0
    assert [path.name for path in folder.iterdir()] == ["fleetform.json"]


@pytest.mark.parametrize(
    ("folder", "name"), [("my lab", "my-lab"), ("a", "lab-a"), ("2024", "lab-2024")]
)
def test_the_next_step_works_as_printed(typed, tmp_path, monkeypatch, folder, name):
    """Also for a folder with a space, and for one whose name is too short for an environment."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    code, out, err = typed("init", folder)
    assert code == 0, err
    assert f"\nname: {name}\n" in (tmp_path / folder / "environment.yaml").read_text()
    (step,) = re.findall("Next: `(.*?)`", out)
    program, *arguments = shlex.split(step)
    assert program == "fleetform"
    code, out, err = typed(*arguments)
    assert (code, "2 to create" in out) == (0, True), out + err


@pytest.mark.parametrize("name", ["X", "-", "1st", "a" * 50, "with space"])
def test_a_name_that_cannot_be_one_is_refused(typed, tmp_path, name):
    """Nothing is written before the name is known to be good."""
    code, _out, err = typed("init", "--name", name, str(tmp_path / "new"))
    assert code == 1
    assert "pass --name" in err
    assert not (tmp_path / "new").exists()
