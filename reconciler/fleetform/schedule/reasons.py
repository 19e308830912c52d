"""
Why a crowd waits for room, and why it never can have any: sentences with figures.

Figures are those at the end of a round, so that all who wait speak of the same moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fleetform.model import figures
from fleetform.model.decision import Waiting
from fleetform.model.instance import Gpu, InstanceState
from fleetform.model.run import GpuRequirement, Requirement
from fleetform.schedule.crowd import Crowd
from fleetform.schedule.demand import Lack, Take, gpu_kind
from fleetform.schedule.space import Fleet, Space

_RESOURCES = ("cpu", "memory", "disk", "gpu")


# -- never ----------------------------------------------------------------------------------


def impossible_reasons(crowd: Crowd) -> tuple[str, ...]:
    """
    Say why no declared capacity, in any state, can ever take a run of the crowd.

    Empty where some fleet can, or where no fleet has an instance yet: then nothing is known.
    """
    if not crowd.fleets or crowd.absent:
        return ()
    reasons: list[str] = []
    able = 0
    for fleet in crowd.fleets:
        count = len(crowd.possible(fleet))
        if count >= crowd.nodes:
            return ()
        able += count
        reasons.extend(_fleet_reasons(crowd, fleet, count))
    if crowd.nodes == 1 and able:
        return ()
    return tuple(reasons)


def _fleet_reasons(crowd: Crowd, fleet: Fleet, able: int) -> list[str]:
    if able:
        return [
            f"needs {crowd.nodes} instances at once; fleet {fleet.name} has {len(fleet.spaces)}"
            + ("" if able == len(fleet.spaces) else f", of which {able} are large enough")
        ]
    by_resource: dict[tuple[str, bool], list[Lack]] = {}
    for space in fleet.spaces:
        demand = crowd.demands[space.shape]
        assert not isinstance(demand, Take), (fleet.name, demand)
        for lack in demand:
            by_resource.setdefault((lack.resource, lack.excess), []).append(lack)
    everywhere = [
        _lack_sentence(crowd.requirement, fleet, lacks)
        for _, lacks in sorted(by_resource.items())
        if len(lacks) == len(fleet.spaces)
    ]
    if everywhere:
        return everywhere
    needs = [
        _need(crowd.requirement, resource, max(lack.need for lack in lacks))
        for (resource, _), lacks in sorted(by_resource.items())
    ]
    return [f"needs {_listed(needs)} on one instance; none of fleet {fleet.name} has all of it"]


def _lack_sentence(requirement: Requirement, fleet: Fleet, lacks: Sequence[Lack]) -> str:
    resource = lacks[0].resource
    if lacks[0].excess:
        most = min(lack.need for lack in lacks)
        have = min(lack.have for lack in lacks)
        return (
            f"accepts at most {_need(requirement, resource, most)};"
            f" fleet {fleet.name} would give it {_have(resource, have)} or more"
        )
    need = min(lack.need for lack in lacks)
    have = max(lack.have for lack in lacks)
    return (
        f"needs {_need(requirement, resource, need)};"
        f" the largest instance of fleet {fleet.name} has {_have(resource, have)}"
    )


# -- not now --------------------------------------------------------------------------------


def waiting_reasons(crowd: Crowd) -> tuple[Waiting, ...]:
    """Say what a run of the crowd lacks at this moment; empty where it could start."""
    if not crowd.fleets:
        return (Waiting("fleet-not-ready", _no_instances(crowd.absent)),)
    ready = crowd.ready()
    if all(len(spaces) < crowd.nodes for spaces in ready):
        return tuple(Waiting("fleet-not-ready", _not_ready(crowd, fleet)) for fleet in crowd.fleets)
    rooms = [pool.room() for pool in crowd.pools()]
    if any(len(free) >= crowd.nodes for free, _ in rooms):
        return ()
    if any(len(free) + len(held) >= crowd.nodes for free, held in rooms):
        return _held_reasons(crowd, [space for _, held in rooms for space in held])
    reasons: list[Waiting] = []
    for fleet in crowd.fleets:
        reasons.extend(_crowded(crowd, fleet))
    return tuple(reasons)


def _held_reasons(crowd: Crowd, held: Sequence[Space]) -> tuple[Waiting, ...]:
    ahead: dict[str, tuple[int, list[str]]] = {}
    for space in held:
        run = crowd.changes.holds[space.order].run
        _, instances = ahead.setdefault(run.name, (run.template.priority, []))
        instances.append(space.instance.name)
    return tuple(
        Waiting(
            "priority",
            f"{_some(instances)} {'is' if len(instances) == 1 else 'are'} kept free for"
            f" {name} (priority {priority}), which is ahead in the queue",
        )
        for name, (priority, instances) in ahead.items()
    )


def _not_ready(crowd: Crowd, fleet: Fleet) -> str:
    able = crowd.possible(fleet)
    ready = sum(1 for space, _ in able if space.is_ready)
    states: dict[InstanceState, int] = {}
    for space, _ in able:
        if not space.is_ready:
            states[space.instance.state] = states.get(space.instance.state, 0) + 1
    rest = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return (
        f"needs {figures.counted(crowd.nodes, 'instance')} of fleet {fleet.name};"
        f" {ready} of {len(able)} that could take it {'is' if ready == 1 else 'are'} ready"
        + (f" ({rest})" if rest else "")
    )


def _no_instances(absent: Sequence[str]) -> str:
    if not absent:
        return "no fleet has an instance yet"
    if len(absent) == 1:
        return f"fleet {absent[0]} has no instance yet"
    return f"fleets {_listed(absent)} have no instance yet"


def _crowded(crowd: Crowd, fleet: Fleet) -> list[Waiting]:
    """Compare what a node needs with the most that one instance of the fleet has free."""
    able = [pair for pair in crowd.possible(fleet) if pair[0].is_ready]
    if len(able) < crowd.nodes:
        return [Waiting("fleet-not-ready", _not_ready(crowd, fleet))]
    if crowd.nodes > 1:
        room = sum(1 for space, take in able if space.free.choose(take) is not None)
        if room:
            return [
                Waiting(
                    "gang",
                    f"needs {crowd.nodes} instances at once;"
                    f" {room} of {len(able)} of fleet {fleet.name} have room now",
                )
            ]
    if all(space.shape.sharing == "whole" for space, _ in able):
        return [Waiting("resources", _none_whole(crowd, fleet, len(able)))]
    short = {
        resource: sentence
        for resource in _RESOURCES
        if (sentence := _shortage(crowd.requirement, fleet, able, resource))
    }
    if "cpu" in short and crowd.requirement.memory_min_bytes is None:
        # Its memory is the share that goes with its CPUs: that would say the same twice.
        short.pop("memory", None)
    if not short:
        needs = _needs(crowd.requirement, able)
        return [
            Waiting(
                "resources",
                f"needs {_listed(needs)} on one instance;"
                f" none of fleet {fleet.name} has all of it free",
            )
        ]
    return [Waiting("resources", sentence) for sentence in short.values()]


def _none_whole(crowd: Crowd, fleet: Fleet, able: int) -> str:
    return (
        f"needs {figures.counted(crowd.nodes, 'whole instance')};"
        f" all {able} of fleet {fleet.name} that could take it are in use"
    )


def _shortage(
    requirement: Requirement, fleet: Fleet, able: Sequence[tuple[Space, Take]], resource: str
) -> str:
    """Return a sentence where no instance has enough of `resource`, whatever else it has."""
    accounts = [_account(resource, space, take) for space, take in able]
    if any(free >= need for need, free, _ in accounts):
        return ""
    # The first of those that have most free, in order of the fleet.
    need, free, total = max(accounts, key=lambda account: account[1])
    return (
        f"needs {_need(requirement, resource, need)};"
        f" the most that is free on one instance of fleet {fleet.name} is"
        f" {_part(resource, max(0, free))} of {_have(resource, total)}"
    )


def _account(resource: str, space: Space, take: Take) -> tuple[int, int, int]:
    """Return what a node takes of `resource`, what is free of it, and what there is in all."""
    free, instance = space.free, space.instance
    match resource:
        case "cpu":
            return take.cpu_millicores, free.cpu_millicores, instance.cpu_millicores
        case "memory":
            return take.memory_bytes, free.memory_bytes, instance.memory_bytes
        case "disk":
            return take.disk_bytes, free.disk_bytes, instance.disk_bytes
        case _:
            matching = _matching(free.gpus, take), _matching(instance.gpus, take)
            return (take.gpu_count, *matching)


def _matching(gpus: Iterable[Gpu], take: Take) -> int:
    kinds = take.gpu_kinds
    return sum(1 for gpu in gpus if kinds is None or gpu_kind(gpu) in kinds)


def _needs(requirement: Requirement, able: Sequence[tuple[Space, Take]]) -> list[str]:
    space, take = able[0]
    amounts = {name: _account(name, space, take)[0] for name in _RESOURCES}
    return [_need(requirement, name, amount) for name, amount in amounts.items() if amount]


# -- words ----------------------------------------------------------------------------------


def _need(requirement: Requirement, resource: str, amount: int) -> str:
    if resource == "gpu":
        return _gpus(requirement.gpu, amount)
    return _have(resource, amount) + ("" if resource == "cpu" else f" of {resource}")


def _have(resource: str, amount: int) -> str:
    if resource == "cpu":
        return figures.cpus(amount)
    return str(amount) if resource == "gpu" else figures.size(amount)


def _part(resource: str, amount: int) -> str:
    return figures.decimal(amount, 1000) if resource == "cpu" else _have(resource, amount)


def _gpus(requirement: GpuRequirement | None, count: int) -> str:
    words = [figures.counted(count, "GPU")]
    if requirement is not None:
        words.append(" or ".join(requirement.names) or requirement.vendor)
        words.append(_range(requirement.memory_min_bytes, requirement.memory_max_bytes))
    return " ".join(word for word in words if word)


def _range(smallest: int | None, largest: int | None) -> str:
    if smallest is None and largest is None:
        return ""
    if smallest == largest and smallest is not None:
        return figures.size(smallest)
    ends = ("" if bound is None else figures.size(bound) for bound in (smallest, largest))
    return "..".join(ends)


def _listed(items: Sequence[str]) -> str:
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def _some(names: Sequence[str]) -> str:
    """Name three at most: a held gang may have hundreds."""
    if len(names) <= 3:
        return _listed(names)
    return f"{', '.join(names[:3])} and {len(names) - 3} more"
