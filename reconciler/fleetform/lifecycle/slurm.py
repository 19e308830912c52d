"""
The variables that Slurm gives to a batch script (sbatch(1), "OUTPUT ENVIRONMENT VARIABLES").

A job has them only with `compat: slurm`, because mpirun and Lightning behave differently when they see one. They
follow from the run's document, its number, its place and its array, so none of them is in a digest.
What only the host knows is added there (`agents.host.slurm`): directories, the account and PATH.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from fleetform.model.instance import Instance
from fleetform.model.run import ArrayFacts, Attempt, Job, Run

__all__ = ["SlurmFacts", "slurm_variables"]

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class SlurmFacts:
    """
    What the variables need beyond the rows of the run.

    Attributes:
        environment: Name of the environment: it stands for the cluster, and for the account of runs
            whose `env:` names none.
        submit_host: Name of the machine that the controller runs on.
        array: Of the array that the run is an element of; None for any other run.
    """

    environment: str = ""
    submit_host: str = ""
    array: ArrayFacts | None = None


def slurm_variables(
    run: Run, attempt: Attempt, job: Job, peers: Mapping[int, Instance], facts: SlurmFacts
) -> dict[str, str]:
    """
    Return the variables of one job, by name.

    How many tasks a run has, and how many CPUs each of them, is read from `SLURM_NTASKS`,
    `SLURM_NTASKS_PER_NODE` and `SLURM_CPUS_PER_TASK` of the run's `env:` (ADR 35).
    """
    rank = job.key.rank
    tasks = _tasks(run.template.env, len(attempt.jobs))
    nodes = [_node(peers.get(other.key.rank)) for other in attempt.jobs]
    env = {
        "SLURM_JOB_ID": str(run.number),
        "SLURM_JOBID": str(run.number),
        "SLURM_JOB_NAME": run.template.parent or run.name,
        "SLURM_JOB_ACCOUNT": run.template.env.get("SLURM_JOB_ACCOUNT", facts.environment),
        "SLURM_JOB_PARTITION": _partition(run, peers.get(rank)),
        "SLURM_CLUSTER_NAME": facts.environment,
        "SLURM_SUBMIT_HOST": facts.submit_host,
        "SLURM_JOB_NODELIST": ",".join(nodes),
        "SLURM_NODELIST": ",".join(nodes),
        "SLURM_JOB_NUM_NODES": str(len(nodes)),
        "SLURM_NNODES": str(len(nodes)),
        "SLURM_NODEID": str(rank),
        "SLURM_LOCALID": "0",
        "SLURM_PROCID": str(sum(tasks[:rank])),
        "SLURM_NTASKS": str(sum(tasks)),
        "SLURM_NPROCS": str(sum(tasks)),
        "SLURM_TASKS_PER_NODE": _repeated(tasks),
        "SLURM_CPUS_ON_NODE": str(_cpus(job)),
        "SLURM_JOB_CPUS_PER_NODE": _repeated([_cpus(other) for other in attempt.jobs]),
        "SLURMD_NODENAME": nodes[rank],
        "SLURM_TOPOLOGY_ADDR": nodes[rank],
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }
    env.update(_asked_for(run, attempt, job, tasks[rank]))
    env.update(_gpus(job, peers.get(rank)))
    if run.template.index is not None and facts.array is not None:
        env.update(_array(run.template.index, facts.array))
    if attempt.number > 1:
        # Missing at the first attempt, as in Slurm: scripts ask whether it is set.
        env["SLURM_RESTART_COUNT"] = str(attempt.number - 1)
    return env


def _asked_for(run: Run, attempt: Attempt, job: Job, tasks: int) -> dict[str, str]:
    """Return what Slurm sets only where the script asks for it."""
    env: dict[str, str] = {}
    template = run.template
    if per_node := _count(template.env, "SLURM_NTASKS_PER_NODE"):
        env["SLURM_NTASKS_PER_NODE"] = str(per_node)
    cpus = _count(template.env, "SLURM_CPUS_PER_TASK")
    if not cpus and template.requirement.cpu_min_millicores is not None:
        cpus = max(1, _cpus(job) // max(1, tasks))
    if cpus:
        env["SLURM_CPUS_PER_TASK"] = str(cpus)
    if template.requirement.memory_min_bytes is not None:
        env["SLURM_MEM_PER_NODE"] = str(job.memory_bytes // _MIB)
    if template.requirement.gpu is not None:
        env["SLURM_GPUS"] = str(sum(len(other.gpus) for other in attempt.jobs))
    return env


def _gpus(job: Job, host: Instance | None) -> dict[str, str]:
    if not job.gpus:
        return {}
    index = {gpu.uuid: gpu.index for gpu in host.gpus} if host is not None else {}
    # A GPU that the host has lost since has no number.
    numbers = sorted(index[gpu] for gpu in job.gpus if gpu in index)
    return {
        "SLURM_GPUS_ON_NODE": str(len(job.gpus)),
        "SLURM_JOB_GPUS": ",".join(map(str, numbers)),
    }


def _array(index: int, array: ArrayFacts) -> dict[str, str]:
    indices = sorted({*array.indices, index})
    steps = {later - earlier for earlier, later in pairwise(indices)}
    return {
        "SLURM_ARRAY_JOB_ID": str(array.number),
        "SLURM_ARRAY_TASK_ID": str(index),
        "SLURM_ARRAY_TASK_COUNT": str(len(indices)),
        "SLURM_ARRAY_TASK_MIN": str(indices[0]),
        "SLURM_ARRAY_TASK_MAX": str(indices[-1]),
        "SLURM_ARRAY_TASK_STEP": str(steps.pop() if len(steps) == 1 else 1),
    }


def _tasks(env: Mapping[str, str], nodes: int) -> list[int]:
    """Count the tasks of each node: spread evenly, the first nodes have one more."""
    total = _count(env, "SLURM_NTASKS")
    if not total:
        return [_count(env, "SLURM_NTASKS_PER_NODE") or 1] * nodes
    each, more = divmod(total, nodes)
    return [each + (rank < more) for rank in range(nodes)]


def _count(env: Mapping[str, str], name: str) -> int:
    """Read a number that the document states; 0 where it states none."""
    text = env.get(name, "")
    return int(text) if text.isdecimal() else 0


def _cpus(job: Job) -> int:
    """Return the CPUs of a job; a part of one counts as a whole one."""
    return max(1, -(-job.cpu_millicores // 1000))


def _node(host: Instance | None) -> str:
    return "" if host is None else host.address


def _partition(run: Run, host: Instance | None) -> str:
    return run.template.queue or ("" if host is None else host.fleet)


def _repeated(counts: Sequence[int]) -> str:
    """Write counts of nodes as Slurm does: `2(x3),1`."""
    groups = ((count, len(list(group))) for count, group in groupby(counts))
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in groups)
