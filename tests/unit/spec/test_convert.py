from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetform.agents.host.slurm import options as stand_in
from fleetform.spec.convert import Partitions, convert, convert_slurm
from fleetform.spec.convert.slurm.needs import FLAGS, OPTIONS, SHORT, SHORT_FLAGS
from fleetform.spec.convert.slurm.options import TABLE
from fleetform.spec.convert.slurm.sbatch import LONG_OPTIONS, is_batch_script, read_script
from fleetform.spec.findings import Level
from fleetform.spec.kinds import KINDS
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.tree import load_tree
from unit.spec.trees import ENVIRONMENT, write

SEEDS = Path(__file__).parents[4] / "shared" / "seeds"


def said(text):
    """The one document of a text, as values."""
    nodes, findings = read_documents(text.encode(), "")
    assert findings == []
    (node,) = nodes
    return plain(node)


def task(*directives, body="python train.py"):
    """What becomes of a script with these directives, and how it was told."""
    script = "\n".join(["#!/bin/bash", *(f"#SBATCH {one}" for one in directives), "", body, ""])
    made = convert_slurm(
        script, "x.sh", name="job", known=frozenset({"prepare"}), partitions=PARTITIONS
    )
    return said(made.text), [(one.level.value, one.place.line) for one in made.findings]


def loaded(result, folder):
    """The tree that a conversion makes, loaded."""
    write(folder, "environment.yaml", ENVIRONMENT)
    for file in result.written:
        write(folder, file.path, file.text)
    for copy in result.copied:
        assert copy.source.is_file()
        write(folder, copy.path, copy.source.read_text(encoding="utf-8"))
    return load_tree(folder)


def codes(result):
    return [(found.code, found.place.file, found.place.line) for found in result.findings]


# Slurm

PARTITIONS = Partitions(frozenset({"gpu-long"}), frozenset({"gpu"}), {"rtx": "gpu"})

