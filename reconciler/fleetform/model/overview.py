"""
The state of an environment in a few numbers, as `fleetform status` and monitoring ask for it.

Counts and the first names of what needs attention, and no row of each run: the answer is as quick for
ten thousand runs as for ten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fleetform.model.apply import ApplyRecord
    from fleetform.model.drift import RecordedDrift
    from fleetform.model.hourly_cost import HourlyCost
    from fleetform.model.ledger import LedgerStatus
    from fleetform.model.override import Override
    from fleetform.model.rollout_status import RolloutStatus
    from fleetform.model.run_state import RunState

__all__ = ["OpenApply", "Overview", "TroubledHost", "TroubledRun", "UncreatedHost"]


@dataclass(frozen=True, slots=True)
class TroubledRun:
    """A run that failed, can never be placed, or whose outcome is unknown."""

    name: str
    state: RunState
    message: str


@dataclass(frozen=True, slots=True)
class TroubledHost:
    """
    A host that does not take runs as its fleet declares; `state` is an instance's, or words.

    `seen_at_ms` is None for a host that answers although it is quarantined or lacks a declared GPU.
    """

    name: str
    state: str
    message: str
    seen_at_ms: int | None


class UncreatedHost(NamedTuple):
    """A host of a cloud that has no instance in the ledger, and is to get one; `state` is that which views show."""

    uid: str
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class OpenApply:
    """An apply that was entered and is not over, and how many of its steps are not done."""

    record: ApplyRecord
    open_steps: int


@dataclass(frozen=True, slots=True)
class Overview:
    """
    One reading of the ledger.

    Attributes:
        runs: How many runs of the configuration are in each state that any is in.
        troubled_states: Of these, by state: failed, aborted, unschedulable or unknown, not declared `state: stopped`.
        troubled: The first of them by name.
        outdated_count: Of these: whose result is outdated, for an input or a value that they inherit has changed.
        ending_count: Runs that were removed or replaced and are not over: their jobs may still be on hosts.
        ending: The first of them by name.
        work_count: Runs that a controller would bring to their end, also removed and replaced ones.
        hosts: How many hosts are in each state; a ready host that gets no jobs counts as `draining`, and as
            `drained` when it has none.
        troubled_hosts: The first by name that are silent, suspect, quarantined or without a declared GPU.
        uncreated: Hosts of clouds that have no instance in the ledger, by name; those without capacity are left out.
        leaving_count: Hosts that are to go.
        joining_count: Hosts that have never answered: instances of clouds, also those to be created, and others in fleets that work without them.
        idle_count: Hosts that leave their fleet if they get no job for a while.
        drift: What looks found that was not seen healed since.
        rollouts: How far the rollouts are that are under way, by fleet.
        hourly: What the existing hosts of each fleet on a cloud cost now, by fleet; a released one has an empty name.
        heard_at_ms: When the host that has been silent longest said something last; None without hosts.
    """

    status: LedgerStatus
    note: str
    runs: Mapping[RunState, int]
    troubled_states: Mapping[RunState, int]
    troubled: tuple[TroubledRun, ...]
    outdated_count: int
    ending_count: int
    ending: tuple[str, ...]
    work_count: int
    hosts: Mapping[str, int]
    troubled_hosts: tuple[TroubledHost, ...]
    leaving_count: int
    joining_count: int
    idle_count: int
    heard_at_ms: int | None
    applies: tuple[OpenApply, ...]
    overrides: tuple[Override, ...]
    drift: tuple[RecordedDrift, ...] = ()
    rollouts: Mapping[str, RolloutStatus] = field(default_factory=dict)
    hourly: Mapping[str, HourlyCost] = field(default_factory=dict)
    uncreated: tuple[UncreatedHost, ...] = ()

    @property
    def troubled_count(self) -> int:
        return sum(self.troubled_states.values())

    @property
    def needs_controller(self) -> bool:
        """Whether a plan is not carried out, a run can change, or a host is to join, leaves, is to leave or is to be replaced."""
        coming_and_going = self.leaving_count or self.joining_count or self.idle_count
        return bool(self.work_count or self.applies or coming_and_going or self.rollouts)
