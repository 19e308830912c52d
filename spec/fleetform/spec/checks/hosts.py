"""
Tell what fleets have, as far as the tree says it, and check that no two of them claim one host.

A fleet of this machine or over SSH declares what hosts have; one of a cloud or a cluster says what
they have to have, and a host may have more than its least. What is not declared is found out on the
host, and known to the scheduler alone. The GPUs of a host that two fleets claim would be given away
twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fleetform.spec.desired import ResourceKey
from fleetform.spec.fields import FLEET_PROVIDERS
from fleetform.spec.findings import Problem
from fleetform.spec.references import Catalogue, Entry


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


def provider_of(fleet: Mapping[str, Any]) -> str:
    """Name the provider of a fleet's hosts; empty where it is not supported yet."""
    return FLEET_PROVIDERS.get(source_of(fleet), "")


def source_of(fleet: Mapping[str, Any]) -> str:
    """Return the field that says where the hosts come from; empty where that is not supported yet."""
    return next((field for field in FLEET_PROVIDERS if field in fleet), "")


def nodes_max(fleet: Mapping[str, Any]) -> int | None:
    """How many hosts it may have; None: unknown."""
    if "ssh_config" in fleet:
        return len(hosts_of(fleet))
    if "nodes" in fleet:
        most: int | None = fleet["nodes"]["max"]
        return most
    # One host is the default; what clouds and clusters give is another's to say.
    return 1 if provider_of(fleet) else None


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
    devices: Sequence[int | str] | None = has.get("devices")
    return Supply(
        _end(has.get("cpu")),
        _end(has.get("memory")),
        _end(has.get("disk")),
        _end(gpu.get("count")) if devices is None else len(devices),
        frozenset(name.lower() for name in gpu.get("name", ())),
        _end(gpu.get("memory")),
    )


def _end(amount: Any) -> int | None:
    """The upper end of a canonical amount: a number, a range, or nothing."""
    if isinstance(amount, Mapping):
        return amount.get("max")
    return amount if isinstance(amount, int) else None


# The port of SSH (RFC 4251), where neither host nor fleet says one.
_PORT = 22


def check_hosts(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Reported at each of the two fleets; a fleet's own hosts are its model's to compare."""
    claimed: dict[tuple[str, int], Entry] = {}
    for entry in catalogue.of_kind("fleet"):
        mine: dict[tuple[str, int], str] = {}
        for document in entry.documents:
            mine.update(_claimed(document.get("ssh_config", {})))
        shared: dict[int, tuple[Entry, list[str]]] = {}
        for identity, name in mine.items():
            first = claimed.setdefault(identity, entry)
            # Those that are declared twice are told as duplicates.
            if first.key != entry.key:
                shared.setdefault(first.number, (first, []))[1].append(name)
        for first, names in shared.values():
            yield entry, _host_problem(names, first)
            yield first, _host_problem(names, entry)


def _claimed(config: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    """The name as it is written, by what tells a host from others; lost ones are left out."""
    port = config.get("port", _PORT)
    return {
        (host["hostname"].casefold().rstrip("."), host.get("port", port)): host["hostname"]
        for host in config.get("hosts", ())
        if "lost" not in host
    }


def _host_problem(names: list[str], other: Entry) -> Problem:
    what = f"The host `{names[0]}` belongs"
    if len(names) > 1:
        what = f"The hosts `{names[0]}` and {len(names) - 1} more belong"
    return Problem(
        "host-claimed-twice",
        ("ssh_config", "hosts"),
        f"{what} to the fleet `{other.key.name}` ({other.place.file}:{other.place.line}) as well; its free resources would be allocated twice.",
        "Remove it from one of the two. Several queues may lead to one fleet.",
        word=names[0],
    )
