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
    """A document with other content is refused before anything is written, and an equal one is left as it is."""
    assert typed("convert", "old", "--to", "new")[0] == 0
    new = old.parent / "new"
    (new / "dev.yaml").unlink()
    (new / "train.yaml").write_text("# mine\n", encoding="utf-8")
    code, _out, err = typed("convert", "old", "--to", "new")
    assert code == 1
    assert "1 file with other content exists already: new/train.yaml" in err
    assert not (new / "dev.yaml").exists()
    (new / "train.yaml").unlink()
    assert typed("convert", "old", "--to", "new")[0] == 0
    code, out, err = typed("convert", "old", "--to", "new")
    assert (code, "wrote" in out) == (0, False)
    assert "new/dev.yaml, new/train.yaml are there already with the same content" in err


def test_scripts_that_share_files_are_converted_one_by_one(typed, tmp_path, monkeypatch):
    """Equal files are used again, new ones are added, and what Python caches is not compared."""
    _shared(tmp_path, monkeypatch)
    assert typed("convert", "arr.sh", "--to", "lab")[0] == 0
    (tmp_path / "lib/__pycache__").mkdir()
    (tmp_path / "lib/__pycache__/model.pyc").write_bytes(b"1")
    (tmp_path / "lib/more.py").write_text("y = 1\n", encoding="utf-8")
    code, out, err = typed("convert", "mod.sh", "--to", "lab", "--", "/data/x", "--lr", "3")
    assert code == 0, err
    assert "lab/lib/model.py, lab/train.py are there already with the same content" in err
    assert [one for one in out.splitlines() if one.startswith(("copied", "wrote"))] == [
        "copied lab/lib/more.py",
        "wrote lab/mod.yaml",
    ]
    code, _out, err = typed("validate", "lab")
    assert code == 0, err


def test_files_with_other_content_are_all_named_and_stay(typed, tmp_path, monkeypatch):
    """The folder that the advice names takes the new task and its files; the first task stays as it is."""
    _shared(tmp_path, monkeypatch)
    assert typed("convert", "arr.sh", "--to", "lab")[0] == 0
    before = {one: one.read_bytes() for one in (tmp_path / "lab").rglob("*") if one.is_file()}
    for name in ("train.py", "lib/model.py"):
        with (tmp_path / name).open("a", encoding="utf-8") as stream:
            stream.write("# changed\n")
    code, _out, err = typed("convert", "mod.sh", "--to", "lab")
    assert code == 1
    assert "2 files with other content exist already: lab/lib/model.py, lab/train.py" in err
    assert typed("convert", "mod.sh", "--to", "lab", "--dry-run")[0] == 1
    assert not (tmp_path / "lab/mod.yaml").exists()
    target = re.search(r"`--to (\S+)`", err)[1]
    code, out, err = typed("convert", "mod.sh", "--to", target)
    assert code == 0, err
    assert "`fleetform validate -C lab`" in out
    assert (tmp_path / "lab/mod/lib/model.py").read_text() == "x = 1\n# changed\n"
    assert not (tmp_path / "lab/mod/environment.yaml").exists()
    assert all(one.read_bytes() == content for one, content in before.items())
    code, out, err = typed("validate", "lab")
    assert (code, "2 documents" in out) == (0, True), err


def test_no_file_is_written_through_a_link(typed, tmp_path, monkeypatch):
    """A folder of the environment that is a link leads elsewhere, where other files are."""
    _shared(tmp_path, monkeypatch)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/lib").symlink_to(tmp_path / "elsewhere")
    code, _out, err = typed("convert", "arr.sh", "--to", "lab")
    assert (code, "lab/lib/model.py" in err) == (1, True)
    assert not list((tmp_path / "elsewhere").iterdir())


def _shared(folder, monkeypatch):
    """Two scripts that call one program, which imports a package."""
    monkeypatch.chdir(folder)
    (folder / "lib").mkdir()
    (folder / "lib/model.py").write_text("x = 1\n", encoding="utf-8")
    (folder / "train.py").write_text("from lib import model\n", encoding="utf-8")
    (folder / "arr.sh").write_text(
        "#!/bin/bash\n#SBATCH --array=1-3\npython train.py $SLURM_ARRAY_TASK_ID\n",
        encoding="utf-8",
    )
    (folder / "mod.sh").write_text(
        '#!/bin/bash\n#SBATCH -n 1\npython train.py "$@"\n', encoding="utf-8"
    )


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


def test_headings_say_what_is_true_of_a_line(typed, old):
    """A line that stays is not headed as one that was changed or left out; a new name has its reason."""
    (old / "w.sh").write_text(
        "#!/bin/bash\n#SBATCH -n 1\nmodule purge\nmkdir -p results\nsource activate x\npython x.py $1\n",
        encoding="utf-8",
    )
    _code, _out, err = typed("convert", "old/w.sh", "--to", "new")
    for line in (3, 4, 5, 6):
        assert re.search(rf"w.sh:{line}:1: \w+\[line-kept\]: The line is kept as it is", err), line
    assert "not-converted" not in err
    assert (
        "The name has one character; it needs at least two. The task is named `run-w`."
        in " ".join(err.split())
    )


def test_convert_and_validate_say_the_same_of_srun_on_several_nodes(typed, old):
    """One sentence, and one way out."""
    (old / "big.sh").write_text("#!/bin/bash\n#SBATCH -N 2\nsrun ./x\n", encoding="utf-8")
    _code, _out, err = typed("convert", "old/big.sh", "--to", "new")
    _code, out, checked = typed("validate", "new")
    for text in (err, out + checked):
        words = " ".join(text.split())
        assert "`srun` on several nodes is not supported yet" in words
        assert "Start the program without `srun`" in words
        assert "FLEETFORM_NODE_RANK" not in words
