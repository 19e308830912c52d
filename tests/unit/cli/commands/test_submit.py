from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import time
from dataclasses import replace

import pytest

import applied
from fleetform.app.apply import ApplyResult
from fleetform.app.problems import EditProblem
from fleetform.app.workspace import Workspace
from fleetform.cli.commands import submit as module
from fleetform.cli.exit import Exit
from fleetform.model.run_state import RunState
from fleetform.spec.syntax.files import create_file


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A script in a folder of its own, outside of the tree and of git; and a shell with a venv."""
    monkeypatch.setenv("PATH", f"/opt/venv/bin:{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", "/opt/${{ venv }}")
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print('hi')\n")
    (folder / "lib.py").write_text("")
    return folder / "train.py"


@pytest.fixture
def plans(monkeypatch):
    """What would be carried out, in the place of carrying it out."""
    made = []

    def take(_workspace, plan, _submission, _interrupts, **_options):
        made.append(plan)
        return 0

    monkeypatch.setattr(module, "_carry_out", take)
    return made


def test_a_script_becomes_a_document_with_its_code(typed, lab, script, plans):
    """In the scratch folder, within a time limit, with variables and arguments; and is planned."""
    code, _out, err = typed(
        "submit", str(script), "-n", "try", "-e", "LR=0.1", "--", "--steps", "3 4"
    )
    assert code == 0, err
    text = (lab / "scratch/try.yaml").read_text()
    assert '  LR: "0.1"\n' in text
    assert re.search("python3? train.py --steps '3 4'", text)
    assert "max_duration: 8h\n" in text
    assert "code:\n  sha256: " in text
    assert (lab / "scratch/.gitignore").read_text().endswith("*\n")
    assert "try: only train.py is sent (not in a git repository" in err
    assert [str(change.key) for change in plans[0].changes] == ["run/try"]


def test_two_that_make_the_scratch_folder_do_not_meet(typed, lab, script, plans, monkeypatch):
    """Another one makes its `.gitignore` between the look and the writing."""

    def make_after_another(path, content):
        create_file(path, content)
        create_file(path, content)

    monkeypatch.setattr("fleetform.app.submit.create_file", make_after_another)
    code, _out, err = typed("submit", str(script), "-n", "try")
    assert code == 0, err
    assert (lab / "scratch/try.yaml").exists()
    digest = plans[0].changes[0].steps[0].arguments["document"]["code"]["sha256"]
    state = lab.parent / "state/environments"
    assert list(state.glob(f"*/blobs/{digest[:2]}/{digest}"))
    assert not list(state.glob("*/blobs/.bundle-*"))


@pytest.mark.parametrize(("found", "program"), [("python", "python"), ("python3", "python3")])
def test_a_script_of_python_runs_with_the_python_that_exists(
    typed, lab, script, plans, monkeypatch, tmp_path, found, program
):
    """A machine may have `python3` alone."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / found).write_text("#!/bin/sh\n")
    (folder / found).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    code, _out, err = typed("submit", str(script), "-n", "try")
    assert code == 0, err
    assert f"{program} train.py" in (lab / "scratch/try.yaml").read_text()


def test_a_variable_without_a_value_is_taken_from_the_shell(typed, lab, script, plans, monkeypatch):
    """As it is there, and to the last character; nothing that is printed has it."""
    monkeypatch.setenv("HF_TOKEN", "hf_word ${{ secrets.none }} 'x' \n: #")
    code, out, err = typed("submit", str(script), "-n", "try", "-e", "HF_TOKEN", "-e", "LR=")
    assert code == 0, err
    assert "hf_word" not in out + err
    (step,) = plans[0].changes[0].steps
    text = step.arguments["document"]["env"]["HF_TOKEN"]
    assert text == "hf_word ${{ secrets.none }} 'x' \n: #"
    assert step.arguments["document"]["env"]["LR"] == ""


