"""
Runs that ask for the same, and where they fit: placed, skipped and explained together.

Ten thousand elements of an array differ in name only. What one of them finds out in a round
holds for all of them, so the second costs a look-up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from fleetform.model.account import account_obstacle
from fleetform.model.run import Requirement
from fleetform.schedule.demand import Demand, Take, measure
from fleetform.schedule.queue import Partition
from fleetform.schedule.space import Fleet, Loan, Space


@dataclass(slots=True)
class Pick:
    """One node's place, chosen and not yet taken; `loan` where it is held for another run."""

    fleet: Fleet
    space: Space
    take: Take
    gpus: tuple[str, ...]
    loan: Loan | None = None


@dataclass(slots=True)
class Option:
    """
    One fleet that a class may use.

    `demands` says what a node takes of each rack, or lacks there, by the rack's number; `takes`
    has those of them that can take one. `barred` has those that are large enough, and says why no
    job of the owner may start there: that may change, so the run waits for it.
    """

    fleet: Fleet
    demands: dict[int, Demand]
    takes: dict[int, Take]
    barred: dict[int, str] = field(default_factory=dict)
    apart: set[int] = field(default_factory=set)
    """Those that are large enough and lack a volume of the run: that may change too."""
    search: tuple[dict[int, Take], tuple[int, int]] | None = None
    """What `Fleet.fitting` is asked with, once it has been."""

    @property
    def possible(self) -> int:
        """How many instances, in any state, could take a node when empty."""
        could = self.takes.keys() | self.barred.keys() | self.apart
        return sum(len(rack.spaces) for rack in self.fleet.racks if rack.number in could)

    @property
    def ready(self) -> int:
        """How many of these take jobs now."""
        return sum(rack.ready for rack in self.fleet.racks if rack.number in self.takes)

    def able(self) -> Iterator[tuple[Space, Take]]:
        """Yield the ready instances that could take a node when empty, in order of number."""
        for space in self.fleet.spaces:
            take = self.takes.get(space.rack.number)
            if take is not None and space.is_ready:
                yield space, take

    def free(self) -> Iterator[Pick]:
        """Yield places that are not held for a run, best fit first."""
        if self.search is None:
            self.search = self._narrow()
        takes, least = self.search
        if not takes:
            return
        fleet = self.fleet
        for space, take, gpus in fleet.fitting(takes, least):
            yield Pick(fleet, space, take, gpus)

    def _narrow(self) -> tuple[dict[int, Take], tuple[int, int]]:
        """Leave out racks that surely have no room: within the round they never will again."""
        takes = {
            rack.number: self.takes[rack.number]
            for rack in self.fleet.racks
            if rack.number in self.takes and rack.may_have_room(self.takes[rack.number])
        }
        gpus = min((take.gpu_count for take in takes.values()), default=0)
        cpu = min((take.cpu_millicores for take in takes.values()), default=0)
        return takes, (gpus, cpu)

    def lent(self, end_ms: int | None) -> Iterator[Pick]:
        """Yield places that are held for others and that a run ending by then may have."""
        for space in sorted(self.fleet.held, key=lambda one: one.tightness):
            take = self.takes.get(space.rack.number)
            if take is None or space.hold is None:
                continue
            loan = space.hold.lend(space.order, space.free, take, end_ms)
            if loan is not None:
                yield Pick(self.fleet, space, take, loan.gpus, loan)

    def held(self) -> list[Space]:
        """Return the instances that have room and are held for others."""
        found = []
        for space in self.fleet.held:
            take = self.takes.get(space.rack.number)
            if take is not None and space.free.choose(take) is not None:
                found.append(space)
        return found


