from __future__ import annotations

import io
import sys

import pytest

import applied

LOOSE = "name: train # who\ntype:   task\ncommands: [a]\n"
TIGHT = "type: task\nname: train # who\ncommands: [a]\n"


@pytest.fixture
def tree(root, monkeypatch):
    """A tree with one file that is not in order, and the folder commands are typed in."""
    applied.write_tree(root, applied.FLEET)
    (root / "train.yaml").write_text(LOOSE, encoding="utf-8")
    monkeypatch.chdir(root)
    return root


def test_files_are_written_once(typed, tree):
    """A second time there is nothing to do."""
    code, out, _err = typed("fmt")
    assert code == 0
    assert "formatted train.yaml" in out
    assert (tree / "train.yaml").read_text(encoding="utf-8") == TIGHT
    assert typed("fmt")[:2] == (0, "")


def test_a_check_names_files_and_writes_nothing(typed, tree):
    """A pipeline fails, and says for which files."""
    code, out, _err = typed("fmt", "--check", "train.yaml")
    assert (code, out) == (1, "train.yaml\n")
    assert (tree / "train.yaml").read_text(encoding="utf-8") == LOOSE
    typed("fmt")
    assert typed("fmt", "--check")[0] == 0


def test_a_difference_can_be_applied(typed, tree):
    """It is what `diff -u` prints, and nothing is written."""
    code, out, _err = typed("fmt", "--diff", "train.yaml")
    assert code == 0
    assert out.splitlines()[:4] == [
        "--- train.yaml",
        "+++ train.yaml",
        "@@ -1,3 +1,3 @@",
        "+type: task",
    ]
    assert (tree / "train.yaml").read_text(encoding="utf-8") == LOOSE


def test_a_difference_commands_no_runner_and_no_terminal(typed, tree):
    """What stands in a file of a branch is shown in the log of CI, and not obeyed there."""
    (tree / "train.yaml").write_text(
        "name: a\u202eb\ntype: task\ncommands:\n  - |\n    ::stop-commands::x\n",
        encoding="utf-8",
    )
    _code, out, _err = typed("fmt", "--diff", "train.yaml")
    assert "\\u003a:stop-commands::x" in out
    assert "a\\u202eb" in out
    assert all(one.isprintable() for one in out.splitlines())


def test_a_broken_file_is_left_alone_and_the_others_are_not(typed, tree):
    """Its finding is shown, and the exit code says so."""
    (tree / "broken.yaml").write_text("type: [\n", encoding="utf-8")
    code, out, err = typed("fmt")
    assert code == 1
    assert "broken.yaml:1:" in err
    assert "formatted train.yaml" in out
    assert (tree / "broken.yaml").read_text(encoding="utf-8") == "type: [\n"


def test_standard_input_is_formatted_to_standard_output(typed, monkeypatch):
    """An editor gets its text back, as it was where it cannot be read."""
    for given, code, printed in ((LOOSE, 0, TIGHT), ("type: [\n", 1, "type: [\n")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
        from fleetform.cli.main import main

        assert main(["fmt", "-"]) == code
        sys.stdout.seek(0)
        assert sys.stdout.read() == printed


def test_what_is_not_there_is_said(typed, tree):
    """A slip in a path formats nothing in silence."""
    code, _out, err = typed("fmt", "trian.yaml")
    assert code == 1
    assert "trian.yaml is not a file or a folder" in err


def test_a_folder_of_environments_is_formatted_whole(typed, tmp_path, monkeypatch):
    """Each environment in it and what they share; data of a run is left alone there too."""
    monkeypatch.chdir(tmp_path)
    for name in ("staging", "production"):
        (tmp_path / "all" / name / "data").mkdir(parents=True)
        (tmp_path / "all" / name / "environment.yaml").write_text("name: lab\ntype: environment\n")
        (tmp_path / "all" / name / "run.yaml").write_text(
            "name: train\ntype: task\ncommands: [a]\nfiles: [data]\n"
        )
        (tmp_path / "all" / name / "data" / "x.yaml").write_text("b:   1\n")
    (tmp_path / "all" / "base").mkdir()
    (tmp_path / "all" / "base" / "fleet.yaml").write_text("name: here\ntype: fleet\n")
    files = ["base/fleet.yaml", *(f"{one}/{file}" for one in ("production", "staging")
             for file in ("environment.yaml", "run.yaml"))]  # fmt: skip
    for path in ("all", "."):
        code, out, _err = typed("fmt", "--check", path)
        assert code == 1
        assert sorted(out.split()) == [f"all/{file}" for file in files]
    code, _out, err = typed("fmt", "all")
    assert (code, err) == (0, "5 files formatted, 0 files in order\n")
    code, out, _err = typed("fmt", "--check", "all")
    assert (code, out) == (0, "")


def test_an_environment_in_another_is_told(typed, tree):
    """There it is a mistake, and what lies in it is left alone."""
    (tree / "inner").mkdir()
    (tree / "inner" / "environment.yaml").write_text("name: lab\ntype: environment\n")
    code, _out, err = typed("fmt", "--check", str(tree))
    assert code == 1
    assert "environment-elsewhere" in err
