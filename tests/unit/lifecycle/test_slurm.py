"""The variables of Slurm that a job with `compat: slurm` has."""

from __future__ import annotations

from dataclasses import replace

from fleetform.agents.protocol.states import JobState
from fleetform.lifecycle import SlurmFacts, job_request
from fleetform.model.instance import Gpu, Instance, InstanceState
from fleetform.model.run import ArrayFacts, GpuRequirement, Requirement
from unit.lifecycle.rows import attempt, run

FACTS = SlurmFacts("lab", "login")
GPUS = tuple(Gpu(f"gpu-{index}", "A100", 1, index) for index in range(4))
PEERS = {
    rank: Instance(
        f"i{rank}", f"h{rank}", "pool", rank, InstanceState.READY, address=f"node{rank}", gpus=GPUS
    )
    for rank in range(3)
}
PLACED = {"state": JobState.RESERVED, "cpu_millicores": 8000, "memory_bytes": 3 << 30}


def variables(ranks=1, rank=0, facts=FACTS, number=1, **fields):
    """Return what a job of that rank has of Slurm."""
    gang = attempt(*(PLACED for _ in range(ranks)), number=number)
    row = replace(run(compat=("slurm",), **fields), number=17)
    env = job_request(row, gang, gang.jobs[rank], PEERS, {}, facts).env
    return {name: value for name, value in env.items() if name.startswith("SLURM")}


def test_a_script_that_asks_for_nothing_has_one_task():
    """The variables that Slurm always sets are there, and none that it sets on request only."""
    assert variables() == {
        "SLURM_JOB_ID": "17",
        "SLURM_JOBID": "17",
        "SLURM_JOB_NAME": "train",
        "SLURM_JOB_ACCOUNT": "lab",
        "SLURM_JOB_PARTITION": "pool",
        "SLURM_CLUSTER_NAME": "lab",
        "SLURM_SUBMIT_HOST": "login",
        "SLURM_JOB_NODELIST": "node0",
        "SLURM_NODELIST": "node0",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_NNODES": "1",
        "SLURM_NODEID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_PROCID": "0",
        "SLURM_NTASKS": "1",
        "SLURM_NPROCS": "1",
        "SLURM_TASKS_PER_NODE": "1",
        "SLURM_CPUS_ON_NODE": "8",
        "SLURM_JOB_CPUS_PER_NODE": "8",
        "SLURMD_NODENAME": "node0",
        "SLURM_TOPOLOGY_ADDR": "node0",
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }


def test_tasks_are_spread_over_nodes():
    """`SLURM_NTASKS` of `env:` is spread evenly, and counts of nodes are written as Slurm does."""
    found = variables(3, 2, env={"SLURM_NTASKS": "7"})
    assert found["SLURM_TASKS_PER_NODE"] == "3,2(x2)"
    assert (found["SLURM_NTASKS"], found["SLURM_PROCID"], found["SLURM_NODEID"]) == ("7", "5", "2")
    assert found["SLURM_JOB_CPUS_PER_NODE"] == "8(x3)"
    assert found["SLURM_JOB_NODELIST"] == "node0,node1,node2"
    assert found["SLURMD_NODENAME"] == "node2"


def test_what_is_asked_for_is_there():
    """Tasks per node, CPUs per task, memory and GPUs appear where the document names them."""
    env = {"SLURM_NTASKS_PER_NODE": "2", "SLURM_JOB_ACCOUNT": "vision"}
    asked = Requirement(
        cpu_min_millicores=8000, memory_min_bytes=3 << 30, gpu=GpuRequirement(count_min=2)
    )
    found = variables(2, env=env, requirement=asked, queue="batch")
    assert found["SLURM_NTASKS_PER_NODE"] == "2"
    assert found["SLURM_NTASKS"] == "4"
    assert found["SLURM_CPUS_PER_TASK"] == "4"
    assert found["SLURM_MEM_PER_NODE"] == "3072"
    assert found["SLURM_GPUS"] == "0"
    assert found["SLURM_JOB_ACCOUNT"] == "vision"
    assert found["SLURM_JOB_PARTITION"] == "batch"
    assert variables(env={"SLURM_CPUS_PER_TASK": "3"})["SLURM_CPUS_PER_TASK"] == "3"


def test_gpus_are_named_by_their_numbers_on_the_host():
    """`SLURM_JOB_GPUS` has the host's indices, whatever the order of the uuids."""
    gang = attempt({**PLACED, "gpus": ("gpu-3", "gpu-1")})
    env = job_request(run(compat=("slurm",)), gang, gang.jobs[0], PEERS, {}, FACTS).env
    assert (env["SLURM_JOB_GPUS"], env["SLURM_GPUS_ON_NODE"]) == ("1,3", "2")


def test_an_element_knows_its_array():
    """An element has the array's number and bounds; a constant distance is the step."""
    facts = replace(FACTS, array=ArrayFacts(5, (1, 3, 5, 7)))
    found = variables(facts=facts, index=3, parent="shards", number=3)
    assert {name: value for name, value in found.items() if "ARRAY" in name} == {
        "SLURM_ARRAY_JOB_ID": "5",
        "SLURM_ARRAY_TASK_ID": "3",
        "SLURM_ARRAY_TASK_COUNT": "4",
        "SLURM_ARRAY_TASK_MIN": "1",
        "SLURM_ARRAY_TASK_MAX": "7",
        "SLURM_ARRAY_TASK_STEP": "2",
    }
    assert found["SLURM_JOB_NAME"] == "shards"
    assert found["SLURM_RESTART_COUNT"] == "2"
    uneven = replace(FACTS, array=ArrayFacts(5, (1, 2, 9)))
    assert variables(facts=uneven, index=9)["SLURM_ARRAY_TASK_STEP"] == "1"


def test_other_jobs_have_none():
    """Without `compat: slurm` no variable of Slurm is in what the host receives."""
    gang = attempt(PLACED)
    request = job_request(run(), gang, gang.jobs[0], PEERS, {})
    assert request.compat == ()
    assert not [name for name in request.env if name.startswith("SLURM")]
