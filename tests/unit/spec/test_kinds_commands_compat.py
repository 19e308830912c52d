"""`compat: slurm` beside the other fields of a run."""

from __future__ import annotations

import pytest

from unit.spec.trees import load

FLEET = "type: fleet\nname: local\nlocal: true\n---\n"


def task(tmp_path, fields):
    return load(tmp_path, f"{FLEET}type: task\nname: train\ncompat: slurm\n{fields}\n")


def test_it_is_carried_out(tmp_path):
    """A task with `compat: slurm` and its counts of tasks is planned, without a note."""
    loaded = task(
        tmp_path, "env: {SLURM_NTASKS: '4', SLURM_CPUS_PER_TASK: 2}\ncommands: [srun hostname]"
    )
    assert not loaded.findings
    assert "train" in [key.name for key in loaded.desired.resources]


@pytest.mark.parametrize("value", ["'0'", "'-1'", "four", "'1.5'", "''"])
def test_a_count_of_tasks_must_be_one(tmp_path, value):
    """A count that is no whole number from 1 is an error that names the variable."""
    loaded = task(tmp_path, f"env: {{SLURM_NTASKS: {value}}}\ncommands: [hostname]")
    assert [one.code for one in loaded.findings] == ["bad-value"]
    assert "SLURM_NTASKS" in loaded.findings[0].detail


@pytest.mark.parametrize(
    ("command", "is_held"),
    [
        ("srun python train.py", True),
        ("OMP_NUM_THREADS=2 srun python train.py", True),
        ("# srun was here\n    python train.py", False),
        ("./my/srun.sh", False),
    ],
)
def test_srun_on_several_nodes_is_held(tmp_path, command, is_held):
    """A task on several nodes is blocked where its commands call `srun`, and only there."""
    loaded = task(tmp_path, f"nodes: 2\ncommands:\n- |\n    {command}")
    assert [key.name for key in loaded.desired.beyond] == (["train"] if is_held else [])