def test_what_finds_programs_in_this_shell_is_written_down(typed, lab, script, plans):
    """In the document, where it can be seen, and the command says so."""
    code, _out, err = typed("submit", str(script), "-n", "try")
    assert code == 0, err
    assert "from this shell, in `env:` of scratch/try.yaml: PATH, VIRTUAL_ENV\n" in err
    (step,) = plans[0].changes[0].steps
    env = step.arguments["document"]["env"]
    assert env == {"PATH": os.environ["PATH"], "VIRTUAL_ENV": "/opt/${{ venv }}"}
    assert "  PATH: /opt/venv/bin:" in (lab / "scratch/try.yaml").read_text()


def test_what_the_document_or_the_command_line_says_wins_over_the_shell(
    typed, lab, script, plans, monkeypatch
):
    """A shell's variable fills a gap, and in a container there is none."""
    monkeypatch.setenv("CONDA_PREFIX", "/opt/conda")
    task = script.with_name("task.yml")
    task.write_text("type: task\ncommands: [python train.py]\nenv: [PATH=/own/bin]\n")
    code, _out, err = typed("submit", str(task), "-n", "try", "-e", "VIRTUAL_ENV=/other")
    assert code == 0, err
    assert "in `env:` of scratch/try.yaml: CONDA_PREFIX\n" in err
    (step,) = plans[0].changes[0].steps
    assert step.arguments["document"]["env"] == {
        "PATH": "/own/bin",
        "VIRTUAL_ENV": "/other",
        "CONDA_PREFIX": "/opt/conda",
    }
    task.write_text("type: task\nimage: python:3.12\ncommands: [python train.py]\n")
    assert "from this shell" not in typed("submit", str(task), "-n", "boxed")[2]


def test_a_variable_that_is_not_set_is_refused(typed, lab, script, plans, monkeypatch):
    """A run that lacks it would fail later, and for another reason."""
    monkeypatch.delenv("HF_TOKEN", raising=False)
    code, _out, err = typed("submit", str(script), "-n", "try", "-e", "HF_TOKEN")
    assert (code, plans) == (1, [])
    assert "`HF_TOKEN` is not set in this shell" in err
    monkeypatch.setenv("HF_TOKEN", "a\udcffb")
    _code, _out, err = typed("submit", str(script), "-n", "try", "-e", "HF_TOKEN")
    assert "`HF_TOKEN` in this shell is not UTF-8" in err
    assert not (lab / "scratch/try.yaml").exists()


def test_a_name_is_free_or_refused_with_one_that_is(typed, lab, script, plans):
    """Also one of a run whose result is kept: it would be found again."""
    code, _out, err = typed("submit", str(script), "-n", "train")
    assert code == 1
    assert "`-n train-2` is free" in err
    assert typed("submit", str(script))[0] == 0
    (made,) = (lab / "scratch").glob("*.yaml")
    assert made.stem.startswith("train-")


def test_a_batch_script_keeps_what_it_asks_for(typed, lab, script, plans):
    """Its directives are read, and the script itself runs."""
    job = script.with_name("job.sh")
    job.write_text("#!/bin/bash\n#SBATCH --time=0:30:00\n#SBATCH -c 2\npython train.py\n")
    assert typed("submit", str(job), "-n", "job")[0] == 0
    text = (lab / "scratch/job.yaml").read_text()
    assert "max_duration: 30m" in text
    assert "/bin/bash job.sh" in text
    assert "cpu: 2" in text


def test_a_batch_script_names_its_run(typed, lab, script, plans):
    """By `--job-name`; a second submission of the same script gets another name, and `-n` is stronger."""
    job = script.with_name("job.sh")
    job.write_text("#!/bin/bash\n#SBATCH -J Big_Fit --part=local\necho $SLURM_ARRAY_TASK_ID $1\n")
    assert typed("submit", str(job), "--", "a b")[0] == 0
    text = (lab / "scratch/big-fit.yaml").read_text()
    assert "/bin/bash job.sh 'a b'" in text
    assert "compat: slurm" in text
    assert "fleets:\n  - local\n" in text
    assert typed("submit", str(job))[0] == 0
    assert len(list((lab / "scratch").glob("big-fit-*.yaml"))) == 1
    assert typed("submit", str(job), "-n", "mine")[0] == 0
    assert (lab / "scratch/mine.yaml").exists()


