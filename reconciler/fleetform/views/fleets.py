"""Fleets and their instances: what there is, what is in use, and how the hosts are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from fleetform.model import figures
from fleetform.model.hourly_cost import HourlyCost
from fleetform.model.instance import (
    CLOUDS,
    SHOWN_AS_QUARANTINED,
    Allocation,
    GpuUse,
    Instance,
    InstanceState,
    missing_devices_text,
)
from fleetform.model.offers import CHOSEN_ZONE
from fleetform.model.override import Override, quarantine_of
from fleetform.spec.checks.hosts import provider_of
from fleetform.spec.names import natural_order
from fleetform.views.cut_off import ASKED_LATER
from fleetform.views.moments import age, moment
from fleetform.views.table import Cell, Column, Table, make_table, row_of

if TYPE_CHECKING:
    from fleetform.model.live import Live, LiveResource
    from fleetform.model.rollout_status import RolloutStatus
    from fleetform.providers.contract.observed import InstanceSeen

TONES = {
    InstanceState.PROVISIONING: "warn",
    InstanceState.READY: "good",
    InstanceState.RECOVERING: "warn",
    InstanceState.UNREACHABLE: "bad",
    InstanceState.SUSPECT: "bad",
    InstanceState.QUARANTINED: "bad",
    InstanceState.WAITING_FOR_CAPACITY: "warn",
    InstanceState.REFUSED: "bad",
    InstanceState.GONE: "bad",
    InstanceState.TERMINATING: "dim",
    InstanceState.TERMINATED: "dim",
    InstanceState.UNCREATED: "dim",
}


_RUNS_SHOWN = 3
"""Names in a line; JSON has all."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """Of an instance or a fleet: CPU in millicores, sizes in bytes, GPUs by number."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    gpus: int = 0

    def plus(self, other: Amounts) -> Amounts:
        return Amounts(
            self.cpu_millicores + other.cpu_millicores,
            self.memory_bytes + other.memory_bytes,
            self.disk_bytes + other.disk_bytes,
            self.gpus + other.gpus,
        )


@dataclass(frozen=True, slots=True)
class HostUser:
    """A run with jobs on a host: how many, and the numbers of their GPUs."""

    run: str
    jobs: int
    gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GpuUser:
    """A process that uses a GPU outside fleetform; `gpu` is the number of the GPU."""

    gpu: int
    pid: int
    user: str
    program: str


@dataclass(frozen=True, slots=True)
class CloudInstance:
    """
    What a host is in its cloud, once it is created: what finds it in the console, and what it costs.

    `zone` is empty where the ledger has it not, `image` where the cloud has none. `price_micros` is its price an hour
    when it was created, in micro-dollars, null where it is unknown.
    """

    provider: str
    id: str
    instance_type: str
    spot: bool
    region: str
    zone: str
    price_micros: int | None
    image: str


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """
    One host of a fleet.

    `gpu_names` has each model once. `jobs` hold something of it now. `message` says why it is
    not ready, or what a leaving host waits for. `capacity` is nothing for a host that its cloud has refused, or that is gone. `drained` is why nothing more is placed on it.
    `users` are the runs of those jobs, by name. `seen_at_ms` is when the ledger last recorded
    something that the host said; a ready, suspect or quarantined host has a connection, whatever that says.
    `gpu_users` are processes that use its GPUs and are of no job; those GPUs are not allotted.
    `idle_since_ms`: since when it has no jobs, and leaves its fleet after a while.
    `cloud` is null for a host that no cloud has, or not yet.
    """

    name: str
    uid: str
    fleet: str
    number: int
    state: str
    address: str
    sharing: str
    blocks: int
    capacity: Amounts
    used: Amounts
    gpu_names: tuple[str, ...]
    jobs: int
    message: str
    drained: str = ""
    users: tuple[HostUser, ...] = ()
    seen_at_ms: int | None = None
    gpu_users: tuple[GpuUser, ...] = ()
    idle_since_ms: int | None = None
    cloud: CloudInstance | None = None


