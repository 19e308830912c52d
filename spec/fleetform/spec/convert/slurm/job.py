"""
Hold a job while its directives are read, and settle what it asks for on each node.

Slurm counts amounts for a task, a CPU, a GPU or the whole job. They are settled when all directives
are read, since each may stand anywhere. sbatch(1) says how they combine: where nothing states the
number of nodes, it follows from totals and what a node has of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fleetform.spec.convert.conversion import Notes
from fleetform.spec.findings import Finding
from fleetform.spec.quantities.gpu import parse_gpu

__all__ = ["NO_PARTITIONS", "Job", "Partitions", "UnfitError", "settle_amounts", "size_text"]


class Partitions(NamedTuple):
    """
    What partitions are in the environment that the task goes to.

    Attributes:
        queues: Names of its queues.
        fleets: Names of its fleets.
        renamed: What people say that a partition is called there: a queue or a fleet.
        option: The option of the command that chooses a fleet for the partition `{name}`.
    """

    queues: frozenset[str] = frozenset()
    fleets: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = {}
    option: str = "--partition {name}=FLEET"


NO_PARTITIONS = Partitions()


@dataclass(slots=True)
class Job:
    """A job while its directives are read. Amounts are what was said; 0: nothing."""

    notes: Notes
    known: frozenset[str]
    """Names that a dependency may mean."""
    partitions: Partitions = NO_PARTITIONS
    fields: dict[str, Any] = field(default_factory=dict)
    variable_advice: str = "Add `{name}: VALUE` to `env:`."
    """How a person sets the variable `{name}`."""
    env: dict[str, str] = field(default_factory=dict)
    nodes: int = 0
    tasks: int = 0
    tasks_per_node: int = 0
    tasks_per_gpu: int = 0
    cpus_per_task: int = 0
    cpus_per_gpu: int = 0
    cpus_least: int = 0
    """On each node."""
    gpus: int = 0
    """On each node."""
    gpus_in_all: int = 0
    gpus_per_task: int = 0
    gpu_type: str = ""
    constraint: str = ""
    """Features of a node that the script asks for, such as `a100`."""
    megabytes: Mapping[str, int] = field(default_factory=dict)
    """By what they are counted for: `node`, `cpu`, `gpu`."""
    folder: str = ""
    """Where the commands begin (`--chdir`), below the folder that the script is submitted in."""
    input_file: str = ""
    command: str = ""
    """What runs instead of the script's own lines (`--wrap`)."""
    output_files: list[str] = field(default_factory=list)
    """What `--output` and `--error` name."""
    amounts_line: int = 1
    constraint_line: int = 1
    unresolved: list[Finding] = field(default_factory=list)
    """Of `notes`: dependencies that the task does not have."""
    lines: dict[str, int] = field(default_factory=dict)
    """Where each field comes from."""


class UnfitError(ValueError):
    """The value cannot be read; its text is a clause for people."""


def size_text(megabytes: int) -> str:
    """Return a size as a document has it."""
    return f"{megabytes // 1024}GB" if megabytes % 1024 == 0 else f"{megabytes}MB"


def settle_amounts(job: Job) -> None:
    """Set `nodes` and `resources`, and in `job` how many tasks there are in all and on each node."""
    _read_constraint(job)
    nodes = _nodes(job)
    if nodes > 1:
        job.fields["nodes"] = nodes
    tasks = _tasks_per_node(job, nodes)
    resources: dict[str, Any] = {}
    gpus = _gpus_per_node(job, nodes, tasks)
    cpus = job.cpus_per_gpu * gpus or (tasks * job.cpus_per_task or (tasks if tasks > 1 else 0))
    cpus = max(cpus, job.cpus_least)
    if cpus:
        resources["cpu"] = f"{cpus}.."
    megabytes = (
        job.megabytes.get("node", 0)
        or job.megabytes.get("cpu", 0) * max(cpus, 1)
        or job.megabytes.get("gpu", 0) * max(gpus, 1)
    )
    if megabytes:
        resources["memory"] = f"{size_text(megabytes)}.."
    resources |= job.fields.pop("resources", {})
    if gpus:
        resources["gpu"] = _gpu_value(job, gpus)
    if resources:
        job.fields["resources"] = resources
    _set_variables(job, nodes, tasks)


def _nodes(job: Job) -> int:
    if job.nodes:
        return job.nodes
    if job.tasks and job.tasks_per_node:
        return math.ceil(job.tasks / job.tasks_per_node)
    if job.gpus_in_all and job.gpus:
        return math.ceil(job.gpus_in_all / job.gpus)
    return 1


