"""
From a run's canonical document to its typed template.

The document was validated when it was loaded; here it is only read. A field that this
module does not read is carried out nowhere, so `tests/house` compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.model.run import (
    Dependency,
    FileMount,
    GpuRequirement,
    PortMapping,
    Requirement,
    Retry,
    Template,
    VolumeMount,
    When,
)


def from_document(name: str, document: Mapping[str, Any], *, parent: str = "") -> Template:
    """
    Build the template of the run `name`.

    Args:
        name: The run's full name, `sweep[lr=0.1]` for an element.
        document: Canonical form; see `docs/reference/canonical.md`.
        parent: The sweep or array that it is an element of, or empty.
    """
    checkpoint = document.get("checkpoint") or {}
    concurrency = document.get("concurrency") or {}
    depends_on = document.get("depends_on") or {}
    limit = concurrency.get("limit")
    group = concurrency.get("group") or (parent or name)
    return Template(
        name=name,
        type=document.get("type", "task"),
        commands=tuple(document.get("commands", ())),
        shell=document.get("shell", "sh"),
        env=dict(document.get("env", {})),
        working_dir=document.get("working_dir", ""),
        files=tuple(
            FileMount(entry["path"], entry["sha256"], entry["size"], entry["mode"])
            for entry in document.get("files", ())
        ),
        code=document.get("code", {}).get("sha256", ""),
        volumes=tuple(
            VolumeMount(entry["name"], entry["path"], entry.get("read_only", False))
            for entry in document.get("volumes", ())
        ),
        ports=tuple(
            PortMapping(entry["container_port"], entry.get("local_port"))
            for entry in document.get("ports", ())
        ),
        requirement=requirement(document.get("resources") or {}),
        nodes=document.get("nodes", 1),
        fleets=tuple(document.get("fleets", ())),
        queue=document.get("queue", ""),
        priority=document.get("priority", 0),
        max_duration_seconds=document.get("max_duration"),
        stop_grace_seconds=document.get("stop_duration", 10),
        checkpoint_signal=checkpoint.get("signal"),
        checkpoint_lead_seconds=checkpoint.get("lead", 0),
        retry=_retry(document.get("retry")),
        depends_on=tuple(
            Dependency(entry["run"], When(entry.get("when", "succeeded")), entry.get("each", False))
            for entry in depends_on.get("runs", ())
        ),
        depends_on_all=depends_on.get("all", True),
        concurrency_group=group if limit is not None else "",
        concurrency_limit=limit,
        runtime=document.get("runtime", "process"),
        compat=tuple(document.get("compat", ())),
        startup_order=document.get("startup_order", "any"),
        stop_criteria=document.get("stop_criteria", "all-done"),
        wanted=document.get("state", "running"),
        parent=parent,
        element=name[len(parent) + 1 : -1] if parent else "",
        index=document.get("index"),
        matrix=dict(document.get("matrix", {})),
    )


def requirement(resources: Mapping[str, Any]) -> Requirement:
    """Read `resources` of a document, or of a fleet's template."""
    cpu = resources.get("cpu") or {}
    memory = resources.get("memory") or {}
    disk = resources.get("disk") or {}
    gpu = resources.get("gpu")
    return Requirement(
        cpu_min_millicores=cpu.get("min"),
        cpu_max_millicores=cpu.get("max"),
        memory_min_bytes=memory.get("min"),
        memory_max_bytes=memory.get("max"),
        disk_min_bytes=disk.get("min"),
        shm_bytes=resources.get("shm_size"),
        gpu=_gpu(gpu) if gpu else None,
    )


def _gpu(gpu: Mapping[str, Any]) -> GpuRequirement:
    count = gpu.get("count") or {"min": 1, "max": 1}
    memory = gpu.get("memory") or {}
    return GpuRequirement(
        count_min=count.get("min") or 0,
        count_max=count.get("max"),
        names=tuple(gpu.get("name") or ()),
        memory_min_bytes=memory.get("min"),
        memory_max_bytes=memory.get("max"),
        vendor=gpu.get("vendor") or "",
    )


def _retry(retry: Mapping[str, Any] | None) -> Retry | None:
    if not retry:
        return None
    return Retry(
        on=frozenset(retry.get("on", ())),
        max_attempts=retry.get("max_attempts"),
        window_seconds=retry.get("duration"),
        delay_seconds=retry.get("delay", 0),
        requeue_exit_codes=frozenset(retry.get("requeue_exit_codes", ())),
    )