@pytest.fixture
def batch(script):
    """A project without git: a batch script, files that it uses in two folders, and others."""
    project = script.parent
    files = {
        "jobs/fit.sh": "#!/bin/bash\n#SBATCH -p gpu\nsource env.sh\n"
        "python3 train.py --config conf/a.yaml --extra conf/gone.yaml\n",
        "env.sh": "export RATE=3\n",
        "train.py": "import lib\nprint(lib.x, open('words.txt').read())\n",
        "words.txt": "words",
        "conf/a.yaml": "a: 1\n",
        "private.key": "key",
    }
    for name, text in files.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    return project / "jobs/fit.sh"


def _sent(lab, name):
    """Return the names in the archive of a submitted document."""
    (digest,) = re.findall(r"sha256: (\w+)", (lab / f"scratch/{name}.yaml").read_text())
    (archive,) = (lab.parent / "state/environments").glob(f"*/blobs/{digest[:2]}/{digest}")
    with tarfile.open(archive) as opened:
        return set(opened.getnames())


def test_a_batch_script_goes_with_the_files_that_convert_finds(
    typed, lab, batch, plans, monkeypatch
):
    """Outside of git too, and it runs in the folder in which they have the names that it uses."""
    monkeypatch.chdir(batch.parent.parent)
    code, _out, err = typed("submit", "jobs/fit.sh", "-n", "fit", "-C", str(lab))
    assert code == 0, err
    code, converted, _err = typed("convert", "jobs/fit.sh", "--to", str(lab.parent / "new"))
    assert code == 0
    copied = set(re.findall(r"copied \S*/new/(\S+)", converted))
    assert copied == {"env.sh", "train.py", "lib.py", "words.txt", "conf/a.yaml"}
    assert _sent(lab, "fit") == {"jobs/fit.sh", *copied}
    text = (lab / "scratch/fit.yaml").read_text()
    assert "/bin/bash jobs/fit.sh" in text
    assert "working_dir" not in text
    assert "files:" not in text


def test_what_convert_reports_of_a_batch_script_submit_reports_too(
    typed, lab, batch, plans, monkeypatch
):
    """A note is one line, with an option that works here; what could not be found is a warning."""
    monkeypatch.chdir(batch.parent.parent)
    code, _out, err = typed("submit", "jobs/fit.sh", "-n", "fit", "-C", str(lab))
    assert code == 0, err
    assert "only jobs/fit.sh, conf/a.yaml, env.sh, lib.py, train.py, words.txt are sent" in err
    assert "fit.sh:4:1: warning[line-kept]" in err
    assert "The script reads `conf/gone.yaml`, and there is no such file beside it." in err
    (note,) = re.findall("^note: (.*)$", err, re.MULTILINE)
    assert note.startswith(
        "jobs/fit.sh:2: The environment has no queue and no fleet `gpu`, so the task runs on any fleet."
    )
    (option,) = re.findall("`-s (.*?)`", note)
    chosen = option.replace("FLEET", "local")
    code, _out, err = typed("submit", "jobs/fit.sh", "-n", "on", "-C", str(lab), "-s", chosen)
    assert code == 0, err
    assert "fleets: local\n" in (lab / "scratch/on.yaml").read_text()


def test_a_batch_script_in_git_goes_with_the_repository(typed, lab, batch, plans, need):
    """And with the files that it uses and that git ignores, as with those that `files:` lists."""
    need("git", shutil.which("git") is not None, "git is not installed")
    project = batch.parent.parent
    (project / ".gitignore").write_text("words.txt\n*.key\n")
    subprocess.run(["git", "init", "-q", project], check=True)
    code, _out, err = typed("submit", str(batch), "-n", "fit")
    assert code == 0, err
    sent = _sent(lab, "fit")
    assert {"jobs/fit.sh", "train.py", "words.txt", ".gitignore"} <= sent
    assert "private.key" not in sent
    assert "/bin/bash jobs/fit.sh" in (lab / "scratch/fit.yaml").read_text()