@dataclass(slots=True)
class EquivalenceClass:
    """
    All runs of a round with one requirement, number of nodes, choice of fleets, and owner.

    `is_full`, `is_refused` and `refused_end_ms` remember a failure: nothing is given back within
    a round, so what was refused stays refused. The last is the earliest end that holds did not
    allow; None with `is_refused`: only runs without a known end have asked.
    """

    requirement: Requirement
    nodes: int
    options: tuple[Option, ...]
    partition: Partition
    """The fleets that its queue and its documents name."""
    absent: tuple[str, ...]
    """Fleets among these that have no instance yet."""
    volumes: frozenset[str] = frozenset()
    """Volumes that it mounts and that not all hosts have."""
    may_create: bool = True
    """Hosts may be created for its runs."""
    is_full: bool = False
    is_refused: bool = False
    refused_end_ms: int | None = None
    is_done_holding: bool = False
    """No fleet is left on which a run of this class could hold instances."""
    impossible: tuple[str, ...] | None = None
    """Why no run of it can ever start; empty where one can, None before that was judged."""
    groups: tuple[tuple[Option, ...], ...] = field(init=False)
    """
    Sets of fleets that could each take a whole run. A gang stays within one fleet: that is what
    shares a network. Others may go anywhere.
    """

    def __post_init__(self) -> None:
        many = tuple((option,) for option in self.options)
        self.groups = many if self.nodes > 1 else (self.options,)

    def place(self, end_ms: int | None) -> list[Pick] | None:
        """Choose places for one run of the class that ends by `end_ms`, or None."""
        if self.is_full or self._is_refused(end_ms):
            return None
        for group in self.groups:
            picks = self._pick(group, end_ms)
            if picks is not None:
                return picks
        self._remember(end_ms)
        return None

    def rooms(self) -> list[tuple[int, list[Space]]]:
        """Count, for each group, places free to take, up to `nodes`; and list the held ones."""
        return [
            (
                sum(1 for option in group for _ in islice(option.free(), self.nodes)),
                [space for option in group for space in option.held()],
            )
            for group in self.groups
        ]

    def _pick(self, group: tuple[Option, ...], end_ms: int | None) -> list[Pick] | None:
        """Prefer places that are free; borrow held ones only for what is missing."""
        if self.nodes == 1:
            return self._pick_one(group, end_ms)
        (option,) = group
        picks = list(islice(option.free(), self.nodes))
        if len(picks) < self.nodes:
            picks.extend(islice(option.lent(end_ms), self.nodes - len(picks)))
        return picks if len(picks) == self.nodes else None

    def _pick_one(self, group: tuple[Option, ...], end_ms: int | None) -> list[Pick] | None:
        best: Pick | None = None
        for option in group:
            pick = next(option.free(), None)
            if pick is not None and (best is None or pick.space.tightness < best.space.tightness):
                best = pick
        if best is None:
            loans = (next(option.lent(end_ms), None) for option in group)
            best = next((loan for loan in loans if loan is not None), None)
        return None if best is None else [best]

    def _remember(self, end_ms: int | None) -> None:
        """Note a failure, so that the next run of the class need not look."""
        if all(free + len(held) < self.nodes for free, held in self.rooms()):
            self.is_full = True
        else:
            self.is_refused = True
            earliest = self.refused_end_ms
            if end_ms is not None and (earliest is None or end_ms < earliest):
                self.refused_end_ms = end_ms
        for option in self.options:
            # The look has cost as much; with these, classes that need more are told at once.
            for rack in option.fleet.racks:
                rack.measure()

    def _is_refused(self, end_ms: int | None) -> bool:
        if not self.is_refused:
            return False
        return end_ms is None or (self.refused_end_ms is not None and end_ms >= self.refused_end_ms)


def make_equivalence_class(
    requirement: Requirement,
    nodes: int,
    fleets: tuple[Fleet, ...],
    partition: Partition,
    absent: tuple[str, ...],
    owner: str = "",
    volumes: frozenset[str] = frozenset(),
    *,
    may_create: bool = True,
) -> EquivalenceClass:
    """`volumes` are those that the run mounts and not all hosts have."""
    options = tuple(_option(requirement, one, owner, volumes) for one in fleets)
    return EquivalenceClass(requirement, nodes, options, partition, absent, volumes, may_create)


def _option(requirement: Requirement, fleet: Fleet, owner: str, volumes: frozenset[str]) -> Option:
    demands = {rack.number: measure(requirement, rack.shape) for rack in fleet.racks}
    takes = {number: one for number, one in demands.items() if isinstance(one, Take)}
    barred = {
        rack.number: why
        for rack in fleet.racks
        if rack.number in takes and (why := account_obstacle(rack.spaces[0].instance, owner))
    }
    apart = {
        rack.number
        for rack in fleet.racks
        if rack.number in takes and rack.number not in barred and volumes & rack.lacking
    }
    takes = {
        number: one for number, one in takes.items() if number not in barred and number not in apart
    }
    return Option(fleet, demands, takes, barred, apart)