@dataclass(frozen=True, slots=True)
class FleetRow:
    """
    One fleet.

    `nodes_*` are as declared, null where the bound is open; `scales` says that hosts follow demand. `ready` of `instances` take jobs,
    `draining` of them get no new ones and still have some, and `drained` of them have none left;
    capacity and use are theirs together, those that are not ready too. `newer_image` is the id of an image that the
    parameter of the fleet named at the last look, and that its hosts do not boot from; empty: none is known. `rollout`
    says how far a rollout is, null without one. `hourly_micros` is what its hosts
    cost an hour now in micro-dollars, without `unpriced_hosts`; null where no cloud has any.
    """

    name: str
    state: str
    nodes_min: int | None
    nodes_target: int | None
    nodes_max: int | None
    instances: int
    ready: int
    jobs: int
    capacity: Amounts
    used: Amounts
    sharing: str
    description: str
    protected: bool
    drained: int = 0
    draining: int = 0
    scales: bool = False
    newer_image: str = ""
    rollout: RolloutStatus | None = None
    hourly_micros: int | None = None
    unpriced_hosts: int = 0


def instance_rows(
    instances: Iterable[Instance],
    allocations: Iterable[Allocation] = (),
    run_names: Mapping[str, str] | None = None,
    overrides: Sequence[Override] = (),
    *,
    is_controlled: bool = True,
) -> tuple[InstanceRow, ...]:
    """
    Make the rows in order of fleet and number, without those that are gone.

    Of the `overrides`, those that quarantine a host give its row a state and a message. Unless the environment `is_controlled`, by
    a running controller, nothing creates a host that its cloud has not.

    Hosts over SSH come by name: their numbers only say which was declared first. `run_names` is by
    uid of the run.
    """
    held: dict[str, list[Allocation]] = {}
    for one in allocations:
        held.setdefault(one.instance_uid, []).append(one)
    there = (
        one if is_controlled else _as_left(one)
        for one in instances
        if one.state is not InstanceState.TERMINATED
    )
    return tuple(
        _instance_row(_as_shown(one, overrides), held.get(one.uid, []), run_names or {})
        for one in sorted(there, key=_place)
    )


def _as_shown(one: Instance, overrides: Iterable[Override]) -> Instance:
    """
    Return a host with the state that people read.

    Of a host that does not answer or leaves, that is what its row says.
    """
    if one.state is InstanceState.PROVISIONING and one.waits_for_capacity:
        state = InstanceState.REFUSED if one.is_refused else InstanceState.WAITING_FOR_CAPACITY
        # Its row has the capacity of an offer that it did not get.
        return replace(one, state=state, cpu_millicores=0, memory_bytes=0, disk_bytes=0, gpus=())
    if one.has_failed:
        return replace(one, state=InstanceState.UNCREATED)
    if one.is_gone:
        return _as_gone(one)
    if one.state not in SHOWN_AS_QUARANTINED:
        return one
    found = quarantine_of(overrides, one.name)
    if found is None:
        return one
    return replace(one, state=InstanceState.QUARANTINED, message=found.reason_and_end)


def _as_left(one: Instance) -> Instance:
    """Say what creates a host that no process creates now."""
    is_asked = one.state is InstanceState.PROVISIONING and one.is_missing
    if not is_asked or one.message or one.waits_for_capacity:
        return one
    return replace(
        one,
        state=InstanceState.UNCREATED,
        message=ASKED_LATER,
    )


def _as_gone(one: Instance) -> Instance:
    # What its row says last may be that it did not answer.
    return replace(
        one,
        state=InstanceState.GONE,
        message=f"{one.endpoint['id']} no longer exists; seen at {moment(one.ended_at_ms or 0)}",
        cpu_millicores=0,
        memory_bytes=0,
        disk_bytes=0,
        gpus=(),
    )


def _place(one: Instance) -> tuple[str, list[tuple[float, str]], int, str]:
    return one.fleet, natural_order(one.name) if one.endpoint else [], one.number, one.uid


def fleet_rows(
    live: Live,
    allocations: Iterable[Allocation] = (),
    hourly: Mapping[str, HourlyCost] = MappingProxyType({}),
) -> tuple[FleetRow, ...]:
    """Make the rows in order of name: the fleets that were applied and are not gone; `hourly` is what each costs."""
    by_fleet: dict[str, list[InstanceRow]] = {}
    for row in instance_rows(live.instances, allocations, overrides=live.overrides):
        by_fleet.setdefault(row.fleet, []).append(row)
    newer = {
        one.drift.resource: one.drift.seen
        for one in live.recorded_drift
        if one.drift.resource.kind == "fleet" and one.drift.field == "image"
    }
    return tuple(
        _fleet_row(
            live.resources[key],
            by_fleet.get(key.name, []),
            newer.get(key, ""),
            live.exchanging.get(key.name),
            hourly.get(key.name),
        )
        for key in sorted(live.resources)
        if key.kind == "fleet" and not live.resources[key].archived
    )