def _tasks_per_node(job: Job, nodes: int) -> int:
    """Return the most tasks that a node has: with `--ntasks`, `--ntasks-per-node` is only a bound."""
    if job.tasks:
        return math.ceil(job.tasks / nodes)
    if job.tasks_per_node:
        return job.tasks_per_node
    gpus = job.gpus or math.ceil(job.gpus_in_all / nodes)
    if job.gpus_per_task:
        return max(gpus // job.gpus_per_task, 1)
    return max(gpus * job.tasks_per_gpu, 1)


def _gpus_per_node(job: Job, nodes: int, tasks: int) -> int:
    if job.gpus:
        return job.gpus
    if job.gpus_in_all % nodes:
        job.notes.lost(
            job.amounts_line,
            f"{job.gpus_in_all} GPUs cannot be divided equally among {nodes} nodes. Nodes of a task are equal, so each has {math.ceil(job.gpus_in_all / nodes)}.",
        )
    return math.ceil(job.gpus_in_all / nodes) or job.gpus_per_task * tasks


def _set_variables(job: Job, nodes: int, tasks: int) -> None:
    """Keep the counts that `srun` and the script read from SLURM_ variables."""
    if job.tasks_per_node:
        job.env["SLURM_NTASKS_PER_NODE"] = str(job.tasks_per_node)
    if job.tasks or tasks > 1:
        job.env["SLURM_NTASKS"] = str(job.tasks or tasks * nodes)
    if job.cpus_per_task:
        job.env["SLURM_CPUS_PER_TASK"] = str(job.cpus_per_task)
    if per_cpu := job.megabytes.get("cpu"):
        job.env["SLURM_MEM_PER_CPU"] = str(per_cpu)


def _read_constraint(job: Job) -> None:
    """Take a GPU's model from `--constraint` where GPUs are asked for without one."""
    if not job.constraint:
        return
    is_model = re.fullmatch(
        r"[A-Za-z]{1,3}\d{2,4}[A-Za-z]*([_-]?\d+gb)?", job.constraint, re.IGNORECASE
    )
    if is_model and not job.gpu_type and (job.gpus or job.gpus_in_all or job.gpus_per_task):
        try:
            parse_gpu(re.split(r"[_-]", job.constraint)[0].upper())
        except ValueError:
            pass
        else:
            job.gpu_type = job.constraint
            job.notes.otherwise(
                job.constraint_line,
                f"`--constraint={job.constraint}` is read as the model of the GPU.",
            )
            return
    job.notes.lost(
        job.constraint_line,
        f"`--constraint={job.constraint}` was left out: hosts are chosen by their resources.",
        "Name the fleet of the hosts in `fleets:`, or what they must have in `resources:`.",
    )


_GEFORCE = re.compile(r"\d{4}([_-]?(ti|super))?", re.IGNORECASE)


def _gpu_value(job: Job, count: int) -> Any:
    """Return `2`, `A100:2`, `A100:80GB:2`, or the mapping for a slice."""
    amount = str(count) if count <= 16 else f"{count}..{count}"
    # So many on one node are taken for a slip where the number stands alone.
    alone = count if count <= 16 else amount
    if not job.gpu_type:
        return alone
    if not re.search(r"\d|titan", job.gpu_type, re.IGNORECASE):
        job.notes.lost(
            job.amounts_line,
            f"`{job.gpu_type}` is no model of a GPU, so the task runs on GPUs of any model.",
            "To choose the model, write `gpu: A100:2`.",
        )
        return alone
    words = re.split(r"[_-]", job.gpu_type)
    name = next(
        (word.upper() for word in words if re.fullmatch(r"[A-Za-z]{1,4}\d+[A-Za-z]*", word)), ""
    )
    if _GEFORCE.fullmatch(job.gpu_type):
        # People leave out the letters of GeForce cards: 1080ti, 3090.
        name = ("GTX" if job.gpu_type < "2" else "RTX") + re.sub(r"[_-]", "", job.gpu_type.upper())
    memory = next(
        (word.upper() for word in words if re.fullmatch(r"\d+gb", word, re.IGNORECASE)), ""
    )
    part = next((word for word in words if re.fullmatch(r"[1-9]g\.\d+gb", word)), "")
    if part:
        return {**({"name": name} if name else {}), "slice": part, "count": count}
    value = ":".join(part for part in (name or job.gpu_type, memory, amount) if part)
    try:
        parse_gpu(value)
    except ValueError:
        value = ""
    if value and name.lower() in {job.gpu_type.lower(), ""}:
        return value
    job.notes.otherwise(
        job.amounts_line,
        f"The cluster calls its GPUs `{job.gpu_type}`: the task asks for `{value or count}`.",
        "Check that this is the right model.",
    )
    return value or count
