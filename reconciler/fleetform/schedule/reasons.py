"""
Why a class waits for room, and why it never can have any: sentences with figures.

Figures are those at the end of a round, so that all who wait speak of the same moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetform.model import figures
from fleetform.model.decision import Waiting
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import GpuRequirement, Requirement
from fleetform.schedule.demand import Lack, Take, gpu_kind
from fleetform.schedule.equivalence_class import EquivalenceClass, Option
from fleetform.schedule.space import Fleet, Rack, Space
from fleetform.spec.names import natural_order

_USED_SHOWN = 3
"""GPUs that are named; `fleet show` lists all."""

_RESOURCES = ("cpu", "memory", "disk", "gpu")


# -- never ----------------------------------------------------------------------------------


def impossible_reasons(equivalence: EquivalenceClass) -> tuple[str, ...]:
    """
    Say why no declared capacity, in any state, can ever take a run of the class.

    Empty where some fleet can, or where one that it may use has no instance yet: then too
    little is known.
    """
    if not equivalence.options or equivalence.absent:
        return ()
    possible = [option.possible for option in equivalence.options]
    if max(possible) >= equivalence.nodes:
        return ()
    reasons: list[str] = []
    for option in equivalence.options:
        reasons.extend(_fleet_reasons(equivalence, option))
    return tuple(reasons)


def _fleet_reasons(equivalence: EquivalenceClass, option: Option) -> list[str]:
    fleet, possible = option.fleet, option.possible
    if possible:
        return [
            f"needs {equivalence.nodes} instances at once; fleet {fleet.name} has {len(fleet.spaces)}"
            + ("" if possible == len(fleet.spaces) else f", of which {possible} are large enough")
        ]
    by_resource: dict[tuple[str, bool], list[Lack]] = {}
    for rack in fleet.racks:
        demand = option.demands[rack.number]
        assert not isinstance(demand, Take), (fleet.name, demand)
        for lack in demand:
            by_resource.setdefault((lack.resource, lack.excess), []).append(lack)
    everywhere = [
        _lack_sentence(equivalence.requirement, fleet, lacks)
        for _, lacks in sorted(by_resource.items())
        if len(lacks) == len(fleet.racks)
    ]
    if everywhere:
        return everywhere
    needs = [
        _need(equivalence.requirement, resource, max(lack.need for lack in lacks))
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
    if resource == "gpu" and not have:
        return (
            f"{_gpus_of(fleet, requirement.gpu)}, the run asks for {_gpus(requirement.gpu, need)}"
        )
    return (
        f"needs {_need(requirement, resource, need)};"
        f" the largest instance of fleet {fleet.name} has {_have(resource, have)}"
    )


# -- not now --------------------------------------------------------------------------------


def waiting_reasons(equivalence: EquivalenceClass) -> tuple[Waiting, ...]:
    """Say what a run of the class lacks at this moment, and its queue; empty where it could start."""
    reasons = _lacking(equivalence)
    if not reasons:
        return ()
    volumes = tuple(_volume_reasons(equivalence))
    return (*dict.fromkeys((*reasons, *volumes)), *equivalence.partition.reasons())


def _volume_reasons(equivalence: EquivalenceClass) -> Iterator[Waiting]:
    """Say which hosts have the volumes of a run that waits for room."""
    for volume in sorted(equivalence.volumes):
        hosts = sorted(
            (
                space.instance.name
                for option in equivalence.options
                for space in option.fleet.spaces
                if volume not in space.rack.lacking
            ),
            key=natural_order,
        )
        where = f"only {_some(hosts)} {'has' if len(hosts) == 1 else 'have'} it"
        yield Waiting("volume-hosts", f"volume {volume}: {where if hosts else 'no host has it'}")


def _barred(option: Option) -> list[str]:
    """Say why no host may have the run; of hosts that exist if there are any, for people know their names."""
    racks = [rack for rack in option.fleet.racks if rack.number in option.barred]
    existing = [
        rack for rack in racks if rack.spaces[0].instance.state is not InstanceState.UNCREATED
    ]
    return [option.barred[rack.number] for rack in existing or racks]


def _lacking(equivalence: EquivalenceClass) -> tuple[Waiting, ...]:
    if not equivalence.options:
        return (Waiting("fleet-not-ready", _no_instances(equivalence.absent)),)
    if all(
        sum(option.ready for option in group) < equivalence.nodes for group in equivalence.groups
    ):
        silent = tuple(
            Waiting("account", why)
            for option in equivalence.options
            for why in dict.fromkeys(_barred(option))
        ) + tuple(
            Waiting("fleet-not-ready", _not_ready(equivalence, option))
            for option in equivalence.options
            if option.takes or not (option.barred or option.apart)
        )
        # Where all hosts are ready and none has its volumes, that is all there is to say.
        return silent or tuple(_volume_reasons(equivalence))
    if not equivalence.is_full:
        rooms = equivalence.rooms()
        if any(free >= equivalence.nodes for free, _ in rooms):
            return ()
        if any(free + len(held) >= equivalence.nodes for free, held in rooms):
            return _held_reasons([space for _, held in rooms for space in held])
    reasons: list[Waiting] = []
    for option in equivalence.options:
        reasons.extend(_crowded(equivalence, option))
        reasons.extend(_drained(option))
        reasons.extend(_used_outside(option))
    return tuple(reasons)


def _held_reasons(held: Sequence[Space]) -> tuple[Waiting, ...]:
    ahead: dict[str, tuple[int, list[str]]] = {}
    for space in held:
        assert space.hold is not None, space.instance.name
        run = space.hold.run
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


def _not_ready(equivalence: EquivalenceClass, option: Option) -> str:
    states: dict[str, int] = {}
    for rack in option.fleet.racks:
        if rack.number in option.takes and rack.ready < len(rack.spaces):
            for space in rack.spaces:
                if not space.is_ready:
                    state = _why_not_ready(space)
                    states[state] = states.get(state, 0) + 1
    rest = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    ready = option.ready
    return (
        f"needs {figures.counted(equivalence.nodes, 'instance')} of fleet {option.fleet.name};"
        f" {ready} of {option.possible} that could take it {'is' if ready == 1 else 'are'} ready"
        + (f" ({rest})" if rest else "")
    )


def _why_not_ready(space: Space) -> str:
    kept = _kept_from(space.instance)
    return f"{kept}: {space.instance.drained}" if kept else str(space.instance.state)


def _kept_from(instance: Instance) -> str:
    """Say in a word how work is kept from an instance that answers; empty where it is not."""
    if instance.state is InstanceState.QUARANTINED:
        return "quarantined"
    return "drained" if instance.drained and instance.state is InstanceState.READY else ""


def _drained(option: Option) -> list[Waiting]:
    """Hosts that could take the run and get nothing, to explain why they are empty."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for rack in option.fleet.racks:
        for space in rack.spaces if rack.number in option.takes else ():
            if kept := _kept_from(space.instance):
                why = (kept, space.instance.drained)
                by_reason.setdefault(why, []).append(space.instance.name)
    return [
        Waiting(
            "fleet-not-ready",
            f"{_some(names)} {'is' if len(names) == 1 else 'are'} {kept}: {reason}",
        )
        for (kept, reason), names in by_reason.items()
    ]