def fleets_table(rows: Iterable[FleetRow]) -> Table:
    columns: tuple[Column[FleetRow], ...] = (
        Column("FLEET", lambda row: row.name),
        Column("READY", _ready),
        Column("NODES", _limits, optional=True),
        Column("JOBS", lambda row: str(row.jobs), right=True),
        Column("CPU", lambda row: cpu_use(row.used, row.capacity), right=True),
        Column("MEMORY", lambda row: memory_use(row.used, row.capacity), right=True),
        Column("GPU", lambda row: gpu_use(row.used, row.capacity), True, True),
        Column("COST", _cost, optional=True),
        Column("SHARING", lambda row: row.sharing),
        Column("DESCRIPTION", lambda row: row.description, optional=True),
    )
    return make_table(columns, rows)


def instances_table(rows: Iterable[InstanceRow], *, now_ms: int = 0) -> Table:
    """Make the table; at `now_ms` it says how long ago hosts that are not ready were last heard."""
    columns: tuple[Column[InstanceRow], ...] = (
        Column("INSTANCE", lambda row: row.name),
        Column("FLEET", lambda row: row.fleet),
        Column("STATE", _state),
        Column("ADDRESS", lambda row: row.address),
        Column("JOBS", lambda row: str(row.jobs), right=True),
        Column("CPU", lambda row: cpu_use(row.used, row.capacity), right=True),
        Column("MEMORY", lambda row: memory_use(row.used, row.capacity), right=True),
        Column("GPU", lambda row: gpu_use(row.used, row.capacity), True, True),
        Column("MODEL", lambda row: ", ".join(row.gpu_names), optional=True),
        Column("RUNS", _runs, optional=True),
        Column("LAST HEARD", lambda row: _heard(row, now_ms), optional=True),
        Column("MESSAGE", lambda row: row.message or _idle(row, now_ms), optional=True),
    )
    return make_table(columns, rows)


def cloud_table(rows: Iterable[InstanceRow]) -> Table:
    """Make the table of the hosts that are instances of a cloud; it has no rows if none is."""
    columns: tuple[Column[tuple[str, CloudInstance]], ...] = (
        Column("INSTANCE", lambda row: row[0]),
        Column("ID", lambda row: row[1].id),
        Column("TYPE", lambda row: row[1].instance_type),
        Column("KIND", lambda row: "spot" if row[1].spot else "on-demand"),
        Column("PLACE", lambda row: row[1].zone or row[1].region),
        Column("$/H", _price, right=True),
        Column("IMAGE", lambda row: row[1].image, optional=True),
    )
    return make_table(
        columns,
        [
            (row.name, row.cloud)
            for row in rows
            if row.cloud is not None and row.state != InstanceState.GONE
        ],
    )


def _price(row: tuple[str, CloudInstance]) -> Cell | str:
    micros = row[1].price_micros
    return Cell("unknown", "warn") if micros is None else figures.dollars(micros)


def cpu_use(used: Amounts, capacity: Amounts) -> str:
    """Write used and total CPUs: `3.5/8`."""
    return f"{figures.cores(used.cpu_millicores)}/{figures.cores(capacity.cpu_millicores)}"


def memory_use(used: Amounts, capacity: Amounts) -> str:
    return f"{figures.size(used.memory_bytes)}/{figures.size(capacity.memory_bytes)}"


def gpu_use(used: Amounts, capacity: Amounts) -> str:
    return f"{used.gpus}/{capacity.gpus}" if capacity.gpus else ""