DIRECTIVES = [
    ("--job-name=job", {}, []),
    ("-N 4", {"nodes": 4}, [("warning", 1)]),
    ("--nodes=2-4", {"nodes": 2}, [("warning", 2), ("warning", 1)]),
    ("--nodes=1", {}, []),
    ("--cpus-per-task=8", {"resources": {"cpu": "8.."}}, []),
    ("-n 4 -c 2", {"resources": {"cpu": "8.."}}, []),
    ("--mem=32G", {"resources": {"memory": "32GB.."}}, []),
    ("--mem 1500", {"resources": {"memory": "1500MB.."}}, []),
    ("--mem=0", {}, [("warning", 2)]),
    ("--mem-per-cpu=2G -c 4", {"resources": {"cpu": "4..", "memory": "8GB.."}}, []),
    ("--mem-per-gpu=40G -G 2", {"resources": {"memory": "80GB..", "gpu": 2}}, []),
    ("--gres=gpu:2", {"resources": {"gpu": 2}}, []),
    ("--gres=gpu", {"resources": {"gpu": 1}}, []),
    ("--gres=gpu:a100:2  # two", {"resources": {"gpu": "A100:2"}}, []),
    ("--gres=gpu:a100_80gb:2", {"resources": {"gpu": "A100:80GB:2"}}, [("note", 2)]),
    ("--gres=gpu:a100_1g.10gb:2",
     {"resources": {"gpu": {"name": "A100", "slice": "1g.10gb", "count": 2}}}, []),
    ("--gres=gpu:1,lustre:5", {"resources": {"gpu": 1}}, [("warning", 2)]),
    ("--gpus-per-node=h100:8", {"resources": {"gpu": "H100:8"}}, []),
    ("--gres=gpu:0", {}, []),
    ("-N2 --gpus=16", {"nodes": 2, "resources": {"gpu": 8}}, [("warning", 2)]),
    ("-n 4 --ntasks-per-node=2", {"nodes": 2, "resources": {"cpu": "2.."}}, [("warning", 2)]),
    ("-n 5 --ntasks-per-node=2 -c 3", {"nodes": 3, "resources": {"cpu": "6.."}}, [("warning", 2)]),
    ("-N 2 -n 4 --ntasks-per-node=4", {"nodes": 2, "resources": {"cpu": "2.."}}, [("warning", 2)]),
    ("--gpus=8 --gpus-per-node=4", {"nodes": 2, "resources": {"gpu": 4}}, [("warning", 2)]),
    ("--gpus-per-task=1 -n 2", {"resources": {"cpu": "2..", "gpu": 2}}, []),
    ("-G 4 --gpus-per-task=2 -c 3", {"resources": {"cpu": "6..", "gpu": 4}}, []),
    ("--mincpus=16 -c 2", {"resources": {"cpu": "16.."}}, []),
    ("--tasks-per-node=4", {"resources": {"cpu": "4.."}}, []),
    ("--ntasks-per-n=4", {"resources": {"cpu": "4.."}}, []),
    ("--part=gpu --exclus --mail-t=ALL", {"fleets": ["gpu"]}, [("warning", 2), ("note", 2)]),
    ("--n=4", {}, [("warning", 2)]),
    ("--mem_bind=local", {}, [("warning", 2)]),
    ("--array=[1-35]%4 --cluster=x", {"array": "1-35%4"}, [("warning", 2)]),
    ("--wrap='python x.py'", {"commands": ["python x.py"]}, []),
    ("--input=a.txt", {"commands": ["exec < a.txt\npython train.py\n"]}, []),
    ("--constraint=a100 --gres=gpu:1", {"resources": {"gpu": "A100:1"}}, [("note", 2)]),
    ("-C skylake", {}, [("warning", 2)]),
    ("--tmp=100G", {"resources": {"disk": "100GB.."}}, []),
    ("--time=90", {"max_duration": "1h30m"}, []),
    ("-t 2:00:00", {"max_duration": "2h"}, []),
    ("-t 1-12", {"max_duration": "1d12h"}, []),
    ("-t 1-00:30", {"max_duration": "1d30m"}, []),
    ("-t 5:30", {"max_duration": "5m30s"}, []),
    ("--time=UNLIMITED", {"max_duration": "off"}, []),
    ("--time=soon", {}, [("warning", 2)]),
    ("--array=1-100:2%10", {"array": "1-100:2%10"}, []),
    ("-p gpu", {"fleets": ["gpu"]}, []),
    ("-p elsewhere", {}, [("note", 2)]),
    ("-p rtx", {"fleets": ["gpu"]}, []),
    ("--partition=GPU_long,gpu", {"queue": "gpu-long"}, [("note", 2)]),
    ("--requeue", {"retry": {"on": ["node-failure", "preemption"]}}, []),
    ("--signal=B:USR1@300", {"checkpoint": {"signal": "USR1", "lead": "5m"}}, [("note", 2)]),
    ("--signal=10", {"checkpoint": {"signal": "USR1", "lead": "1m"}}, [("note", 2)]),
    ("--dependency=afterok:prepare",
     {"depends_on": [{"run": "prepare", "when": "succeeded"}]}, []),
    ("--dependency=afterany:prepare?afternotok:prepare",
     {"depends_on": {"when": "any", "runs": [{"run": "prepare", "when": "finished"},
                                             {"run": "prepare", "when": "failed"}]}}, []),
    ("--dependency=afterok:12345", {}, [("warning", 2)]),
    ("--dependency=singleton", {"concurrency": {"group": "job", "limit": 1}}, []),
    ("--begin=2030-01-01T10:00", {}, [("warning", 2)]),
    ("--deadline=now+1hour", {}, [("warning", 2)]),
    ("--export=ALL,LR=0.1,HF_TOKEN", {"env": {"LR": "0.1"}}, [("note", 2), ("warning", 2)]),
    ("--export=NONE", {}, []),
    ("--comment='a b'", {"description": "a b"}, []),
    ("-D /work", {"working_dir": "/work"}, []),
    ("--chdir=./", {}, []),
    ("--workdir=run/1", {"commands": ["mkdir -p run/1 && cd run/1\npython train.py\n"]}, []),
    ("--tasks=8 -N 2", {"nodes": 2, "resources": {"cpu": "4.."}}, [("warning", 2)]),
    ("--gres=gpu:2080ti:2", {"resources": {"gpu": "RTX2080TI:2"}}, [("note", 2)]),
    ("--gres=gpu:1080:1", {"resources": {"gpu": "GTX1080:1"}}, [("note", 2)]),
    ("--gres=gpu:tesla:2", {"resources": {"gpu": 2}}, [("warning", 2)]),
    ("--container-mounts=/data --container-writable --no-container-mount-home",
     {"volumes": ["/data:/data"]}, [("warning", 2), ("warning", 2)]),
    ("-A lab7", {"tags": {"account": "lab7"}}, [("note", 2)]),
    ("-H", {"state": "stopped"}, []),
    ("--container-image=nvcr.io#nvidia/pytorch:24.01-py3 --container-mounts=/a:/b,/c:/d:ro",
     {"image": "nvcr.io/nvidia/pytorch:24.01-py3", "volumes": ["/a:/b", "/c:/d"]}, []),
    ("--container=docker://pytorch/pytorch:2.0", {"image": "pytorch/pytorch:2.0"}, []),
    ("--container=/images/x.sif", {}, [("warning", 2)]),
    ("--exclusive", {}, [("warning", 2)]),
    ("--output=%j.out -e %j.err", {}, [("note", 2), ("note", 2)]),
    ("--qos=high --nice", {}, [("warning", 2), ("warning", 2)]),
    ("--frobnicate=1", {}, [("warning", 2)]),
    ("--comment='a", {}, [("warning", 2)]),
]  # fmt: skip


@pytest.mark.parametrize(("directive", "fields", "told"), DIRECTIVES)
def test_a_directive_is_a_field_or_is_told(directive, fields, told):
    """Nothing is dropped in silence, and what is told points to its line."""
    document, findings = task(directive)
    rest = {"type": "task", "name": "job", "shell": "bash", "commands": ["python train.py"]}
    assert document == rest | fields
    assert findings == told


