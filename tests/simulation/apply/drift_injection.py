"""
What becomes of the world behind everybody's back, and whether it is told of or put right.

A host, a volume's directory or the mark in one vanishes. Whoever asks the world must then hear of
it, and what the table of drift cures is cured; what would hide a loss is left to a person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fleetform.model.plan import Plan, Reason, Scope
from fleetform.spec.desired import Desired, ResourceKey
from simulation.apply.process import Room
from simulation.apply.rule import Rule

__all__ = ["DriftInjection", "Missing"]


@dataclass(frozen=True, slots=True)
class Missing:
    """
    One thing that the ledger says was made and is settled, and that is not so.

    `generation` is the row's: what somebody changes while the world is asked, is not told of.
    """

    key: ResourceKey
    field: str
    uid: str
    generation: int


class DriftInjection:
    """What vanishes, and the judge's own comparison of ledger and world."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.has_begun = False

    async def wear(self) -> None:
        """Let something vanish now and then, as long as there are faults."""
        room = self._room
        source = room.faults.source
        for _ in range(source.randint(1, 3)):
            await asyncio.sleep(source.random() * 10)
            if room.faults.over:
                return
            kind = source.choice(("host gone", "directory gone", "mark gone"))
            things = [*room.machine.hosts] if kind == "host gone" else [*room.machine.volumes]
            # A host that knows of what a restored ledger does not, is the only one that can tell.
            if not things or (kind == "host gone" and room.judge.outgrown):
                continue
            self.has_begun = True
            room.judge.fault(room.judge.now, kind, "the world")
            thing = source.choice(things)
            if kind == "host gone":
                room.machine.vanish(thing)
            elif kind == "directory gone":
                room.machine.lose_directory(thing)
            else:
                room.machine.lose_mark(thing)

    def missing(self) -> frozenset[Missing]:
        """Compare what the ledger says was made with what there is."""
        return frozenset((*self._hosts(), *self._volumes()))

    def last_of_plans(self) -> int:
        """Tell the last event of any plan: what an apply touches meanwhile is told of later."""
        ((number,),) = self._room.disk.ask(
            "SELECT coalesce(max(number), 0) FROM events WHERE kind LIKE 'plan.%'"
        )
        return int(number)

    def _hosts(self) -> Iterable[Missing]:
        rows = self._room.disk.ask(
            "SELECT i.fleet, i.uid, i.generation FROM instances i JOIN resources s"
            " ON s.kind = 'fleet' AND s.name = i.fleet AND s.operation = ''"
            " WHERE i.state NOT IN ('terminated', 'terminating') AND i.install_id <> ''"
        )
        for fleet, uid, generation in rows:
            if uid not in self._room.machine.hosts:
                yield Missing(ResourceKey("fleet", fleet), "host", uid, generation)

    def _volumes(self) -> Iterable[Missing]:
        rows = self._room.disk.ask(
            "SELECT name, uid, generation, document ->> 'path' FROM resources"
            " WHERE kind = 'volume' AND archived = 0 AND state = 'present' AND operation = ''"
        )
        for name, uid, generation, path in rows:
            mark = self._room.machine.volumes.get(path)
            if mark is None:
                yield Missing(ResourceKey("volume", name), "directory", uid, generation)
            elif not mark.volume_uid:
                yield Missing(ResourceKey("volume", name), "mark", uid, generation)

    def judge(self, plan: Plan, tree: Desired, scope: Scope, missing: Iterable[Missing]) -> None:
        """`plan` is of what was `missing` before the world was asked, and still is."""
        judge = self._room.judge
        renamed = self._renamed(tree)
        missing = [replace(one, key=renamed.get(one.key, one.key)) for one in missing]
        # A directory that was made anew meanwhile, or is found elsewhere, is told of as that.
        told = {one["resource"] for one in plan.annex["drift"]}
        cared_for = {one.key for one in plan.changes} | {one.change.key for one in plan.held}
        for one in sorted(missing, key=lambda one: (one.key, one.field, one.uid)):
            judge.require(Rule.DRIFT, str(one.key) in told, f"{one.key}: {one.field} is gone")
            if scope.is_whole and one.key in tree.resources:
                judge.require(
                    Rule.DRIFT,
                    one.key in cared_for,
                    f"{one.key}: {one.field} is gone and nothing is done",
                )
        lost = {one.key for one in missing if one.field == "directory"}
        for change in plan.changes:
            hidden = (
                change.key in lost
                and Reason.DRIFTED in change.reasons
                and str(change.key) not in scope.replaces
            )
            judge.require(Rule.DRIFT, not hidden, f"{change.key} is to be made anew unasked")

    def _renamed(self, tree: Desired) -> dict[ResourceKey, ResourceKey]:
        """What has another name from this tree on; one whose new name is taken keeps its own."""
        rows = self._room.disk.ask("SELECT kind, name FROM resources WHERE archived = 0")
        taken = {ResourceKey(kind, name) for kind, name in rows}
        return {before: after for before, after in tree.moved if after not in taken}
