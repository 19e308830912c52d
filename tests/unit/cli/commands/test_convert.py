from __future__ import annotations

import re
import shlex

import pytest

from applied import FLEET, write_tree

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=train
#SBATCH --gres=gpu:a100:2
#SBATCH --time=2:00:00
#SBATCH --exclusive
python train.py
"""


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A folder with a script and a configuration, and the folder commands are typed in."""
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "train.sh").write_text(SCRIPT, encoding="utf-8")
    (folder / "dev.dstack.yml").write_text(
        "# mine\ntype: dev-environment\nide: vscode\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    return folder


def test_what_is_written_is_valid_and_formatted(typed, old):
    """A new tree stands where there was none, with what could not be taken over said."""
    code, out, err = typed("convert", "old", "--to", "new")
    assert code == 0
    assert "wrote new/train.yaml" in out
    assert "train.sh:5:1: warning[not-converted]" in err
    new = old.parent / "new"
    assert (new / "train.yaml").read_text(encoding="utf-8") == (
        "type: task\nname: train\ncommands:\n  - python train.py\nshell: bash\n"
        "resources:\n  gpu: A100:2\nmax_duration: 2h\n"
    )
    assert (
        (new / "dev.yaml")
        .read_text(encoding="utf-8")
        .startswith("# mine\ntype: dev-environment\nname: dev\n")
    )
    assert typed("validate", "new")[0] == 0
    assert typed("fmt", "--check", "new")[0] == 0


def test_a_partition_is_a_fleet_of_the_environment(typed, old):
    """Of its name, or of the one that people say; another name is refused with those that exist."""
    new = old.parent / "new"
    write_tree(new, FLEET)
    (old / "fit.sh").write_text("#!/bin/sh\n#SBATCH -p local\necho $1\n", encoding="utf-8")
    (old / "tune.sh").write_text("#!/bin/sh\n#SBATCH -p gpu\necho\n", encoding="utf-8")
    assert typed("convert", "old/fit.sh", "--to", "new", "--", "x y")[0] == 0
    code, _out, err = typed("convert", "old/tune.sh", "--to", "new", "--partition", "gpu=other")
    assert (code, "it declares local" in err) == (1, True)
    assert typed("convert", "old/tune.sh", "--to", "new", "--partition", "gpu=local")[0] == 0
    assert all(
        "fleets:\n  - local\n" in (new / f"{one}.yaml").read_text() for one in ("fit", "tune")
    )
    assert "set -- 'x y'\n" in (new / "fit.yaml").read_text()
    assert typed("validate", "new")[0] == 0


def test_nothing_is_written_over(typed, old):
    """A second time it refuses, and so it does where one file of many is there."""
    assert typed("convert", "old", "--to", "new")[0] == 0
    (old.parent / "new" / "dev.yaml").unlink()
    code, _out, err = typed("convert", "old", "--to", "new")
    assert code == 1
    assert "new/train.yaml exists already" in err
    assert not (old.parent / "new" / "dev.yaml").exists()


def test_a_dry_run_shows_and_writes_nothing(typed, old):
    """What would be written, each file under its name."""
    code, out, _err = typed("convert", "old/train.sh", "--to", "new", "--dry-run")
    assert code == 0
    assert "# new/train.yaml\ntype: task\nname: train\n" in out
    assert "# new/environment.yaml\n" in out
    assert not (old.parent / "new").exists()


def test_the_next_steps_work_as_printed(typed, old, monkeypatch):
    """A converted run has no fleet in a new environment; after what is printed, a plan has both."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(old.parent / "state"))
    (old / "train.sh").write_text("#!/bin/bash\n#SBATCH -J train\necho hi\n", encoding="utf-8")
    code, out, _err = typed("convert", "old/train.sh", "--to", "my lab")
    assert code == 0
    steps = [shlex.split(one)[1:] for one in re.findall("`(fleetform .*?)`", out)]
    assert [one[0] for one in steps] == ["validate", "init"]
    for one in steps:
        code, out, err = typed(*one)
        assert code == 0, out + err
    _code, out, err = typed("plan", "-C", "my lab")
    assert "Plan: 2 to create." in out, err
    assert "+ fleet local" in out
    assert "+ task train" in out
    code, out, _err = typed("convert", "old/dev.dstack.yml", "--to", "my lab")
    assert "init" not in out


def test_a_folder_without_anything_is_said(typed, old):
    """A slip in a path makes no empty tree."""
    (old.parent / "empty").mkdir()
    code, _out, err = typed("convert", "empty", "--to", "new")
    assert code == 1
    assert "nothing in empty can be converted" in err
    assert not (old.parent / "new").exists()