def test_a_directive_that_changes_what_runs_keeps_its_commands(typed, lab, script, plans):
    """`--wrap` runs instead of the script, in the folder of the files."""
    job = script.with_name("job.sh")
    job.write_text("#!/bin/bash\n#SBATCH --wrap='python3 train.py'\n")
    assert typed("submit", str(job), "-n", "job")[0] == 0
    assert "python3 train.py" in (lab / "scratch/job.yaml").read_text()
    assert _sent(lab, "job") == {"job.sh", "train.py"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("main.py", "def run():\n    from lib import x\nimport json, gone, pack.part\n"),
        ("main.py", "#!/usr/bin/env python3\n#SBATCH -n 1\nimport lib, pack.part\n"),
        ("main.sh", "#!/bin/sh\npython3 lib.py pack/part.py\n"),
        ("main.yaml", "type: task\ncommands:\n  - python3 lib.py pack/part.py\n"),
    ],
)
def test_a_file_that_is_used_and_not_sent_is_named(
    typed, lab, script, plans, monkeypatch, name, text
):
    """Outside of git, with the options that send it; then nothing is said."""
    folder = script.parent
    monkeypatch.chdir(folder)
    (folder / name).write_text(text)
    (folder / "pack").mkdir()
    (folder / "pack/part.py").write_text("")
    code, _out, err = typed("submit", name, "-n", "one", "-C", str(lab))
    assert code == 0, err
    (said, options) = re.findall(
        r"^note: (.*), which are not sent: add `(.*)`$", err, re.MULTILINE
    )[0]
    assert said in {f"{name} uses lib.py, pack", f"{name} uses lib.py, pack/part.py"}
    code, _out, err = typed("submit", name, "-n", "two", "-C", str(lab), *options.split())
    assert code == 0, err
    assert "not sent" not in err
    assert _sent(lab, "two") == {name, "lib.py", "pack/part.py"}


def test_a_module_of_a_module_is_named(typed, lab, script, plans):
    """The import of a module that is sent may fail too."""
    script.write_text("import lib\n")
    script.with_name("lib.py").write_text("import deep, train\n")
    script.with_name("deep.py").write_text("")
    lib = str(script.with_name("lib.py"))
    _code, _out, err = typed("submit", str(script), "-n", "try", "--file", lib)
    assert "deep.py, which is not sent" in err


def test_a_document_names_its_run(typed, lab, script, plans):
    """By its `name`; a second submission of it gets a longer name and says so; `-n` is stronger."""
    document = script.with_name("fit.yml")
    document.write_text("type: task\nname: baseline\ncommands: [ls]\n")
    code, _out, err = typed("submit", str(document))
    assert code == 0, err
    assert (lab / "scratch/baseline.yaml").exists()
    assert "there is or was" not in err
    code, _out, err = typed("submit", str(document))
    assert code == 0, err
    (second,) = (lab / "scratch").glob("baseline-*.yaml")
    assert (
        f"note: there is or was a run `baseline`, so this one is {second.stem}; `-n NAME` chooses"
        " another name\n"
    ) in err
    assert typed("submit", str(document), "-n", "mine")[0] == 0
    assert "name: mine\n" in (lab / "scratch/mine.yaml").read_text()