@pytest.mark.parametrize(
    "value", ["afterok:12345", "afterany:12345+60", "afterok:other", "before:1"]
)
def test_a_dependency_that_the_task_does_not_have_is_unresolved(value):
    """A caller that runs the task can refuse it: without the dependency it would start at once."""
    script = f"#!/bin/bash\n#SBATCH --dependency={value}\n#SBATCH --begin=now+1hour\necho\n"
    made = convert_slurm(script, "x.sh", name="job", known=frozenset({"prepare"}))
    assert [one.place.line for one in made.unresolved] == [2]
    assert set(made.unresolved) < set(made.findings)
    resolved = convert_slurm(
        "#!/bin/bash\n#SBATCH -d afterok:prepare,singleton\necho\n",
        "x.sh",
        name="job",
        known=frozenset({"prepare"}),
    )
    assert not resolved.unresolved


@pytest.mark.parametrize("name", sorted(TABLE))
def test_no_value_of_a_directive_makes_a_bad_document(name):
    """What cannot be read is left out, and said."""
    for value in ("", "1", "x", "a:b,c", "0", "1-2", "-1", "${{ x }}", "/a/../b"):
        document, findings = task(f"--{name}='{value}'")
        KINDS["task"].model.model_validate(document)
        is_used = document.keys() - {"type", "name", "shell", "commands"}
        is_default = value in {"", "1", "x"} or (value == "0" and "gpus" in name)
        is_command = document["commands"] != ["python train.py"]
        assert findings or is_used or is_default or is_command, value


def test_each_option_of_sbatch_is_in_the_table():
    """Under its whole name, so that every abbreviation leads to what it does."""
    assert TABLE.keys() == LONG_OPTIONS - {"cluster", "tasks", "tasks-per-node", "workdir"}


def test_a_here_document_keeps_its_directives():
    """They are another script's, which this one writes; after a command they are comments."""
    body = "cat > sub.sh <<'EOF'\n#SBATCH -n 8\nEOF\n#SBATCH -c 4\necho"
    document, findings = task(body=body)
    assert document["commands"] == [f"{body}\n"]
    assert "resources" not in document
    assert findings == [("note", 6), ("warning", 3)]


def test_tasks_are_counted_for_a_script_that_starts_them():
    """`srun` and the script read from `env:` how many there are; other scripts need no variables."""
    document, _ = task("-n 4 -c 2", body="srun ./x")
    assert document["env"] == {"SLURM_NTASKS": "4", "SLURM_CPUS_PER_TASK": "2"}
    assert "env" not in task("-n 4 -c 2", body="mpirun -np 4 ./x")[0]
    assert task("-n 4", body="mpirun ./x")[0]["compat"] == "slurm"


def test_arguments_are_those_of_the_script():
    """What follows the script is `$1` and so on; a script that reads them and has none is reported."""
    script = "#!/bin/bash\n#SBATCH -c 1\nf() {\n  echo $1\n}\nawk '{print $2}' x\npython x.py $1\n"
    made = convert_slurm(script, "x.sh", name="job", arguments=["a", "b c"])
    assert said(made.text)["commands"][0].startswith("set -- a 'b c'\n")
    made = convert_slurm(script, "x.sh", name="job")
    assert [(one.level, one.place.line) for one in made.findings] == [(Level.WARNING, 7)]


ARGUMENTS = {
    "python x.py $2": 3,
    'D=${1:?"which data"}': 3,
    'if [ "$#" -ne 2 ]; then\n exit 1\nfi': 3,
    "[ $# -eq 1 ] || exit 1": 3,
    "N=${1:-4}; python x.py $@": 0,
    "while [[ $# -gt 0 ]]; do\n case $1 in\n  -a) a=$2; shift ;;\n esac\n shift\ndone": 0,
    "while getopts a: o; do\n for x in 1; do y=$1; done\ndone\npython x.py $1": 6,
}


@pytest.mark.parametrize("body", ARGUMENTS)
def test_arguments_that_a_script_needs_are_reported(body):
    """Options in a loop and arguments with a default are not needed."""
    _, findings = task(body=body)
    assert [line for level, line in findings if level == "warning"] == [ARGUMENTS[body]] * bool(
        ARGUMENTS[body]
    )