def _instance_row(
    instance: Instance, held: Sequence[Allocation], run_names: Mapping[str, str]
) -> InstanceRow:
    used, jobs = Amounts(), len(held)
    for one in held:
        used = used.plus(
            Amounts(one.cpu_millicores, one.memory_bytes, one.disk_bytes, len(one.gpus))
        )
    return row_of(
        InstanceRow,
        instance,
        address=_address(instance),
        capacity=Amounts(
            instance.cpu_millicores,
            instance.memory_bytes,
            instance.disk_bytes,
            len(instance.gpus),
        ),
        used=used,
        gpu_names=tuple(dict.fromkeys(gpu.name for gpu in instance.gpus)),
        cloud=_cloud_instance(instance),
        jobs=jobs,
        message="; ".join(_messages(instance, jobs)),
        users=_users(instance, held, run_names),
        gpu_users=tuple(
            GpuUser(gpu.index, gpu.used_by.pid, gpu.used_by.user, gpu.used_by.program)
            for gpu in instance.gpus
            if gpu.used_by is not None
        ),
    )


def _cloud_instance(instance: Instance) -> CloudInstance | None:
    if not instance.is_bought or not instance.is_created:
        return None
    endpoint = instance.endpoint
    return CloudInstance(
        provider=instance.provider,
        id=endpoint["id"],
        instance_type=endpoint.get("instance_type", ""),
        spot=bool(endpoint.get("spot")),
        region=endpoint.get("region", ""),
        zone=endpoint.get(CHOSEN_ZONE) or endpoint.get("zone", ""),
        price_micros=endpoint.get("price_micros"),
        image=endpoint.get("image", ""),
    )


def _messages(instance: Instance, jobs: int) -> Iterator[str]:
    why = instance.message or _leaving(instance, jobs) or _drained(instance, jobs)
    if why:
        yield why
    if instance.state is InstanceState.READY and (
        missing := missing_devices_text(instance.declared, instance.gpus)
    ):
        yield missing
    # A program that uses all GPUs of a host is one sentence.
    by_use: dict[GpuUse, list[str]] = {}
    for gpu in instance.gpus:
        if gpu.used_by is not None:
            by_use.setdefault(gpu.used_by, []).append(str(gpu.index))
    for use, numbers in by_use.items():
        what = f"GPU {numbers[0]} is" if len(numbers) == 1 else f"GPUs {','.join(numbers)} are"
        yield f"{what} used by {use} outside fleetform"


def _address(instance: Instance) -> str:
    """Return the declared address of a host that has never answered, or `-`: it has no other yet."""
    if instance.is_bought and not instance.is_created:
        return "-"
    declared = instance.endpoint.get("hostname", "")
    return declared if declared and not instance.install_id else instance.address


def _users(
    instance: Instance, held: Sequence[Allocation], run_names: Mapping[str, str]
) -> tuple[HostUser, ...]:
    numbers = {gpu.uuid: gpu.index for gpu in instance.gpus}
    by_run: dict[str, list[Allocation]] = {}
    for one in held:
        # A run that was removed keeps what its last jobs have, and has no name any longer.
        by_run.setdefault(run_names.get(one.run_uid, one.run_uid[:8]), []).append(one)
    return tuple(
        HostUser(
            name,
            len(by_run[name]),
            tuple(
                sorted(numbers[gpu] for one in by_run[name] for gpu in one.gpus if gpu in numbers)
            ),
        )
        for name in sorted(by_run, key=natural_order)
    )


def _drained(instance: Instance, jobs: int) -> str:
    if not instance.drained:
        return ""
    rest = f"; {figures.counted(jobs, 'job')} to go" if jobs else ""
    return f"reason: {instance.drained}{rest}"


def _leaving(instance: Instance, jobs: int) -> str:
    if instance.state is not InstanceState.TERMINATING:
        return ""
    if not jobs:
        return "is being released"
    verb = "has" if jobs == 1 else "have"
    return f"is released once its {figures.counted(jobs, 'job')} {verb} ended"


