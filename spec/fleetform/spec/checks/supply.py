"""
What fleets have, as far as the tree says it: how many hosts, and what each has at most.

A fleet of this machine or over SSH declares what hosts have; one of a cloud or a cluster says
what they have to have, and a host may have more than its least. What nobody declares is found
out on the host, and known to the scheduler alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fleetform.spec.desired import ResourceKey
from fleetform.spec.references import Catalogue


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


class Pool(NamedTuple):
    """
    A fleet, as a run sees it that is to be placed.

    Attributes:
        nodes_max: None: nobody says.
        hosts: What hosts have, each sort once; empty where there are none.
        is_joined: Its hosts are sure to reach each other well.
    """

    nodes_max: int | None
    hosts: tuple[Supply, ...]
    is_joined: bool


def pools(catalogue: Catalogue) -> dict[str, Pool]:
    """By name, in order of name; empty if some fleet is not known, since that may be the one."""
    fleets = catalogue.whole("fleet")
    return {
        name: Pool(nodes_max(fleets[name]), _hosts(fleets[name]), _is_joined(fleets[name]))
        for name in sorted(fleets)
    }


def candidates(
    run: Mapping[str, Any], known: Mapping[str, Pool], catalogue: Catalogue
) -> Sequence[str]:
    """Names of the fleets that a run may be placed on; empty if some of them are unknown."""
    said: Sequence[str] = run.get("fleets", ())
    leads = _queue_fleets(run, catalogue)
    if leads is None or any(name not in known for name in (*said, *leads)):
        return ()
    if said and leads:
        return [name for name in said if name in leads]
    return said or leads or list(known)


def _queue_fleets(run: Mapping[str, Any], catalogue: Catalogue) -> Sequence[str] | None:
    """The fleets of the run's queue, or of the default one; None: the queue is not known."""
    if "queue" in run:
        entry = catalogue.by_key.get(ResourceKey("queue", run["queue"]))
        if entry is None or entry.key in catalogue.broken:
            return None
        found: Sequence[str] = entry.documents[0].get("fleets", ())
        return found
    queues = (entry.documents[0] for entry in catalogue.of_kind("queue"))
    return next((one.get("fleets", ()) for one in queues if one.get("default")), ())


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


def _hosts(fleet: Mapping[str, Any]) -> tuple[Supply, ...]:
    if "ssh_config" in fleet:
        said = (_supply(host.get("capacity", {})) for host in hosts_of(fleet))
        return tuple(dict.fromkeys(said))
    return (_supply(fleet.get("local", fleet.get("resources", {}))),)


def _is_joined(fleet: Mapping[str, Any]) -> bool:
    if fleet.get("placement") == "cluster":
        return True
    if "ssh_config" in fleet:
        return "network" in fleet["ssh_config"]
    return any(name in fleet for name in ("local", "kubernetes", "slurm"))


def _supply(has: Mapping[str, Any]) -> Supply:
    gpu: Mapping[str, Any] = has.get("gpu") or {}
    return Supply(
        _end(has.get("cpu")),
        _end(has.get("memory")),
        _end(has.get("disk")),
        _end(gpu.get("count")),
        frozenset(name.lower() for name in gpu.get("name", ())),
        _end(gpu.get("memory")),
    )


def _end(amount: Any) -> int | None:
    """The upper end of a canonical amount: a number, a range, or nothing."""
    if isinstance(amount, Mapping):
        return amount.get("max")
    return amount if isinstance(amount, int) else None