def test_a_document_is_taken_with_its_comments(typed, lab, script, plans):
    """A list of variables stays one; files that the code brings are not named twice."""
    document = script.with_name("train.dstack.yml")
    document.write_text(
        "# our best\ntype: task\nenv: [LR=1, SEED=2]\nfiles: [./train.py]\nrepos: [.]\n"
        "commands:\n  - python train.py  # slow\nmax_duration: 1h\n"
    )
    code, _out, err = typed("submit", str(document), "-n", "best", "-e", "LR=3", "-s", "priority=7")
    assert code == 0, err
    text = (lab / "scratch/best.yaml").read_text()
    assert "# our best\n" in text
    assert "- python train.py  # slow\n" in text
    assert "[LR=3, SEED=2, " in text
    assert "priority: 7" in text
    assert "max_duration: 1h" in text
    assert "files" not in text
    assert "repos" not in text


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("fleet.yaml", "type: fleet\nname: mine\nlocal: true\n", "declares no run"),
        ("two.yaml", "type: task\n---\ntype: task\n", "2 documents"),
        ("odd.txt", "words", "no interpreter is known"),
        (
            "files.yaml",
            "type: task\ncommands: [ls]\nfiles: ['./lib.py:x.py']\n",
            "mapped to `x.py`",
        ),
        ("wrong.yaml", "type: task\ncommands: [ls]\nnodes: many\n", "`many`"),
        ("variables.yaml", "type: task\ncommands: [ls]\nenv: 5\n", "variables.yaml:3:6: error"),
        ("up.yaml", "type: task\nname: ../up\ncommands: [ls]\n", "up.yaml:2:7: error[bad-name]"),
        ("open.yaml", "type: task\n\ncommands: [ls\n", "open.yaml:3:11: error[yaml-syntax]"),
    ],
)
def test_what_cannot_be_submitted_leaves_nothing(typed, lab, script, plans, name, text, says):
    """Neither a document nor an archive, and the reason is told."""
    file = script.with_name(name)
    file.write_text(text)
    code, _out, err = typed("submit", str(file))
    assert code == 1
    assert says in err
    assert not (lab / "scratch").exists()
    assert not plans
    assert not list((lab.parent / "state/environments").glob("*/blobs/.bundle-*"))


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ((), "fit.yml:6:8: error[bad-value]"),
        (("-s", "nodes=several"), "-s nodes: error[bad-value]"),
        (("-s", "nodes=1", "-s", "nodez=1"), "-s nodez: error[unknown-field]"),
        (("-s", "nodes=1", "-e", "1x=y"), "-e 1x: error[bad-variable]"),
        (("-s", "nodes=1", "-s", "resources.gpu.countt=1"), "-s resources.gpu.countt: error"),
        (("-s", "nodes.least=1"), "error: -s nodes.least: there is nothing below `many`"),
    ],
)
def test_an_error_is_shown_where_a_person_wrote_it(typed, lab, script, plans, options, place):
    """In the line of FILE, or at the option; never in the document that submit writes."""
    document = script.with_name("fit.yml")
    document.write_text(
        "# my fit\ncommands:\n  - ls\n\ntype: task\nnodes: many\nenv: [LR=1]\nresources: {gpu: {count: 1}}\n"
    )
    code, _out, err = typed("submit", str(document), "-n", "fit", *options)
    assert (code, plans) == (1, [])
    assert place in err
    assert err.count("error[") <= 1
    assert "scratch" not in err
    if not options:
        assert "    6 | nodes: many\n      |        ^^^^\n" in err


def test_only_findings_about_the_submission_are_shown(typed, lab, script, plans):
    """Not the warnings, notes and errors of other documents, and no command that lists them."""
    (lab / "other.yaml").write_text("type: task\nname: other\ncommands: [ls]\nenv: {API_KEY: x}\n")
    (lab / "wrong.yaml").write_text("type: task\nname: wrong\ncommands: [ls]\nnodes: many\n")
    document = script.with_name("fit.yml")
    document.write_text("type: task\ncommands: [ls]\nenv:\n  HF_TOKEN: hf_x\n")
    code, _out, err = typed("submit", str(document), "-n", "fit")
    assert code == 0, err
    assert "fit.yml:3:1: warning[secret-in-clear]" in err
    assert err.count("warning") == 1
    for word in ("validate", "error", "other", "many"):
        assert word not in err


