"""
What one instance of a fleet has: its share of the machine, or what the fleet declares.

Several instances on one machine divide what was detected, so that two nodes never count the
same CPU twice. What is declared counts for each node as it stands: it is how somebody says
that this machine may be overbooked, or pretends to be a bigger one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from fleetform.agents.protocol.host_report import DECLARED_GPU, GpuReport, HostReport
from fleetform.spec.quantities.devices import select_devices

_SHARED = (
    "cpu_millicores",
    "memory_bytes",
    "memory_free_bytes",
    "disk_bytes",
    "disk_free_bytes",
)


def instance_report(
    detected: HostReport, *, share: tuple[int, int], declared: Mapping[str, Any]
) -> HostReport:
    """
    Return the report as this instance's.

    Args:
        detected: What the agent found on the whole machine.
        share: (parts, number): the machine is divided into `parts`, this is number `number`
            from 0. GPUs are dealt out one by one, so that their counts differ by one at most.
        declared: `cpu` in millicores, `memory` and `disk` in bytes, `gpu` as a requirement in
            canonical form; what is absent is detected. `devices` selects among the detected GPUs
            before they are dealt out.
    """
    parts, number = share
    report = dataclasses.replace(
        detected,
        **{name: getattr(detected, name) // parts for name in _SHARED},
        gpus=select_devices(detected.gpus, declared.get("devices"))[number::parts],
    )
    return _with_declared(report, declared)


def _with_declared(report: HostReport, declared: Mapping[str, Any]) -> HostReport:
    changes: dict[str, Any] = {}
    if "cpu" in declared:
        changes["cpu_millicores"] = declared["cpu"]
    if "memory" in declared:
        changes["memory_bytes"] = declared["memory"]
        changes["memory_free_bytes"] = min(report.memory_free_bytes, declared["memory"])
    if "disk" in declared:
        changes["disk_bytes"] = declared["disk"]
        changes["disk_free_bytes"] = min(report.disk_free_bytes, declared["disk"])
    if "gpu" in declared:
        changes["gpus"] = _declared_gpus(declared["gpu"])
    return dataclasses.replace(report, **changes)


def _declared_gpus(gpu: Mapping[str, Any]) -> tuple[GpuReport, ...]:
    """Make as many GPUs as are declared; their uuids say that no agent has detected them."""
    names = gpu.get("name") or ["gpu"]
    return tuple(
        GpuReport(
            index=index,
            uuid=f"{DECLARED_GPU}{index}",
            name=names[0],
            memory_bytes=_lower_bound(gpu.get("memory"), otherwise=0),
            vendor=gpu.get("vendor") or "nvidia",
        )
        for index in range(_lower_bound(gpu.get("count"), otherwise=1))
    )


def _lower_bound(bounds: Mapping[str, int | None] | None, *, otherwise: int) -> int:
    """Read a range as a capacity: its lower bound, or the upper one where that is open."""
    for name in ("min", "max"):
        bound = (bounds or {}).get(name)
        if bound is not None:
            return bound
    return otherwise