VARIABLES = {
    "./x $DATA": [("warning", 3)],
    "source ./env.sh\n./x $DATA": [("note", 4)],
    "module load x\n./x ${DATA}/a $DATA": [("note", 3), ("note", 4)],
    "X=${ROOT:?no root}; Y=${LAB?}": [("warning", 3), ("warning", 3)],
    "echo CUDA $CUDA_HOME\nif [ -z $A ]; then A=1; fi; ./x $A ${B:-2} $B ${C+c} $C": [],
    "for i in 1; do ./x $i; done; read -r a b < x; ./y $a $b; while read l; do ./x $l; done": [],
    "declare -a L; mapfile -t L < x; export P=1 Q=2; local r; ((n = 1)); ./x ${L[0]} $P $Q $r": [],
    "awk '{print $NF}' x; sed -n '$p' x; ./x $HOME $TMPDIR \\$DATA $? $$ $RANDOM": [],
    "export KEY=$KEY\n./x": [("warning", 3)],
    'export KEY="${KEY}"; ./x $KEY': [("warning", 3)],
    "A=$A/b\n./x": [("warning", 3)],
    "export PATH=$PATH:/x; export LD_LIBRARY_PATH=/x:${LD_LIBRARY_PATH}; L=$L:/x; X=${X:-1}": [],
    "A=1; A=$A/b; B=2\nB=$B$B; C=$A$B; ./x": [],
    "./x $SLURM_JOB_ID": [("note", 3)],
    "./x $SLURM_ARRAY_TASK_ID": [("note", 3), ("warning", 3)],
    "./x $((SLURM_ARRAY_TASK_ID % 2))": [("note", 3), ("warning", 3)],
    "./x ${SLURM_ARRAY_TASK_ID:-0} $((${SLURM_ARRAY_TASK_ID:-0} + 1))": [("note", 3)],
    "echo task $SLURM_ARRAY_TASK_ID": [("note", 3)],
}


@pytest.mark.parametrize("body", VARIABLES)
def test_variables_that_nothing_sets_are_reported(body):
    """sbatch takes them from the shell that calls it, and an array's index from its own `--array`."""
    assert task(body=body)[1] == VARIABLES[body]


def test_a_file_beside_the_script_sets_variables(tmp_path):
    """What it sources is read; a variable that it does not set is missing all the same."""
    write(tmp_path, "env.sh", "export RATE=0.1\n")
    write(tmp_path, "a.py", "")
    body = "source ./env.sh\npython a.py $RATE $OTHER\n"
    write(tmp_path, "job.sh", f"#!/bin/bash\n#SBATCH -c 1\n{body}")
    (finding,) = convert(tmp_path / "job.sh").findings
    assert finding.level is Level.WARNING
    assert "`$OTHER`, and does not set it" in finding.detail


def test_a_login_shell_keeps_srun():
    """A profile may start a new PATH, in which the stand-in is not."""
    text = "#!/bin/bash -l\n#SBATCH -c 1\nsrun hostname\n"
    first, _, rest = said(convert_slurm(text, "x.sh", name="job").text)["commands"][0].partition(
        "\n"
    )
    assert first.startswith("slurm_path=${PATH%%:*}; ")
    assert first.endswith("; PATH=$slurm_path:$PATH")
    assert rest == "srun hostname\n"


def test_only_a_shells_variables_are_looked_up():
    """Perl and tcsh set theirs in other ways."""
    script = "#SBATCH -c 1\nset x = 1\nmy $y = 2;\nprint $x, $y, $z;\n"
    for first in ("#!/bin/tcsh", "#!/usr/bin/env perl"):
        made = convert_slurm(f"{first}\n{script}", "x.sh", name="job")
        assert not [one for one in made.findings if "does not set it" in one.detail]


def test_a_variable_of_the_document_is_set():
    """By a directive; and an array has its index."""
    document, findings = task("--export=DATA=/d --array=1-3", body="./x $DATA $SLURM_ARRAY_TASK_ID")
    assert document["env"] == {"DATA": "/d"}
    assert findings == [("note", 4)]


STEPS = {
    "srun -l --multi-prog x.conf": [("note", 4), ("warning", 4)],
    "srun -n 2 \\\n  --prolog=x ./y": [("note", 4), ("warning", 4)],
    "srun -t 10 ./y": [("note", 4), ("warning", 4)],
    'R="srun --ntasks=1 --exclusive --mem=0"; $R ./x': [("note", 4)],
    "srun -lN1 -n1 --cpu-bind=none --mpi=pmi2 -c 4 ./x --multi-prog -t 3": [("note", 4)],
    "srun --gres=gpu:1 ./x": [("note", 4), ("warning", 4)],
    "srun -G 2 --gpus-per-task=1 ./x": [("note", 4)],
}


@pytest.mark.parametrize("body", STEPS)
def test_options_of_srun_that_a_job_refuses_are_reported(body):
    """Before the run, with the line of the call."""
    assert task("--gres=gpu:2", body=body)[1] == STEPS[body]


def test_the_options_of_srun_are_those_that_its_stand_in_takes():
    """Documents and agents share no code: the names are in two tables, and the same."""
    assert {f"--{name}" for name in OPTIONS | FLAGS} == stand_in.KNOWN
    assert set(SHORT) == {name[1] for name in stand_in.VALUED}
    assert set(SHORT_FLAGS) == {name[1] for name in {**stand_in.FLAGS, **stand_in.OPTIONAL}}