@pytest.mark.parametrize("is_option", [True, False])
def test_a_secret_is_named_before_it_is_written(typed, lab, script, plans, monkeypatch, is_option):
    """With where it is stored, and how to avoid that; its value is not printed."""

    def refuse(_workspace, _submission):
        raise EditProblem("the disk is full")

    monkeypatch.setenv("HF_TOKEN", "hf_word")
    document = script.with_name("fit.yml")
    env = "" if is_option else "env: [HF_TOKEN]\n"
    document.write_text(f"type: task\ncommands: [ls]\n{env}")
    line = ("submit", str(document), "-n", "fit", *(("-e", "HF_TOKEN") if is_option else ()))
    with monkeypatch.context() as patch:
        patch.setattr("fleetform.app.submit.write_submission", refuse)
        assert typed(*line)[2] == (
            "warning: the value of `HF_TOKEN` is stored in plaintext: in scratch/fit.yaml, in the ledger"
            " and on the host of the job\n"
            "help: to avoid this, let the commands read it from a file that only the job's account can"
            " read\n"
            "error: the disk is full\n"
        )
        assert not (lab / "scratch").exists()
    code, out, err = typed(*line)
    assert code == 0, err
    assert err.count("plaintext") == 1
    assert "committed" not in err
    assert "hf_word" not in out + err
    (step,) = plans[0].changes[0].steps
    assert step.arguments["document"]["env"]["HF_TOKEN"] == "hf_word"


def test_a_variable_without_a_value_in_a_document_is_taken_from_the_shell(
    typed, lab, script, plans, monkeypatch
):
    """As by dstack; the command line is stronger, and one that is not set is refused."""
    document = script.with_name("fit.yml")
    document.write_text("type: task\ncommands: [ls]\nenv:\n  - PROJECT\n  - LR=1\n")
    monkeypatch.delenv("PROJECT", raising=False)
    code, _out, err = typed("submit", str(document), "-n", "none")
    assert code == 1
    assert "has `PROJECT` without a value, and it is not set in this shell" in err
    monkeypatch.setenv("PROJECT", "blue")
    code, _out, err = typed("submit", str(document), "-n", "shell")
    assert code == 0, err
    assert "- PROJECT=blue\n  - LR=1\n" in (lab / "scratch/shell.yaml").read_text()
    assert typed("submit", str(document), "-n", "line", "-e", "PROJECT=red")[0] == 0
    assert "- PROJECT=red\n" in (lab / "scratch/line.yaml").read_text()


def test_arguments_fill_run_args_of_a_document(typed, lab, script, plans):
    """In the commands, quoted for the shell; without arguments it is empty, as in dstack."""
    document = script.with_name("fit.yml")
    document.write_text(
        "type: task\ncommands:\n  - python3 train.py ${{ run.args }}  # slow\n"
        "  - |\n    cd x\n    echo ${{run.args}}\n"
    )
    code, _out, err = typed("submit", str(document), "-n", "some", "--", "--lr", "a  b", "${{ x }}")
    assert code == 0, err
    commands = plans[-1].changes[0].steps[0].arguments["document"]["commands"]
    typed_arguments = "--lr 'a  b' '${{ x }}'"
    assert commands == [
        f"python3 train.py {typed_arguments}",
        f"cd x\necho {typed_arguments}\n",
    ]
    assert "# slow\n" in (lab / "scratch/some.yaml").read_text()
    assert typed("submit", str(document), "-n", "none")[0] == 0
    commands = plans[-1].changes[0].steps[0].arguments["document"]["commands"]
    assert commands == ["python3 train.py ", "cd x\necho \n"]
    document.write_text("type: task\ncommands: [ls]\n")
    code, _out, err = typed("submit", str(document), "-n", "no", "--", "x")
    assert code == 1
    assert "have no `${{ run.args }}`, so it takes no arguments" in err


def test_what_is_held_is_not_submitted(typed, lab, script, plans):
    """A field that nothing carries out yet would have it wait for ever."""
    code, _out, err = typed("submit", str(script), "-n", "held", "-s", "image=alpine")
    assert code == Exit.HELD
    assert "are not supported yet: runs are processes of the host\nhelp: remove `image`" in err, (
        "what holds it comes first"
    )
    assert not (lab / "scratch/held.yaml").exists()