def _used_outside(option: Option) -> list[Waiting]:
    """GPUs that the run could have, if no process outside fleetform used them."""
    found = [
        f"GPU {gpu.index} of host {space.instance.name} is used by {gpu.used_by} outside fleetform"
        for space, take in option.able()
        for gpu in space.instance.gpus
        if gpu.used_by is not None
        and take.gpu_count
        and (take.gpu_kinds is None or gpu_kind(gpu) in take.gpu_kinds)
    ]
    shown = [Waiting("resources", sentence) for sentence in found[:_USED_SHOWN]]
    more = len(found) - len(shown)
    if more:
        verb = "is" if more == 1 else "are"
        shown.append(
            Waiting(
                "resources", f"{figures.counted(more, 'more GPU')} {verb} used outside fleetform"
            )
        )
    return shown


def _no_instances(absent: Sequence[str]) -> str:
    if not absent:
        return "no fleet has an instance yet"
    if len(absent) == 1:
        return f"fleet {absent[0]} has no instance yet"
    return f"fleets {_listed(absent)} have no instance yet"


def _crowded(equivalence: EquivalenceClass, option: Option) -> list[Waiting]:
    """Compare what a node needs with the most that one instance of the fleet has free."""
    fleet = option.fleet
    if option.ready < equivalence.nodes:
        return [Waiting("fleet-not-ready", _not_ready(equivalence, option))]
    for rack in fleet.racks:
        rack.measure()
    if equivalence.nodes > 1:
        room = sum(1 for space, take in option.able() if space.free.choose(take) is not None)
        if room:
            return [
                Waiting(
                    "gang",
                    f"needs {equivalence.nodes} instances at once;"
                    f" {room} of {option.ready} of fleet {fleet.name} have room now",
                )
            ]
    racks = [rack for rack in fleet.racks if rack.number in option.takes and rack.ready]
    if all(rack.shape.sharing == "whole" for rack in racks):
        return [Waiting("resources", _none_whole(equivalence, option))]
    accounts = {
        resource: [_account(resource, rack, option.takes[rack.number]) for rack in racks]
        for resource in _RESOURCES
    }
    short = {
        resource: _shortage(equivalence.requirement, fleet, resource, amounts)
        for resource, amounts in accounts.items()
        if all(free < need for need, free, _ in amounts)
    }
    if "cpu" in short and equivalence.requirement.memory_min_bytes is None:
        # Its memory is the share that goes with its CPUs: that would say the same twice.
        short.pop("memory", None)
    if not short:
        return [Waiting("resources", _not_together(equivalence.requirement, fleet, accounts))]
    return [Waiting("resources", sentence) for sentence in short.values()]