def test_what_slurm_names_otherwise_is_set():
    """`SLURM_TMPDIR` is the job's `TMPDIR`; the memory of a CPU is the directive's."""
    document, _ = task("--mem-per-cpu=2G -c 4", body="cp x $SLURM_TMPDIR; ./y $SLURM_MEM_PER_CPU")
    assert document["commands"][0] == 'export SLURM_TMPDIR="$TMPDIR"'
    assert document["env"]["SLURM_MEM_PER_CPU"] == "2048"
    assert "SLURM_MEM_PER_CPU" not in task("--mem-per-cpu=2G", body="srun ./y")[0].get("env", {})


@pytest.mark.parametrize(
    "call", ["scontrol requeue $SLURM_JOB_ID", "squeue -u me", "trap 'scancel 1' TERM"]
)
def test_commands_that_ask_slurm_are_reported(call):
    """They fail in a job; `scontrol show` does not."""
    assert ("warning", 3) in task(body=call)[1]
    assert ("warning", 3) not in task(body="scontrol show hostnames; ./squeue x; echo a squeue")[1]


def test_the_folder_of_sbatch_is_not_that_of_chdir():
    """A job has one folder for both, so a script that uses both is reported."""
    _, findings = task("--chdir=/work", body="cp x $SLURM_SUBMIT_DIR")
    assert findings == [("warning", 4), ("note", 4)]


@pytest.mark.parametrize(
    ("body", "files", "missing"),
    [
        ("python train.py --config=conf/a.yaml", ["conf/a.yaml", "lib", "train.py", "util.py"], []),
        ("srun python -u none.py\nbash go.sh", ["env.sh", "go.sh"], ["none.py"]),
        ("source env.sh; ./prog < in.txt", ["env.sh", "in.txt", "prog"], []),
        ("C=conf\npython x.py $C/${SLURM_ARRAY_TASK_ID}.yaml", ["conf/a.yaml", "conf/b.yaml"], ["x.py"]),
        ("cd conf\ncat b.yaml", ["conf/b.yaml"], []),
        ('sed -n "${SLURM_ARRAY_TASK_ID}p" in.txt > out.txt', ["in.txt"], []),
        ('cd "$SLURM_SUBMIT_DIR"\npython -m lib.run', ["lib"], []),
        ("S=$(sed -n ${SLURM_ARRAY_TASK_ID}p in.txt); R=`cat conf/a.yaml`", ["conf/a.yaml", "in.txt"], []),
        ("make -C x\n./built --no-save in.txt", ["in.txt"], []),
        ("# python train.py\nls -l *", [], []),
        ("Rscript fit.R && julia --project fit.jl", ["fit.R", "in.txt"], ["fit.jl"]),
        ("matlab -nodisplay -batch solve", ["solve.m"], []),
        ("cat > conf/a.yaml <<X\nX\ntool conf/a.yaml", [], []),
        ("cd /scratch/$USER\ncp $SLURM_SUBMIT_DIR/in.txt .\n./prog", ["in.txt"], []),
        ("cd conf; cat b.yaml\ncd -; cat in.txt", ["conf/b.yaml", "in.txt"], []),
        ("cd /tmp\ncd $SLURM_SUBMIT_DIR && ./prog", ["prog"], []),
        ('R="${ROOT:-${SLURM_SUBMIT_DIR}}"; C="$R/conf"\nmkdir x; tool "$C/a.yaml"', ["conf/a.yaml"], []),
        ('D="$(cd "$(dirname "${BASH_SOURCE[0]}")/conf" && pwd)"\nsource "$D/a.yaml"', ["conf/a.yaml"], []),
        ('P=$(realpath conf); cat $P/b.yaml; cat "${P%x}"', ["conf/b.yaml"], []),
        ("for f in conf/*.yaml; do cat $f; done", ["conf/a.yaml", "conf/b.yaml"], []),
        ("cp *.txt $TMPDIR", ["in.txt"], []),
        ("D=conf; cat $D/b.yaml | ./prog 2>&1 # not in.txt", ["conf/b.yaml", "prog"], []),
        ('echo "reading in.txt of lib"; echo x > out.txt', [], []),
    ],
)  # fmt: skip
def test_files_that_a_script_names_go_along(tmp_path, body, files, missing):
    """Those that it runs or reads, and the modules and files that these name in turn."""
    for path in ("conf/a.yaml", "conf/b.yaml", "in.txt", "env.sh", "prog", "lib/run.py", "solve.m"):
        write(tmp_path, path, "")
    write(tmp_path, "train.py", "import os, util\nfrom lib import run\n")
    write(tmp_path, "util.py", "import train\n")
    write(tmp_path, "go.sh", ". ./env.sh\n")
    write(tmp_path, "fit.R", 'x <- read.csv("in.txt")\n')
    write(tmp_path, "job.sh", f"#!/bin/bash\n#SBATCH -c 1\n{body}\n")
    result = convert(tmp_path / "job.sh")
    assert said(result.written[0].text).get("files", []) == files
    assert sorted(one.path for one in result.copied) == files
    reported = " ".join(one.detail for one in result.findings)
    assert [name for name in ("none.py", "fit.jl", "x.py") if f"`{name}`" in reported] == missing