def _fleet_row(
    resource: LiveResource,
    instances: Sequence[InstanceRow],
    newer_image: str,
    rollout: RolloutStatus | None,
    cost: HourlyCost | None,
) -> FleetRow:
    document = resource.parsed
    nodes = document.get("nodes") or {}
    capacity, used = Amounts(), Amounts()
    for row in instances:
        capacity, used = capacity.plus(row.capacity), used.plus(row.used)
    return FleetRow(
        name=resource.key.name,
        state=resource.state,
        nodes_min=nodes.get("min"),
        nodes_target=nodes.get("target"),
        nodes_max=nodes.get("max"),
        instances=len(instances),
        ready=sum(1 for row in instances if _takes_jobs(row)),
        drained=sum(1 for row in instances if row.drained and not row.jobs),
        draining=sum(1 for row in instances if row.drained and row.jobs),
        scales=provider_of(document) in CLOUDS and nodes.get("min") != nodes.get("max"),
        jobs=sum(row.jobs for row in instances),
        capacity=capacity,
        used=used,
        sharing=instances[0].sharing if instances else document.get("sharing", ""),
        description=document.get("description", ""),
        protected=resource.protected,
        newer_image=newer_image,
        rollout=rollout,
        hourly_micros=None if cost is None else cost.micros,
        unpriced_hosts=0 if cost is None else cost.unknown_hosts,
    )


def _cost(row: FleetRow) -> Cell | str:
    if row.hourly_micros is None:
        return ""
    text = str(HourlyCost(row.hourly_micros, row.unpriced_hosts))
    return Cell(text, "warn") if row.unpriced_hosts else text


def _takes_jobs(row: InstanceRow) -> bool:
    return row.state == InstanceState.READY and not row.drained


def _state(row: InstanceRow) -> Cell:
    """A drained host answers like others, and what people look for is that it takes nothing."""
    if row.drained and row.state == InstanceState.READY:
        return Cell("draining" if row.jobs else "drained", "warn")
    return Cell(row.state, TONES[InstanceState(row.state)])


def _runs(row: InstanceRow) -> str:
    """Write `train (GPU 0,1), eval`; the first runs of many."""
    users = [
        f"{one.run} (GPU {','.join(map(str, one.gpus))})" if one.gpus else one.run
        for one in row.users
    ]
    return figures.first_of(users, _RUNS_SHOWN)


_CONNECTED = frozenset({InstanceState.READY, InstanceState.SUSPECT, InstanceState.QUARANTINED})
"""A host in one of these states answers, whatever the ledger last recorded of it."""


def _heard(row: InstanceRow, now_ms: int) -> str:
    if row.state in _CONNECTED or row.seen_at_ms is None:
        return ""
    return f"{age(row.seen_at_ms, now_ms)} ago"


def _idle(row: InstanceRow, now_ms: int) -> str:
    return "" if row.idle_since_ms is None else f"no jobs for {age(row.idle_since_ms, now_ms)}"


def _limits(row: FleetRow) -> str:
    """Write `0..3`; empty for a fleet of a fixed number of hosts."""
    most = "" if row.nodes_max is None else row.nodes_max
    return f"{row.nodes_min or 0}..{most}" if row.scales else ""


def _ready(row: FleetRow) -> Cell:
    tone = "good" if row.ready == row.instances else "warn"
    counts = ((row.draining, "draining"), (row.drained, "drained"))
    rest = ", ".join(f"{count} {state}" for count, state in counts if count)
    return Cell(f"{row.ready}/{row.instances}{f' ({rest})' if rest else ''}", tone)


# Agents that have the environment's uid: found on hosts, whatever the ledger says.


@dataclass(frozen=True, slots=True)
class AgentRow:
    """
    One agent.

    `alive` says whether it answers now: one without work ends itself, and is started again when
    there is some. `ledger_id` and `epoch` are of the ledger it obeys, empty and 0 before the first.
    """

    name: str
    fleet: str
    uid: str
    alive: bool
    ledger_id: str
    epoch: int


def agent_rows(seen: Sequence[InstanceSeen]) -> tuple[AgentRow, ...]:
    """Make the rows in order of name."""
    return tuple(
        row_of(AgentRow, one)
        for one in sorted(seen, key=lambda one: (one.fleet, natural_order(one.name)))
    )


def agents_table(rows: Iterable[AgentRow]) -> Table:
    columns: tuple[Column[AgentRow], ...] = (
        Column("AGENT", lambda row: row.name),
        Column("FLEET", lambda row: row.fleet),
        Column("ANSWERS", lambda row: Cell("yes", "good") if row.alive else Cell("no", "dim")),
        Column("EPOCH", lambda row: str(row.epoch) if row.epoch else "", right=True),
        Column("UID", lambda row: Cell(row.uid, "dim")),
    )
    return make_table(columns, rows)