def test_a_name_that_an_unschedulable_run_keeps_is_explained(
    typed, lab, script, plans, monkeypatch
):
    """That run never started, so its name looks free to the person who submits the same file again."""
    live = module.live_with_fleet(Workspace.open(str(lab)))
    key, row = next((key, one) for key, one in live.resources.items() if one.run is not None)
    failed = replace(row, run=replace(row.run, state=RunState.UNSCHEDULABLE))
    changed = replace(live, resources={**live.resources, key: failed})
    monkeypatch.setattr(module, "live_with_fleet", lambda _workspace: changed)
    document = script.with_name("fit.yml")
    document.write_text(f"type: task\nname: {key.name}\ncommands: [ls]\n")
    code, _out, err = typed("submit", str(document))
    assert code == 0, err
    assert (
        f"the run `{key.name}` never started, because it is unschedulable, and keeps its name"
        in err
    )


def test_support_is_checked_before_values_are_asked_for(typed, lab, script, plans, monkeypatch):
    """Nobody exports a secret for a run that cannot start: with the value, the sentence is the same."""
    monkeypatch.delenv("HF_TOKEN", raising=False)
    service = script.parent / "serve.dstack.yml"
    service.write_text(
        "type: service\nname: llama\nport: 80\ncommands: [ls]\nenv: [HF_TOKEN]\n", encoding="utf-8"
    )
    unset = typed("submit", str(service))
    monkeypatch.setenv("HF_TOKEN", "hf_abc")
    assert typed("submit", str(service)) == unset
    code, _out, err = unset
    assert code == Exit.HELD
    assert err.startswith("error: llama is blocked: services are not supported yet")
    assert "plaintext" not in err
    assert not (lab / "scratch/llama.yaml").exists()
    assert not list((lab.parent / "state/environments").glob("*/blobs/.bundle-*"))
    _code, out, _err = typed("submit", "--help")
    assert re.search(r"(?m)^ +3 +The run is blocked", out)


def test_a_note_about_a_variable_names_the_option_that_sets_it(typed, lab, script, plans):
    """`env:` is in a document that nobody wrote; with the option, the note is gone."""
    job = script.parent / "fit.sh"
    job.write_text("#!/bin/sh\n#SBATCH -J fit\nexport KEY=$KEY\n./x $KEY\n", encoding="utf-8")
    (script.parent / "x").write_text("", encoding="utf-8")
    code, _out, err = typed("submit", str(job))
    assert code == 0, err
    assert "`-e KEY=VALUE`" in err
    code, _out, err = typed("submit", str(job), "-e", "KEY=1", "-n", "fit-2")
    assert (code, "KEY" in err.replace("-e KEY", "")) == (0, False), err


def test_without_hosts_there_is_nothing_to_run_on(typed, root, script, monkeypatch):
    """What others share is applied first, by whoever may."""
    monkeypatch.chdir(root)
    code, _out, err = typed("submit", str(script))
    assert code == 1
    assert "`fleetform apply`" in err