@pytest.mark.parametrize(
    "body",
    [
        "cp -r $SLURM_SUBMIT_DIR/* $TMPDIR/\ncd $TMPDIR\npython train.py",
        "cp -r $SLURM_SUBMIT_DIR /scratch/$USER/$SLURM_JOB_ID\ncd /scratch/$USER/$SLURM_JOB_ID\n./run",
        'W=/scratch/$USER\nrsync -a "$SLURM_SUBMIT_DIR/" "$W"\ncd $W && ./run\ncp -r out $SLURM_SUBMIT_DIR',
        "cp -r ./* $TMPDIR; cd $TMPDIR; ./run",
    ],
)
def test_a_script_that_works_in_a_copy_of_its_folder_has_the_whole_folder(tmp_path, body):
    """It leaves for a local disk first, so none of its later names is looked up; hidden files stay."""
    (tmp_path / ".git").mkdir()
    for path in ("other/a", "other/b", "other/c", "jobs/train.py", "jobs/data/x", "jobs/.cache"):
        write(tmp_path, path, "")
    write(tmp_path, "jobs/job.sh", f"#!/bin/bash\n#SBATCH -c 1\n{body}\n")
    document = said(convert(tmp_path / "jobs/job.sh").written[0].text)
    assert document["files"] == ["data", "job.sh", "train.py"]


def test_a_copy_of_the_folder_out_of_it_is_none(tmp_path):
    """Results that come back need no files."""
    write(tmp_path, "job.sh", "#!/bin/bash\n#SBATCH -c 1\ncp -r $TMPDIR/* $SLURM_SUBMIT_DIR\n")
    assert "files" not in said(convert(tmp_path / "job.sh").written[0].text)


@pytest.mark.parametrize("body", ["python x.py data.bin", "cp *.bin $TMPDIR", "cp -r . /scratch/x"])
def test_files_that_are_too_large_are_reported(tmp_path, body):
    """A document's files are part of it: a data set belongs into a volume."""
    write(tmp_path, "x.py", "")
    with (tmp_path / "data.bin").open("wb") as stream:
        stream.truncate(100 << 20)
    write(tmp_path, "job.sh", f"#!/bin/bash\n#SBATCH -c 1\n{body}\n")
    result = convert(tmp_path / "job.sh")
    assert "data.bin" not in {one.path for one in result.copied}
    assert [one.place.line for one in result.findings if "is too large" in one.detail] == [3]


def test_a_script_that_begins_in_a_folder_finds_its_files_there(tmp_path):
    """`--chdir=run` is below the folder that sbatch is called in."""
    write(tmp_path, "run/a.py", "")
    write(tmp_path, "job.sh", "#!/bin/bash\n#SBATCH --chdir=./run/\npython a.py\n")
    result = convert(tmp_path / "job.sh")
    document = said(result.written[0].text)
    assert document["files"] == ["run/a.py"]
    assert document["commands"] == ["mkdir -p run && cd run\npython a.py\n"]
    assert result.findings == []


def test_a_script_in_a_folder_of_scripts_finds_the_files_of_its_project(tmp_path):
    """It was submitted in the folder above, or climbs out of its own: the job has the same folders."""
    (tmp_path / ".git").mkdir()
    write(tmp_path, "src/train.py", "")
    write(tmp_path, "jobs/above.sh", "#!/bin/sh\n#SBATCH -c 1\npython src/train.py > logs/x\n")
    write(tmp_path, "jobs/climbs.sh", "#!/bin/sh\n#SBATCH -c 1\npython ../src/train.py\n")
    (tmp_path / "logs").mkdir()
    above, climbs = (
        said(convert(tmp_path / f"jobs/{name}.sh").written[0].text) for name in ("above", "climbs")
    )
    assert above["files"] == climbs["files"] == ["src/train.py"]
    assert above["commands"] == ["mkdir -p logs", "python src/train.py > logs/x"]
    assert climbs["commands"] == ["mkdir -p jobs && cd jobs", "python ../src/train.py"]


def test_the_script_stays_as_it_is():
    """Line by line, comments and blank lines too; only what would be an expression is escaped."""
    body = "# load\nset -u\n\ntrap 'x' USR1\necho ${{ a }} \"$1\"\\\n  done"
    document, _ = task(body=body)
    assert document["commands"] == [body.replace("${{", "$${{") + "\n"]


def test_what_slurm_gives_is_asked_for():
    """A script that uses Slurm's variables or srun finds them."""
    document, findings = task(body="srun python x.py $SLURM_PROCID")
    assert document["compat"] == "slurm"
    assert findings == [("note", 3)]
    assert "compat" not in task(body="echo slurm")[0]


def test_directives_behind_the_first_command_do_not_count():
    """As sbatch has it; and the last of two that are alike wins."""
    text = "#!/bin/sh\n#SBATCH -c 1\n# words\n\n#SBATCH -c 2\necho\n#SBATCH -c 3\n"
    made = convert_slurm(text, "x.sh", name="job")
    assert said(made.text)["resources"] == {"cpu": "2.."}
    assert [found.place.line for found in made.findings] == [7]
    assert read_script(text).late == (7,)
    made = convert_slurm(f"{text}#SBATCH -n 2\n", "x.sh", name="job")
    assert [found.place.line for found in made.findings] == [7]
    assert "So are lines 8." in made.findings[0].detail


