"""The state on which the controllers of runs decide, as the ledger has it at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

# As in `ports`: annotations alone.
if TYPE_CHECKING:
    from fleetform.model.instance import Allocation, Instance
    from fleetform.model.override import Override
    from fleetform.model.rollout import Template
    from fleetform.model.run import Attempt, Job, Run, RunState, RunUid
    from fleetform.model.scaling import Scaling
    from fleetform.model.volume import NetworkVolume


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a run stands, for those that depend on it. `parent` is its sweep or empty."""

    state: RunState
    parent: str
    element: str
    started: bool


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """
    Everything the run controllers work on: what is not over yet.

    Attributes:
        runs: Runs that are not final, in order of number.
        attempts: The latest attempt of each of them.
        lingering: Jobs outside `attempts` that hold units, may still run, or are not forgotten.
        outcomes: All runs of the configuration by name, also those that have ended.
        volume_fleets: The fleet on which each volume lies, by the volume's name.
        volume_hosts: The names of the hosts that have it; a volume that is missing is on all
            hosts of its fleet.
        disks: The volumes whose disks exist, by name.
        disks_in_use: Those of them that a job uses; `volume_hosts` has its host.
        leaving_volumes: Volumes that a plan under way removes: no job starts with one of them mounted.
        queue_fleets: The fleets that each queue leads to, by the queue's name; none: to all.
        default_queue: The queue of runs that name none; empty: they have none.
        scaling: The limits of fleets whose hosts follow demand, by name.
        hostless_fleets: Fleets that have no hosts and get none before another apply: `nodes: 0`.
        master_ports: Those of attempts of which a job may still run, by run uid.
        environment_uid: The environment that all of this is of.
        templates: Of fleets whose hosts are being exchanged, by name.
        overrides: All overrides in force, also where `only` was asked for. Some may be out
            of date.
    """

    serial: int
    runs: Mapping[RunUid, Run]
    attempts: Mapping[RunUid, Attempt]
    lingering: tuple[Job, ...]
    instances: tuple[Instance, ...]
    allocations: tuple[Allocation, ...]
    outcomes: Mapping[str, Outcome]
    volume_fleets: Mapping[str, str] = field(default_factory=dict)
    volume_hosts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    disks: Mapping[str, NetworkVolume] = field(default_factory=dict)
    disks_in_use: frozenset[str] = frozenset()
    leaving_volumes: frozenset[str] = frozenset()
    templates: Mapping[str, Template] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()
    queue_fleets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default_queue: str = ""
    scaling: Mapping[str, Scaling] = field(default_factory=dict)
    hostless_fleets: frozenset[str] = frozenset()
    master_ports: Mapping[RunUid, int] = field(default_factory=dict)
    environment_uid: str = ""