def test_an_old_experiment_makes_room(typed, lab, script, plans):
    """Two weeks after, once its run is over; its result is archived with the next."""
    typed("submit", str(script), "-n", "first")
    applied.enter(lab)
    old = time.time() - 15 * 86_400
    os.utime(lab / "scratch/first.yaml", (old, old))
    typed("submit", str(script), "-n", "second")
    assert (lab / "scratch/first.yaml").exists()  # It has not run yet.
    applied.run_all(lab, exit_codes={})
    _code, _out, err = typed("submit", str(script), "-n", "third")
    assert not (lab / "scratch/first.yaml").exists()
    assert "run/first was submitted over two weeks ago" in err
    assert {str(one.key): one.action.value for one in plans[-1].changes} == {
        "run/first": "archive",
        "run/third": "create",
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_it_is_planned_leaves_no_document(
    typed, lab, script, plans, monkeypatch, number
):
    """The next plan would run it."""
    monkeypatch.setattr(module, "plan_submission", lambda *_: signal.raise_signal(number))
    code, _out, err = typed("submit", str(script), "-n", "try")
    assert (code, plans) == (130, []), err
    assert not (lab / "scratch/try.yaml").exists()


def test_what_is_kept_is_the_same_run(typed, lab, script, plans):
    """The document moves as it is; a plan afterwards is empty but for a new name."""
    typed("submit", str(script), "-n", "first")
    applied.enter(lab)
    applied.run_all(lab, exit_codes={})
    text = (lab / "scratch/first.yaml").read_text()
    code, _out, err = typed("keep", "first")
    assert code == 0
    assert "only copy" in err
    assert (lab / "first.yaml").read_text() == text
    assert not (lab / "scratch/first.yaml").exists()
    assert typed("plan", "--detailed-exitcode")[0] in {0, 4}
    code, _out, err = typed("keep", "first")
    assert "is not in the scratch folder" in err


def test_what_is_kept_under_another_name_is_moved(typed, lab, script, plans):
    """`moved` says so, and nothing runs again."""
    typed("submit", str(script), "-n", "first")
    applied.enter(lab)
    applied.run_all(lab, exit_codes={})
    assert typed("keep", "first", "--as", "baseline")[0] == 0
    assert (
        "moved:\n  - from: run/first\n    to: run/baseline\n"
        in (lab / "environment.yaml").read_text()
    )
    _code, out, _err = typed("plan")
    assert "renamed from first" in out
    assert "executed once more" not in out


@pytest.fixture
def carried_out(monkeypatch):
    """What comes of an apply, in the place of one; an exception is raised."""

    def install(result):
        async def fake(*_arguments, **_options):
            if isinstance(result, BaseException):
                raise result
            return result

        monkeypatch.setattr("fleetform.app.apply.apply_plan", fake)

    return install


@pytest.mark.parametrize(
    ("options", "result", "outcome", "exit_code"),
    [
        (("--detach",), ApplyResult("done", 0), "submitted", 0),
        ((), ApplyResult("handed-over", 0), "submitted", 0),
        ((), ApplyResult("done", 0), "done", 0),
        ((), ApplyResult("done", Exit.RUN_FAILED), "failed", 4),
        ((), KeyboardInterrupt(), "interrupted", 130),
    ],
)
def test_scripts_read_one_value(
    typed, lab, script, carried_out, options, result, outcome, exit_code
):
    """Nothing else is on standard output, whatever came of it; the rest is told beside it."""
    carried_out(result)
    code, out, err = typed("submit", str(script), "-n", "try", "--json", *options)
    assert code == exit_code
    assert json.loads(out) == {
        "name": "try",
        "outcome": outcome,
        "exit_code": exit_code,
        "document": "scratch/try.yaml",
        "code_files": 1,
        "commit": "",
        "runs": [],
    }
    assert "try: only train.py is sent (not in a git repository" in err


def test_a_sweep_is_told_with_its_elements(typed, lab, script, carried_out, monkeypatch):
    """One row each, as `ps --json` has them, and of no other run."""

    async def enter(workspace, *_arguments, **_options):
        applied.enter(workspace.root)
        applied.run_all(workspace.root, exit_codes={"try[lr=0.2]": 3})
        return ApplyResult("done", Exit.RUN_FAILED)

    monkeypatch.setattr("fleetform.app.apply.apply_plan", enter)
    code, out, _err = typed(
        "submit", str(script), "-n", "try", "-s", "matrix={lr: [0.1, 0.2]}", "--json"
    )
    assert code == 4
    told = json.loads(out)
    assert [
        (row["name"], row["attempt"], row["state"], row["exit_code"]) for row in told["runs"]
    ] == [
        ("try[lr=0.1]", 1, "done", 0),
        ("try[lr=0.2]", 1, "failed", 3),
    ]
    _code, listed, _err = typed("ps", "--json")
    same = {row["name"]: row.keys() for row in json.loads(listed)}
    assert all(row.keys() == same[row["name"]] for row in told["runs"])