def test_a_directive_needs_no_blank():
    """sbatch reads what follows its mark."""
    assert said(convert_slurm("#!/bin/sh\n#SBATCH--nodes=1 -c4\nx\n", "x.sh", name="job").text)[
        "resources"
    ]


def test_the_flags_of_its_shell_stay():
    """`set` says them, and what it cannot say is told."""
    made = convert_slurm("#!/bin/bash -eu\n#SBATCH -c 1\ntrue\n", "x.sh", name="job")
    assert said(made.text)["commands"] == ["set -eu\ntrue\n"]
    made = convert_slurm("#!/bin/bash -l\n#SBATCH -c 1\ntrue\n", "x.sh", name="job")
    assert said(made.text)["commands"] == ["[ ! -r /etc/profile ] || . /etc/profile\ntrue\n"]
    assert [found.level for found in made.findings] == [Level.NOTE]
    made = convert_slurm("#!/bin/bash  # mine\n#SBATCH -c 1\ntrue\n", "x.sh", name="job")
    assert said(made.text)["commands"] == ["true"]
    assert [found.level for found in made.findings] == [Level.NOTE]
    made = convert_slurm("#!/usr/bin/env zsh\n#SBATCH -c 1\ntrue\n", "x.sh", name="job")
    assert said(made.text)["shell"] == "/bin/zsh"
    made = convert_slurm("#!/usr/bin/env /bin/bash\n#SBATCH -c 1\ntrue\n", "x.sh", name="job")
    assert said(made.text)["commands"] == ["true"]


def test_a_job_of_several_parts_is_refused():
    """One document cannot say it, and half of it would be another job."""
    made = convert_slurm("#!/bin/sh\n#SBATCH -c 1\n#SBATCH hetjob\n", "x.sh", name="job")
    assert made.text == ""
    assert [found.level for found in made.findings] == [Level.ERROR]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(TABLE)),
            st.text(st.sampled_from("0123456789abGPU:,-%@_./=$ '\"#"), max_size=12),
        ),
        max_size=6,
    ),
    st.text(max_size=40),
)
def test_any_script_gives_a_task_that_is_read(options, body):
    """Whatever it says, there is a document, and its model takes it."""
    script = "".join(f"#SBATCH --{name}={value}\n" for name, value in options)
    made = convert_slurm(f"#!/bin/sh\n{script}{body}", "x.sh", name="job")
    if made.text:
        KINDS["task"].model.model_validate(said(made.text))


# dstack

DSTACK = """\
# What we run each night.
type: task

env: [A=1]  # of mine
commands:
  - python train.py
pool_name: main
# for a while
termination_idle_time: 2h  # old
retry_policy: {retry: true, limit: 4h}
"""


def test_a_file_of_dstack_keeps_its_comments(tmp_path):
    """A name is added, old spellings are rewritten, everything else stays as it was written."""
    write(tmp_path, "nightly.dstack.yml", DSTACK)
    result = convert(tmp_path / "nightly.dstack.yml")
    (written,) = result.written
    assert written.path == "nightly.yaml"
    assert (
        written.text
        == """\
# What we run each night.
type: task
name: nightly

env: [A=1]  # of mine
commands:
  - python train.py
# for a while
idle_duration: 2h  # old
retry: {on: [error, interruption, no-capacity], duration: 4h}
"""
    )
    assert codes(result) == [
        ("converted-otherwise", "nightly.dstack.yml", 2),
        ("converted-otherwise", "nightly.dstack.yml", 9),
        ("converted-otherwise", "nightly.dstack.yml", 10),
        ("not-converted", "nightly.dstack.yml", 7),
    ]


def test_a_field_that_is_known_passes_through(tmp_path):
    """Whatever the language knows is taken over, and nothing is added to it."""
    text = (
        "type: service\nname: chat\nimage: vllm/vllm-openai\ncommands: [serve]\nport: 8000\n"
        "replicas: 1..4\nscaling: {metric: rps, target: 10}\nresources: {gpu: 24GB}\n"
    )
    write(tmp_path, "chat.dstack.yml", text)
    result = convert(tmp_path)
    assert [file.text for file in result.written] == [text]
    assert result.findings == []