def _none_whole(equivalence: EquivalenceClass, option: Option) -> str:
    return (
        f"needs {figures.counted(equivalence.nodes, 'whole instance')};"
        f" all {option.ready} of fleet {option.fleet.name} that could take it are in use"
    )


def _shortage(
    requirement: Requirement, fleet: Fleet, resource: str, amounts: Sequence[tuple[int, int, int]]
) -> str:
    # The first of those with most free.
    need, free, total = max(amounts, key=lambda amount: amount[1])
    return (
        f"needs {_need(requirement, resource, need)};"
        f" the most that is free on one instance of fleet {fleet.name} is"
        f" {_part(resource, max(0, free))} of {_have(resource, total)}"
    )


def _not_together(
    requirement: Requirement, fleet: Fleet, accounts: dict[str, list[tuple[int, int, int]]]
) -> str:
    needs = [
        _need(requirement, resource, amounts[0][0])
        for resource, amounts in accounts.items()
        if amounts[0][0]
    ]
    return f"needs {_listed(needs)} on one instance; none of fleet {fleet.name} has all of it free"


def _account(resource: str, rack: Rack, take: Take) -> tuple[int, int, int]:
    """Return what a node takes of `resource`, the most that is free on one, and what one has."""
    cpu, memory, disk, _, _ = rack.ceiling
    shape = rack.shape
    match resource:
        case "cpu":
            return take.cpu_millicores, cpu, shape.cpu_millicores
        case "memory":
            return take.memory_bytes, memory, shape.memory_bytes
        case "disk":
            return take.disk_bytes, disk, shape.disk_bytes
        case _:
            return _account_gpus(rack, take)


def _account_gpus(rack: Rack, take: Take) -> tuple[int, int, int]:
    if not take.gpu_count:
        return 0, 0, len(rack.shape.gpus)
    kinds = take.gpu_kinds
    free = max(
        sum(1 for gpu in space.free.gpus if kinds is None or gpu_kind(gpu) in kinds)
        for space in rack.spaces
        if space.is_ready
    )
    total = sum(1 for kind in rack.shape.gpus if kinds is None or kind in kinds)
    return take.gpu_count, free, total


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
    return figures.cores(amount) if resource == "cpu" else _have(resource, amount)


def _gpus(requirement: GpuRequirement | None, count: int) -> str:
    words = [figures.counted(count, "GPU")]
    if requirement is not None:
        words.append(" or ".join(requirement.names) or requirement.vendor)
        words.append(_range(requirement.memory_min_bytes, requirement.memory_max_bytes))
    return " ".join(word for word in words if word)


def _gpus_of(fleet: Fleet, wanted: GpuRequirement | None) -> str:
    """Write `fleet lab has GPUs A100 and L4`, with their memory where that is asked for."""
    of_memory = wanted is not None and (wanted.memory_min_bytes or wanted.memory_max_bytes)
    kinds = {
        f"{name or vendor} {figures.size(memory)}" if of_memory else name or vendor
        for rack in fleet.racks
        for vendor, name, memory in rack.shape.gpus
    }
    return f"fleet {fleet.name} has {f'GPUs {_listed(sorted(kinds))}' if kinds else 'no GPUs'}"


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
