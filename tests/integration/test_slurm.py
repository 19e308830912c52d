"""Scripts written for Slurm, from `apply` to what they print: variables, `srun` and `scontrol`."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forkserver import program
from leftovers import end_agents

PATIENCE_SECONDS = 120.0

ENVIRONMENT = """\
type: environment
name: lab
uid: c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4
"""
FLEET = """\
type: fleet
name: local
local: {cpu: 4, memory: 4GB}
---
"""


class Lab:
    """An environment with one fleet, in a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.tree = folder / "lab"
        self.tree.mkdir()
        (self.tree / "environment.yaml").write_text(ENVIRONMENT)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        places = {name: str(self.state) for name in ("FLEETFORM_STATE_HOME", "HOME")}
        return subprocess.run(
            [program(), *arguments],
            cwd=self.tree,
            env={"PATH": os.environ["PATH"], **places, "FLEETFORM_CACHE_HOME": ""},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def apply(self, documents: str, code: int = 0) -> None:
        (self.tree / "lab.yaml").write_text(FLEET + documents)
        applied = self.run("apply", "-y")
        assert applied.returncode == code, applied.stdout + applied.stderr

    def logs(self, name: str) -> list[str]:
        return self.run("logs", name).stdout.splitlines()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    end_agents(lab.state)


def task(name: str, script: str, more: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in script.strip().splitlines())
    return f"type: task\nname: {name}\nshell: bash\ncompat: slurm\n{more}commands:\n- |\n{lines}\n---\n"


def test_an_array_has_the_variables_of_slurm(lab: Lab) -> None:
    """Each element prints its own id, its array's, and where it runs; other runs have none of it."""
    script = "env | grep ^SLURM | sort; [ $PWD = $SLURM_SUBMIT_DIR ] && echo here"
    lab.apply(
        task("shards", script, "array: 2-6:2\nresources: {cpu: 2, memory: 512MB}\n")
        + "type: task\nname: plain\ncommands: ['env | grep -c SLURM || true; command -v srun || echo none']\n"
    )
    assert lab.logs("plain") == ["0", "none"]
    found = {}
    for index in ("2", "4", "6"):
        *lines, here = lab.logs(f"shards[{index}]")
        assert here == "here"
        found[index] = dict(line.split("=", 1) for line in lines)
    numbers = [int(one["SLURM_JOB_ID"]) for one in found.values()]
    assert len(set(numbers)) == 3
    for index, one in found.items():
        assert one["SLURM_ARRAY_TASK_ID"] == index
        assert one["SLURM_ARRAY_JOB_ID"] == str(min(numbers))
        expected = {
            "SLURM_ARRAY_TASK_COUNT": "3",
            "SLURM_ARRAY_TASK_MIN": "2",
            "SLURM_ARRAY_TASK_MAX": "6",
            "SLURM_ARRAY_TASK_STEP": "2",
            "SLURM_JOB_NAME": "shards",
            "SLURM_JOB_PARTITION": "local",
            "SLURM_CPUS_ON_NODE": "2",
            "SLURM_CPUS_PER_TASK": "2",
            "SLURM_MEM_PER_NODE": "512",
            "SLURM_CLUSTER_NAME": "lab",
            "SLURM_JOB_USER": pwd.getpwuid(os.geteuid()).pw_name,
            "SLURM_JOB_UID": str(os.geteuid()),
        }
        assert {name: one[name] for name in expected} == expected


def test_srun_starts_tasks(lab: Lab) -> None:
    """`srun` starts each rank, labels its lines, fills in file names, and returns the highest code."""
    lab.apply(
        task(
            "ranks",
            """
srun -l bash -c 'echo "$SLURM_PROCID of $SLURM_NTASKS"' | sort
srun -n 2 --export=ALL,A=1 --cpu-bind=cores -o out-%t.txt bash -c 'echo "$SLURM_LOCALID $A"'
cat out-0.txt out-1.txt
srun -n 3 bash -c 'exit $((SLURM_PROCID * 2))' || echo "code $?"
srun -n 2 -K bash -c 'if [ $SLURM_PROCID = 1 ]; then exit 3; fi; exec sleep 600' || echo "killed $?"
srun --pty bash || echo "refused $?"
srun -n 1 echo one & srun -n 1 echo two & wait
echo in | srun -n 2 cat
scontrol show hostnames "$SLURM_JOB_NODELIST"
scontrol show job | cut -d' ' -f 2
sbatch other.sh || echo "no sbatch"
""",
            "env: {SLURM_NTASKS: 4}\n",
        )
    )
    lines = lab.logs("ranks")
    text = "\n".join(lines)
    assert lines[:4] == [f"{rank}: {rank} of 4" for rank in range(4)], text
    assert lines[4:6] == ["0 1", "1 1"]
    for line in (
        "code 4",
        "killed 143",
        "refused 1",
        "in",
        "127.0.0.1",
        "JobName=ranks",
        "no sbatch",
    ):
        assert lines.count(line) == 1, (line, text)
    assert {"one", "two"} <= set(lines)
    assert "option `--pty` is not supported" in text
    assert "depends_on" in text


def test_the_commands_are_of_this_user_alone(lab: Lab) -> None:
    """`PATH` begins with a folder below the agent's own, which no other user can reach."""
    lab.apply(task("where", "dirname $(command -v srun); echo $PATH"))
    folder, path = lab.logs("where")
    assert path.split(":")[0] == folder
    assert folder.startswith(str(lab.state))
    for one in (Path(folder), *Path(folder).parent.rglob("*")):
        assert not one.stat().st_mode & 0o077, one


@pytest.mark.parametrize(
    ("end", "more", "code"),
    [
        ("USR1", "max_duration: 60s\ncheckpoint: {signal: USR1, lead: 58s}\n", 0),
        ("TERM", "max_duration: 2s\n", 4),
    ],
)
def test_signals_reach_the_tasks_once(lab: Lab, end: str, more: str, code: int) -> None:
    """The checkpoint signal and TERM of a job come to each task of `srun`, and only once."""
    script = f"""
cat > step.sh <<'EOF'
trap 'echo {end} $SLURM_PROCID; leave=1' {end}
while [ -z "$leave" ]; do sleep 0.05; done
sleep 0.5
EOF
trap : TERM
srun -n 2 bash step.sh
"""
    lab.apply(task("save", script, more), code=code)
    text = "\n".join(lab.logs("save"))
    assert text.count(f"{end} 0") == 1, text
    assert text.count(f"{end} 1") == 1, text


def test_a_script_signals_its_step(lab: Lab) -> None:
    """A signal that the script sends to `srun` is passed on to its tasks."""
    lab.apply(
        task(
            "forward",
            """
cat > step.sh <<'EOF'
trap 'echo got it; exit 0' USR1
touch ready
while :; do sleep 0.05; done
EOF
srun -n 1 bash step.sh &
pid=$!
until [ -e ready ]; do sleep 0.05; done
kill -USR1 $pid
wait $pid
echo "code $?"
""",
        )
    )
    assert lab.logs("forward") == ["got it", "code 0"]


def test_srun_on_several_nodes_is_blocked(lab: Lab) -> None:
    """A task that calls `srun` on two nodes is left alone, and the plan says why."""
    lab.apply(task("wide", "srun hostname", "nodes: 2\n"), code=3)
    planned = lab.run("plan").stdout
    assert "`srun` on several nodes is not supported yet" in planned


def test_a_queue_says_where_its_runs_go(lab: Lab) -> None:
    """A run goes to its queue's fleets and waits only for those; another fleet in the queue lets it start."""
    documents = """\
type: fleet
name: small
local: {cpu: 1, memory: 1GB}
---
type: queue
name: batch
fleets: [small]
---
type: task
name: first
queue: batch
resources: {cpu: 1}
commands: ['until [ -e "$DONE" ]; do sleep 0.05; done']
env: {DONE: HERE}
---
type: task
name: second
queue: batch
compat: slurm
resources: {cpu: 1}
commands: ['echo "$SLURM_JOB_PARTITION on $SLURM_JOB_NODELIST"']
---
type: task
name: third
queue: batch
resources: {cpu: 2}
commands: [hostname]
""".replace("HERE", str(lab.tree / "done"))
    (lab.tree / "lab.yaml").write_text(FLEET + documents)
    started = lab.run("apply", "-y", "--detach")
    assert "queue/batch: set" in started.stdout, started.stdout + started.stderr
    why = lab.run("why", "second").stdout
    assert "queue batch allows fleet small only" in why
    assert "fleet local" not in why
    assert "unschedulable: needs 2 CPUs; the largest instance of fleet small has 1 CPU" in (
        lab.run("why", "third").stdout
    )
    (lab.tree / "lab.yaml").write_text(FLEET + documents.replace("[small]", "[small, local]"))
    planned = lab.run("plan").stdout
    assert "~ queue batch" in planned
    assert "second" not in planned.split("In progress")[0]
    lab.run("apply", "-y", "--detach")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not lab.logs("second") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert lab.logs("second") == ["batch on 127.0.0.1"]
    hosts = {one["name"]: one["instances"] for one in json.loads(lab.run("ps", "--json").stdout)}
    assert hosts == {"first": ["small-0"], "second": ["local-0"], "third": []}
    (lab.tree / "done").touch()


CONVERTED = """\
#!/bin/bash -l
#SBATCH --ntasks=2
#SBATCH --job-name=copied
srun -l step.sh | sort
mkdir -p $SLURM_TMPDIR/work
cp -r $SLURM_SUBMIT_DIR/* $SLURM_TMPDIR/work/
cd $SLURM_TMPDIR/work
cat data/in.txt
cd $SLURM_SUBMIT_DIR && cat data/in.txt
"""


def test_a_batch_script_is_converted_and_runs(lab: Lab, tmp_path: Path) -> None:
    """Its login shell keeps `srun`, which finds programs in the folder; a copy of the folder has all files."""
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    (project / "data/in.txt").write_text("input\n")
    (project / "step.sh").write_text("#!/bin/sh\necho step $SLURM_PROCID\n")
    (project / "step.sh").chmod(0o755)
    (project / "job.sh").write_text(CONVERTED)
    expected = ["0: step 0", "1: step 1", "input", "input"]
    converted = lab.run("convert", str(project / "job.sh"), "--to", str(lab.tree))
    assert converted.returncode == 0, converted.stderr
    lab.apply("")
    assert lab.logs("copied") == expected
    submitted = lab.run("submit", str(project / "job.sh"), "-n", "sent")
    assert submitted.returncode == 0, submitted.stdout + submitted.stderr
    assert lab.logs("sent") == expected