def test_a_folder_is_gone_over(tmp_path):
    """Documents stay in their folders, hidden ones are seen, files that runs need go along."""
    old = tmp_path / "old"
    write(old, "work/.dstack.yml", "type: dev-environment\nide: vscode\n")
    write(old, "work/train.dstack.yml", "type: task\ncommands: [a]\nfiles: [data.txt]\n")
    write(old, "work/data.txt", "x")
    write(old, "other/train.dstack.yaml", "type: task\ncommands: [a]\n")
    write(old, ".dstack/profiles.yml", "profiles:\n  - name: big\n    spot_policy: auto\n")
    write(old, "job.sh", "#!/usr/bin/env python3\n#SBATCH -p gpu\nprint()\n")
    write(old, "tool.sh", "#!/bin/sh\ntrue\n")
    write(old, "compose.yml", "services: {}\n")
    write(old, ".git/x.dstack.yml", "type: task\n")
    result = convert(old)
    assert {file.path for file in result.written} == {
        "job.yaml", "other/train.yaml", "profiles.yaml", "work/train.yaml", "work/work.yaml",
    }  # fmt: skip
    assert {copy.path for copy in result.copied} == {"job.sh", "work/data.txt"}
    tree = loaded(result, tmp_path / "new")
    assert tree.errors == ()
    names = [said(file.text).get("name") for file in result.written if "train" in file.path]
    assert names == ["train", "train-2"]


def test_secrets_do_not_come_along(tmp_path):
    """A reference stands where they stood; neither text nor finding has them."""
    write(tmp_path, "config.yml",
          "projects:\n- name: main\n  backends:\n  - type: lambda\n    creds:\n      type: api_key\n"
          "      api_key: s3cret\n  - type: vultr\n    creds: {type: api_key, api_key: <your key>}\n")  # fmt: skip
    result = convert(tmp_path / "config.yml")
    (written,) = result.written
    assert written.path == "projects.yaml"
    assert "api_key: ${{ secrets.main_lambda_api_key }}" in written.text
    assert "<your key>" in written.text
    assert codes(result) == [("secret-left-out", "config.yml", 7)]
    assert "s3cret" not in written.text + repr(result.findings)


@pytest.mark.parametrize(
    "text", ["type: nothing\nname: a1\n", "- a\n", "type: task\nname: [\n", "services: {}\n"]
)
def test_what_is_no_configuration_is_refused(tmp_path, text):
    """It is said why, and nothing is written."""
    write(tmp_path, "x.dstack.yml", text)
    result = convert(tmp_path / "x.dstack.yml")
    assert result.written == []
    assert [found.level for found in result.findings] == [Level.ERROR]


EXAMPLES = {
    "task.dstack.yml": "type: task\npython: 3.12\nrepos: [.]\nenv: [HF_TOKEN]\ncommands: [a]\n"
    "resources: {gpu: 1, memory: 32GB}\nretry: {on_events: [no-capacity], duration: 48h}\n",
    "fleet.dstack.yml": "type: fleet\nnodes: 0..4\nresources: {gpu: 'A100:80GB:8'}\nbackends: [aws]\n",
    "ssh.dstack.yml": "type: fleet\nssh_config: {user: u, identity_file: ~/.ssh/id, hosts: [h1, h2]}\n",
    "volume.dstack.yml": "type: volume\nbackend: aws\nregion: us-east-1\nsize: 500GB\n",
    "gateway.dstack.yml": "type: gateway\nbackend: aws\nregion: eu-west-1\ndomain: example.com\n",
    "cluster.dstack.yml": "type: kubernetes\nkubeconfig: {filename: ~/.kube/config}\n",
}


def test_each_kind_of_document_loads(tmp_path):
    """What dstack has loads without an error when it is converted."""
    for name, text in EXAMPLES.items():
        write(tmp_path / "old", name, text)
    result = convert(tmp_path / "old")
    assert len(result.written) == len(EXAMPLES)
    assert loaded(result, tmp_path / "new").errors == ()


def seeds(language, marks):
    """Code blocks of the seeds in a language."""
    block = re.compile(rf"^( *)```(?:{language})\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
    for file in sorted(SEEDS.glob("*.txt")):
        for number, found in enumerate(block.finditer(file.read_text(encoding="utf-8"))):
            text = textwrap.dedent(found[2])
            if marks in text:
                yield pytest.param(text, id=f"{file.stem[:3]}-{number}")


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds are not there")
@pytest.mark.parametrize("text", list(seeds("yaml|yml", "")))
def test_every_document_of_the_seeds_is_converted(text, tmp_path):
    """It loads without an error, and its name and comments are its own."""
    write(tmp_path / "old", "x.dstack.yml", text)
    for name in re.findall(r"name: (\S+-(?:dataset|volume))$", text, re.MULTILINE):
        if f"type: volume\nname: {name}" not in text:
            write(tmp_path / "old", f"{name}.dstack.yml",
                  f"type: volume\nname: {name}\nbackend: aws\nregion: us-east-1\nsize: 1GB\n")  # fmt: skip
    result = convert(tmp_path / "old")
    assert text in {file.text for file in result.written}
    assert loaded(result, tmp_path / "new").errors == ()


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds are not there")
@pytest.mark.parametrize("text", list(seeds("bash|shell", "#SBATCH")))
def test_every_script_of_the_seeds_is_converted(text, tmp_path):
    """It is a task that loads without an error."""
    write(tmp_path / "old", "x.sh", text if is_batch_script(text) else f"#!/bin/bash\n{text}")
    result = convert(tmp_path / "old")
    assert any(said(file.text)["type"] == "task" for file in result.written)
    assert loaded(result, tmp_path / "new").errors == ()
