"""Values that the tests of this room are made of: short spellings of runs and instances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fleetform.model.decision import Decisions
from fleetform.model.instance import Allocation, Gpu, Instance, InstanceState
from fleetform.model.run import GpuRequirement, Requirement, Run, RunState, RunUid, Template
from fleetform.schedule import Policies, Queue, schedule

GB = 1 << 30
NOW = 1_700_000_000_000


def need(
    cpu: int | None = None,
    memory: int | None = None,
    disk: int | None = None,
    gpus: int = 0,
    gpu_name: str = "",
    **more: Any,
) -> Requirement:
    """Whole CPUs, GB, GB, and GPUs."""
    gpu = GpuRequirement(gpus, gpus, (gpu_name,) if gpu_name else ()) if gpus else None
    return Requirement(
        cpu_min_millicores=None if cpu is None else cpu * 1000,
        memory_min_bytes=None if memory is None else memory * GB,
        disk_min_bytes=None if disk is None else disk * GB,
        gpu=more.pop("gpu", gpu),
        **more,
    )


def run(name: str, number: int = 1, requirement: Requirement | None = None, **more: Any) -> Run:
    """A waiting run; keywords of `Template` and `Run` alike."""
    row = {
        key: more.pop(key)
        for key in ("attempt", "generation", "not_before_ms", "stop_requested", "state")
        if key in more
    }
    template = Template(
        name=name,
        type="task",
        commands=("true",),
        requirement=requirement or need(cpu=1),
        **more,
    )
    values: dict[str, Any] = {"state": RunState.SUBMITTED, "attempt": 1, **row}
    return Run(uid=RunUid(f"uid-{name}"), name=name, template=template, number=number, **values)


def gpus(count: int, name: str = "NVIDIA A100-SXM4-80GB", memory: int = 80) -> tuple[Gpu, ...]:
    return tuple(Gpu(f"GPU-{i}", name, memory * GB, i) for i in range(count))


def instance(name: str, fleet: str = "local", number: int = 0, **more: Any) -> Instance:
    """A ready instance of 8 CPUs, 64 GB and 200 GB of disk without GPUs."""
    values: dict[str, Any] = {
        "state": InstanceState.READY,
        "cpu_millicores": 8000,
        "memory_bytes": 64 * GB,
        "disk_bytes": 200 * GB,
        "boot_id": f"boot-{name}",
        "generation": 3,
        **more,
    }
    return Instance(uid=f"uid-{name}", name=name, fleet=fleet, number=number, **values)


def with_gpus(one: Instance, *many: Gpu) -> Instance:
    """Give each GPU a uuid of its host's own."""
    return replace(one, gpus=tuple(replace(gpu, uuid=f"{one.name}/{gpu.uuid}") for gpu in many))


def held(on: Instance, by: str = "other", cpu: int = 0, **more: Any) -> Allocation:
    values: dict[str, Any] = {"memory_bytes": 0, "disk_bytes": 0, **more}
    return Allocation(
        instance_uid=on.uid,
        job_uid=f"job-{by}",
        run_uid=f"uid-{by}",
        cpu_millicores=cpu * 1000,
        **values,
    )


def decide(
    runs: Iterable[Run],
    instances: Iterable[Instance],
    *,
    backfill: bool = True,
    now_ms: int = NOW,
    **queue: Any,
) -> Decisions:
    return schedule(Queue(tuple(runs), **queue), instances, Policies(backfill), now_ms=now_ms)


def started(decisions: Decisions) -> list[str]:
    """Names of the runs that start, in order of decision."""
    return [placement.run_uid.removeprefix("uid-") for placement in decisions.starts]


def codes(decisions: Decisions, name: str) -> list[str]:
    return [reason.code for reason in decisions.waiting[RunUid(f"uid-{name}")]]


def details(decisions: Decisions, name: str) -> list[str]:
    return [reason.detail for reason in decisions.waiting[RunUid(f"uid-{name}")]]
