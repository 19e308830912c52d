"""
Runs that ask for the same, and where they fit: placed, skipped and explained together.

Ten thousand elements of an array differ in name only. What one of them finds out in a round
holds for all of them, so the second costs a look-up.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fleetform.model.run import Requirement
from fleetform.schedule.demand import Demand, Shape, Take, measure
from fleetform.schedule.holds import Hold, Loan
from fleetform.schedule.space import Fleet, Space

_Key = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Pick:
    """One node's place, chosen and not yet taken."""

    space: Space
    take: Take
    gpus: tuple[str, ...]
    loan: Loan | None = None


@dataclass(slots=True)
class Changes:
    """Instances in the order they were taken from in this round, and which are held for whom."""

    log: list[Space] = field(default_factory=list)
    holds: dict[int, Hold] = field(default_factory=dict)
    """By the order of the instance."""


@dataclass(slots=True)
class Pool:
    """
    Instances that could take one node each of a crowd, best fit first.

    A heap whose entries may be out of date: an instance's key only falls as it fills up, and
    each fall is noticed from the log of changes, so the top is right once it agrees with its
    instance. What does not fit is dropped for good; what is held for another run is set aside.
    """

    takes: dict[int, Take]
    """What a node takes, by the order of the instance; only instances where it fits empty."""
    changes: Changes
    heap: list[tuple[_Key, Space]] = field(default_factory=list)
    aside: dict[int, Space] = field(default_factory=dict)
    seen: int = 0

    @classmethod
    def of(cls, spaces: Sequence[tuple[Space, Take]], changes: Changes) -> Pool:
        heap = [(space.tightness, space) for space, _ in spaces]
        heapq.heapify(heap)
        takes = {space.order: take for space, take in spaces}
        return cls(takes, changes, heap, seen=len(changes.log))

    def pick(self, count: int, end_ms: int | None) -> list[Pick] | None:
        """Choose `count` distinct instances, or None; a run that ends by `end_ms` may borrow."""
        self._catch_up()
        picks = self._pick_free(count)
        if len(picks) < count:
            picks.extend(self._pick_held(count - len(picks), end_ms))
        if len(picks) == count:
            return picks
        for pick in picks:
            if pick.loan is None:
                heapq.heappush(self.heap, (pick.space.tightness, pick.space))
        return None

    def room(self) -> tuple[list[Space], list[Space]]:
        """Return the instances that have room now: those free to take, and those held."""
        self._catch_up()
        spaces = {space.order: space for _, space in self.heap} | self.aside
        free: list[Space] = []
        held: list[Space] = []
        for order in sorted(spaces):
            space = spaces[order]
            if space.free.choose(self.takes[order]) is not None:
                (held if order in self.changes.holds else free).append(space)
        return free, held

    def _catch_up(self) -> None:
        log = self.changes.log
        if self.seen == len(log):
            return
        for space in {space.order: space for space in log[self.seen :]}.values():
            if space.order in self.takes:
                heapq.heappush(self.heap, (space.tightness, space))
        self.seen = len(log)

    def _pick_free(self, count: int) -> list[Pick]:
        picks: list[Pick] = []
        chosen: set[int] = set()
        while self.heap and len(picks) < count:
            key, space = heapq.heappop(self.heap)
            if key != space.tightness or space.order in chosen:
                continue
            if space.order in self.changes.holds:
                self.aside[space.order] = space
                continue
            take = self.takes[space.order]
            gpus = space.free.choose(take)
            if gpus is not None:
                chosen.add(space.order)
                picks.append(Pick(space, take, gpus))
        return picks

    def _pick_held(self, count: int, end_ms: int | None) -> list[Pick]:
        picks: list[Pick] = []
        for space in sorted(self.aside.values(), key=lambda one: one.tightness):
            if len(picks) == count:
                break
            take = self.takes[space.order]
            loan = self.changes.holds[space.order].lend(space, take, end_ms)
            if loan is not None:
                picks.append(Pick(space, take, loan.gpus, loan))
        return picks


@dataclass(slots=True)
class Crowd:
    """
    All runs of a round with one requirement, number of nodes and choice of fleets.

    `is_full` and `refused_end_ms` remember a failure: nothing is given back within a round, so
    what was refused stays refused. The second is the earliest end that holds did not allow.
    """

    requirement: Requirement
    nodes: int
    fleets: tuple[Fleet, ...]
    absent: tuple[str, ...]
    """Fleets that the document names and that have no instance yet."""
    demands: Mapping[Shape, Demand]
    changes: Changes
    is_full: bool = False
    refused_end_ms: int | None = None
    is_refused: bool = False
    is_done_holding: bool = False
    """No fleet is left on which a run of this crowd could hold instances."""
    _pools: list[Pool] | None = None

    def possible(self, fleet: Fleet) -> list[tuple[Space, Take]]:
        """Return the instances of `fleet`, in any state, that could take a node when empty."""
        found = []
        for space in fleet.spaces:
            demand = self.demands[space.shape]
            if isinstance(demand, Take):
                found.append((space, demand))
        return found

    def ready(self) -> list[list[tuple[Space, Take]]]:
        """
        Return the ready ones of these, in sets that could each take a whole run.

        A gang stays within one fleet: that is what shares a network. Others may go anywhere.
        """
        by_fleet = [
            [pair for pair in self.possible(fleet) if pair[0].is_ready] for fleet in self.fleets
        ]
        if self.nodes > 1:
            return by_fleet
        return [[pair for pairs in by_fleet for pair in pairs]]

    def place(self, end_ms: int | None) -> list[Pick] | None:
        """Choose places for one run of the crowd that ends by `end_ms`, or None."""
        if self.is_full or self._is_refused(end_ms):
            return None
        for pool in self.pools():
            picks = pool.pick(self.nodes, end_ms)
            if picks is not None:
                return picks
        if self.has_room():
            self._refuse(end_ms)
        else:
            self.is_full = True
        return None

    def has_room(self) -> bool:
        """Tell whether a run would fit if nothing were held for others."""
        rooms = (pool.room() for pool in self.pools())
        return any(len(free) + len(held) >= self.nodes for free, held in rooms)

    def pools(self) -> list[Pool]:
        if self._pools is None:
            self._pools = [Pool.of(spaces, self.changes) for spaces in self.ready()]
        return self._pools

    def _is_refused(self, end_ms: int | None) -> bool:
        if not self.is_refused:
            return False
        return end_ms is None or (self.refused_end_ms is not None and end_ms >= self.refused_end_ms)

    def _refuse(self, end_ms: int | None) -> None:
        self.is_refused = True
        if end_ms is not None and (self.refused_end_ms is None or end_ms < self.refused_end_ms):
            self.refused_end_ms = end_ms


def measure_all(requirement: Requirement, fleets: Sequence[Fleet]) -> dict[Shape, Demand]:
    shapes = {space.shape for fleet in fleets for space in fleet.spaces}
    return {shape: measure(requirement, shape) for shape in shapes}
