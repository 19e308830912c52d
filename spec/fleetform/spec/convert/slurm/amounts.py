"""
Amounts: what Slurm counts for a task, a CPU, a GPU or the whole job, for each node.

They are settled when all directives are read, since each may stand anywhere.
"""

from __future__ import annotations

import math
import re
from typing import Any

from fleetform.spec.convert.slurm.job import Job, size_text
from fleetform.spec.quantities.gpu import parse_gpu

__all__ = ["settle_amounts"]


def settle_amounts(job: Job) -> None:
    nodes = job.nodes or 1
    if nodes > 1:
        job.fields["nodes"] = nodes
    tasks = job.tasks_per_node or math.ceil(job.tasks / nodes)
    resources: dict[str, Any] = {}
    gpus = _gpus_per_node(job, nodes, tasks)
    cpus = job.cpus_per_gpu * gpus or (
        max(tasks, 1) * job.cpus_per_task or (tasks if tasks > 1 else 0)
    )
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
    if tasks > 1:
        job.notes.lost(
            job.amounts_line,
            f"Slurm would start {tasks} processes on each node by `srun`. Here a node has what all of"
            " them need, and the commands run once on each.",
            "Start them in the commands: `torchrun --nproc-per-node`, `mpirun -n`.",
        )


def _gpus_per_node(job: Job, nodes: int, tasks: int) -> int:
    if job.gpus:
        return job.gpus
    if job.gpus_per_task:
        return job.gpus_per_task * max(tasks, 1)
    if job.gpus_in_all % nodes:
        job.notes.lost(
            job.amounts_line,
            f"{job.gpus_in_all} GPUs on {nodes} nodes are not the same number on each, and here they are:"
            f" each has {math.ceil(job.gpus_in_all / nodes)}.",
        )
    return math.ceil(job.gpus_in_all / nodes)


def _gpu_value(job: Job, count: int) -> Any:
    """Return `2`, `A100:2`, `A100:80GB:2`, or the mapping for a slice."""
    if not job.gpu_type:
        # So many on one node are taken for a slip where the number stands alone.
        return count if count <= 16 else f"{count}..{count}"
    words = re.split(r"[_-]", job.gpu_type)
    name = next(
        (word.upper() for word in words if re.fullmatch(r"[A-Za-z]{1,4}\d+[A-Za-z]*", word)), ""
    )
    memory = next(
        (word.upper() for word in words if re.fullmatch(r"\d+gb", word, re.IGNORECASE)), ""
    )
    part = next((word for word in words if re.fullmatch(r"[1-9]g\.\d+gb", word)), "")
    if part:
        return {**({"name": name} if name else {}), "slice": part, "count": count}
    amount = str(count) if count <= 16 else f"{count}..{count}"
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
        "See that it is the model you mean.",
    )
    return value or count
