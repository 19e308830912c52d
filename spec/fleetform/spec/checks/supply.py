"""
What fleets have, as far as the tree says it: how many hosts, and what each has at most.

A fleet of this machine or over SSH declares what hosts have; one of a cloud or a cluster says
what they have to have, and a host may have more than its least. What nobody declares is found
out on the host, and known to the scheduler alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

SOURCES = ("local", "ssh_config", "kubernetes", "slurm")


class Supply(NamedTuple):
    """
    What one host has at most; None: unknown, or without bound.

    Attributes:
        gpu_names: In small letters; empty: unknown.
        gpu_memory: Of one GPU.
    """

    cpu: int | None = None
    memory: int | None = None
    disk: int | None = None
    gpus: int | None = None
    gpu_names: frozenset[str] = frozenset()
    gpu_memory: int | None = None


def source(fleet: Mapping[str, Any]) -> str:
    """The field that says where its hosts come from; empty for clouds."""
    return next((name for name in SOURCES if name in fleet), "")


def hosts_of(fleet: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The hosts of a fleet over SSH that are not lost; drained ones come back."""
    listed: Sequence[Mapping[str, Any]] = fleet.get("ssh_config", {}).get("hosts", ())
    return [host for host in listed if "lost" not in host]


def nodes_max(fleet: Mapping[str, Any]) -> int | None:
    """How many hosts it may have; None: nobody says."""
    if "ssh_config" in fleet:
        return len(hosts_of(fleet))
    if "nodes" in fleet:
        most: int | None = fleet["nodes"]["max"]
        return most
    # A fleet of this machine is one host; what clouds and clusters give is another's to say.
    return 1 if "local" in fleet else None


def supplies(fleet: Mapping[str, Any]) -> list[Supply]:
    """What its hosts have, each sort of host once; never empty."""
    match source(fleet):
        case "local":
            return [_declared(fleet["local"])]
        case "ssh_config":
            return list(
                dict.fromkeys(_declared(host.get("capacity", {})) for host in hosts_of(fleet))
            )
        case _:
            return [_required(fleet.get("resources", {}))]


def _declared(has: Mapping[str, Any]) -> Supply:
    gpu: Mapping[str, Any] = has.get("gpu", {})
    return Supply(
        _end(has.get("cpu")),
        _end(has.get("memory")),
        _end(has.get("disk")),
        _end(gpu.get("count")),
        frozenset(name.lower() for name in gpu.get("name", ())),
        _end(gpu.get("memory")),
    )


def _required(resources: Mapping[str, Any]) -> Supply:
    gpu = resources.get("gpu")
    return _declared({**resources, "gpu": gpu or {}})


def _end(amount: Any) -> int | None:
    """The upper end of a canonical amount: a number, a range, or nothing."""
    if isinstance(amount, Mapping):
        return amount.get("max")
    return amount if isinstance(amount, int) else None
