"""
One seed of apply, from its first tree to the judge's last question.

Faults come while the tree is edited a few times, then stop; from then on a few plans must be
enough to make world, ledger and tree agree.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass

from fleetform.model.override import OverrideKind
from fleetform.model.plan import HeldBy, Permissions, Scope
from fleetform.model.rollout import SURGE
from fleetform.spec.desired import Desired
from simulation.apply.actors.overrides import OverrideActor
from simulation.apply.actors.serve import ServeActor
from simulation.apply.actors.user import PlanFile, UserActor
from simulation.apply.drift_injection import DriftInjection
from simulation.apply.end import ask_last
from simulation.apply.faults import Point, draw_faults
from simulation.apply.judge import Judge
from simulation.apply.lock import Lock
from simulation.apply.machine import Machine
from simulation.apply.ports import (
    FILLED,
    Claimed,
    Look,
    MakeDisk,
    OutgrownBy,
    Rebuild,
    TakenOver,
)
from simulation.apply.process import Room
from simulation.apply.tree import ENVIRONMENT_UID, Tree
from simulation.controller import SeededIds, VirtualClock
from simulation.loop import Stuck, VirtualLoop, run

__all__ = ["MET", "ApplyVerdict", "play_apply"]

COMMITS_MAX = 3
END_SECONDS = 3600.0
"""Virtual ones; a seed takes some fifty."""

SUCCESSORS = 0.1
"""Share of the seeds in which runs give way to others of their name, while they are at work."""

TRIES_MAX = 3
"""How often somebody tries one commit again before they make the next."""

ROUNDS_MAX = 25
"""Plans that may be needed once faults have ended; the longest chain of holds takes about ten."""

UNMOVED_MAX = 2
"""Looks of whoever manages that find everything as it was, before they are believed."""

_MOVED = (
    "SELECT (SELECT sum(generation) FROM instances), (SELECT count(*) FROM runs),"
    " (SELECT sum(generation) FROM runs), (SELECT group_concat(state) FROM attempts),"
    " (SELECT group_concat(state) FROM jobs), (SELECT sum(gen) FROM jobs)"
)

MET = (
    "second writer",
    "volume that comes back",
    "fleet taken in",
    "host replaced",
    "lease that lapsed",
    "takeover",
    "emergency stop",
    "emergency drain",
    "emergency pause",
    "emergency freeze",
    "emergency thaw",
)
"""What is no fault and shall happen, as the judge counts it."""

ALL = Permissions(allow_destroy=True, allow_restart=True, allow_deletes=1000)


@dataclass(frozen=True, slots=True)
class ApplyVerdict:
    """
    What one seed came to. `trace_digest` is the same for every run of the seed.

    `points` are the writes and calls that were passed while there were faults, in their order.
    """

    seed: int
    violations: tuple[str, ...]
    faults: Mapping[str, int]
    points: tuple[Point, ...]
    died_at: tuple[Point, ...]
    checked: Mapping[str, int]
    met: Mapping[str, int]
    plans: int
    executions: int
    virtual_seconds: float
    trace_digest: str
    trace: tuple[str, ...]


def play_apply(
    seed: int,
    make_disk: MakeDisk,
    outgrown_by: OutgrownBy,
    rebuild: Rebuild,
    look: Look,
    claimed: Claimed,
    taken_over: TakenOver,
    *,
    dies_at: int = 0,
) -> ApplyVerdict:
    """Play one seed to its end; with `dies_at` somebody dies at that point as well."""
    source = random.Random(seed)
    loop = VirtualLoop()
    judge = Judge()
    loop.on_advance = lambda now: setattr(judge, "now", now)
    # Drawn by itself, so that all other seeds play what they would play without it.
    moods = random.Random(f"moods of {seed}")
    play = _Play(
        source, judge, loop, make_disk, outgrown_by, rebuild, look, claimed, taken_over,
        has_successors=moods.random() < SUCCESSORS,
    )  # fmt: skip
    play.faults.also = dies_at
    try:
        run(_bounded(play), loop)
    except TimeoutError:
        judge.violate(loop.time(), "it is not over after an hour")
    except (Exception, Stuck) as problem:  # noqa: BLE001 -- whatever it is, the seed has found a bug
        judge.violate(loop.time(), f"{type(problem).__name__}: {problem}")
    for sentence in loop.problems:
        judge.violate(loop.time(), sentence)
    trace = tuple(judge.trace)
    return ApplyVerdict(
        seed=seed,
        violations=tuple(judge.violations),
        faults=dict(judge.faults),
        points=tuple(play.faults.points),
        died_at=tuple(play.faults.died_at),
        checked=dict(judge.checked),
        met=dict(judge.met),
        plans=play.plans,
        executions=judge.executions.total,
        virtual_seconds=loop.time(),
        trace_digest=hashlib.sha256("\n".join(trace).encode()).hexdigest(),
        trace=trace,
    )


async def _bounded(play: _Play) -> None:
    # Whoever looks again and again for what never comes keeps the loop's time going for ever.
    async with asyncio.timeout(END_SECONDS):
        await play.run()


class _Play:
    def __init__(
        self,
        source: random.Random,
        judge: Judge,
        loop: VirtualLoop,
        make_disk: MakeDisk,
        outgrown_by: OutgrownBy,
        rebuild: Rebuild,
        look: Look,
        claimed: Claimed,
        taken_over: TakenOver,
        *,
        has_successors: bool,
    ) -> None:
        self.plans = 0
        self._random = source
        self._judge = judge
        self.faults = faults = draw_faults(
            source, lambda kind, who: judge.fault(judge.now, kind, who)
        )
        ids = SeededIds(source)
        disk = make_disk(ENVIRONMENT_UID, ids)
        machine = Machine(source, judge, disk, loop.time)
        lease = source.random() < 0.4
        self._room = Room(
            judge=judge,
            disk=disk,
            machine=machine,
            lock=Lock(lease=lease),
            faults=faults,
            outgrown_by=outgrown_by,
            rebuild=rebuild,
            look=look,
            claimed=claimed,
            taken_over=taken_over,
            alive={},
        )
        self._tree = Tree.draw(source, has_successors=has_successors)
        if has_successors:
            # Long ones, that are at work still when the next commits come.
            machine.paces = (5.0, 30.0, 60.0)
        self._files: list[PlanFile] = []
        clock = VirtualClock()
        self._first = UserActor("ada", self._room, clock, ids, self._on_plan)
        self._second = UserActor("bob", self._room, clock, ids, self._on_plan)
        third = UserActor("eve", self._room, clock, ids, self._on_plan)
        self._decay = DriftInjection(self._room)
        self._keeper = ServeActor(
            UserActor("serve", self._room, clock, ids, self._on_plan), self._room, clock
        )
        self._warden = OverrideActor(third, self._room, clock)
        self._now_declared: Desired = self._tree.desired()

    async def run(self) -> None:
        others = []
        if self._random.random() < 0.5:
            others.append(asyncio.create_task(self._meddle()))
        if self._random.random() < 0.3:
            others.append(asyncio.create_task(self._trouble()))
        if self._random.random() < 0.4:
            others.append(asyncio.create_task(self._warden.watch()))
        if self._random.random() < 0.4:
            others.append(asyncio.create_task(self._decay.wear()))
        if self._random.random() < 0.15:
            others.append(asyncio.create_task(self._keeper.serve()))
            others.append(
                asyncio.create_task(
                    self._keeper.take_over(self._warden, self._second, lambda: self._now_declared)
                )
            )
        least = COMMITS_MAX - 1 if self._tree.is_restless else 1
        if self._tree.has_successors:
            least = COMMITS_MAX
        for number in range(self._random.randint(least, COMMITS_MAX)):
            if number:
                self._tree.edit()
                self._now_declared = self._tree.desired()
            await self._apply(self._now_declared)
            await asyncio.sleep(self._random.random() * 10)
            if self._files and self._random.random() < 0.15:
                await self._first.apply_file(self._random.choice(self._files))
        self._room.faults.over = True
        self._room.disk.drain()
        for task in others:
            await task
        await self._obey()
        await self._converge()

    # -- people -----------------------------------------------------------------------------

    async def _apply(self, tree: Desired) -> None:
        """What somebody does who wants this commit applied and has other things to do as well."""
        permissions = self._draw_permissions()
        scope = self._draw_scope(tree)
        for _ in range(TRIES_MAX):
            if self._random.random() < 0.25:
                file = self._first.keep(tree, permissions, scope)
                self._files.append(file)
                if self._random.random() < 0.3:
                    # It lies about, for somebody who takes it later.
                    continue
                ending = await self._first.apply_file(file)
            else:
                refresh = self._decay.has_begun and self._random.random() < 0.5
                ending = await self._first.apply(tree, permissions, scope, refresh=refresh)
            if ending in {"done", "empty"}:
                return
            if ending == "recovering":
                await self._first.rebuild(tree)
            elif ending == "full":
                await asyncio.sleep(2)
            elif ending == "refused":
                await asyncio.sleep(self._random.random() * 10)
            else:
                await asyncio.sleep(self._random.random())

    async def _meddle(self) -> None:
        """A second person: the same tree at the same time, or the plan of the first, or an old one."""
        for _ in range(self._random.randint(1, 3)):
            await asyncio.sleep(self._random.random() * 8)
            if self._files and self._random.random() < 0.5:
                newest = self._random.random() < 0.6
                file = self._files[-1] if newest else self._random.choice(self._files)
                self._judge.note(self._judge.now, f"bob takes plan {file.plan.digest[:8]}")
                await self._second.apply_file(file)
            else:
                await self._second.apply(self._now_declared, self._draw_permissions())
            self._judge.happened("second writer")

    def _draw_permissions(self) -> Permissions:
        return Permissions(
            allow_destroy=self._random.random() < 0.4,
            allow_restart=self._random.random() < 0.3,
            allow_deletes=self._random.choice((None, None, 1, 4)),
            destroy=self._random.random() < 0.02,
        )

    def _draw_scope(self, tree: Desired) -> Scope:
        """Mostly everything; sometimes a part, by name or by kind, or a host in a host's place."""
        if self._random.random() < (0.15 if self._tree.has_successors else 0.06):
            names = sorted(host.name for host in self._room.machine.hosts.values())
            return Scope(replaces=(f"host/{self._random.choice(names or ['pool-0'])}",))
        if not tree.resources or self._random.random() < 0.8:
            return Scope()
        some = self._random.choice((str(self._random.choice(list(tree.resources))), "run/*"))
        if "[" in some:
            some = "run/sweep"
        return Scope(targets=(some,)) if self._random.random() < 0.6 else Scope(excludes=(some,))

    def _on_plan(self) -> None:
        self.plans += 1

    # -- the machine --------------------------------------------------------------------------

    async def _trouble(self) -> None:
        """Power cuts, a full disk, and a ledger that is put back from an earlier copy."""
        room = self._room
        copy, marks = room.disk.image(), self._judge.snapshot()
        for _ in range(self._random.randint(1, 3)):
            await asyncio.sleep(self._random.random() * 6)
            if room.faults.over:
                return
            kind = self._random.choice(("power cut", "full disk", "copy", "restore"))
            if kind == "copy":
                copy, marks = room.disk.image(), self._judge.snapshot()
                continue
            self._judge.fault(self._judge.now, kind, "the machine")
            if kind == "full disk":
                room.disk.fill(self._random.choice(FILLED))
                await asyncio.sleep(self._random.random() * 3)
                room.disk.drain()
                continue
            room.kill_all()
            # What was committed survives a power cut, and nothing else is on this disk.
            if kind == "restore":
                room.disk.load(copy)
                known = room.machine.is_ahead_of_ledger()
                self._judge.restored(marks, room.disk, is_known=known)

    # -- the end ------------------------------------------------------------------------------

    async def _obey(self) -> None:
        """While overrides hold they are kept; then somebody lifts them."""
        judge = self._judge
        if judge.above.in_force("stop", judge.now):
            heard = [await self._first.attend() for _ in range(2)]
            if "recovering" not in heard:
                judge.above.check_ended(judge.executions.alive().values(), judge.now)
        if judge.above.overrides:
            await self._warden.lift()

    async def _converge(self) -> None:
        self._tree.settle(self._room.machine.volumes, self._let_go())
        self._mark_what_goes()
        scope = Scope()
        for number in range(ROUNDS_MAX):
            # Who is told that a directory is there, or that there is none, says what is meant.
            if number:
                self._tree.take_in(self._room.machine.volumes, self._let_go())
            tree = self._tree.desired()
            if not await self._come_to_rest(look=number == 0):
                await self._first.rebuild(tree)
                continue
            # Whoever puts a copy back that no host can tell from the newest looks at the world.
            worn = self._decay.has_begun or self._judge.has_no_witness
            ending = await self._first.apply(tree, ALL, scope, refresh=worn)
            assert self._first.last_plan is not None
            # Whose data is gone, a person says it, begins anew.
            drifted = [
                one.change.key for one in self._first.last_plan.held if one.by is HeldBy.DRIFT
            ]
            # A run is blocked by the volume that it mounts.
            lost = [key for key in drifted if key.kind != "run"]
            scope = Scope(replaces=tuple(map(str, lost)))
            waits = any(one.by is HeldBy.WINDOW for one in self._first.last_plan.held)
            if waits:
                await self._warden.put(OverrideKind.THAW)
            if ending == "empty" and not lost and not waits:
                break
        assert self._first.last_plan is not None
        ask_last(self._room, self._first.last_plan, tree)

    def _let_go(self) -> set[str]:
        """Fleets of which hosts were let go, as the ledger has it and a plan says."""
        rows = self._room.disk.ask(
            "SELECT name FROM instances WHERE state = 'terminated' AND fleet = ''"
        )
        return {name.rpartition("-")[0] for (name,) in rows}

    def _mark_what_goes(self) -> None:
        """
        Mark again, by hand, what is to go: no plan cures it, and no host removes what is unmarked.
        """
        # On another fleet it is another directory, although their paths are the same.
        declared = {(name, fleet, path) for name, (fleet, path, _) in self._tree.volumes.items()}
        rows = self._room.disk.ask(
            "SELECT name, document ->> 'fleet', document ->> 'path', uid FROM resources"
            " WHERE kind = 'volume'"
        )
        for name, fleet, path, uid in rows:
            mark = self._room.machine.volumes.get(path)
            if mark is not None and not mark.volume_uid and (name, fleet, path) not in declared:
                self._room.machine.mark_again(path, uid)

    async def _come_to_rest(self, *, look: bool) -> bool:
        """
        Let everything that runs come to its end; False when the ledger is not the newest.

        With `look` the hosts are looked at also where nothing moves.
        """
        before, unmoved = None, 0
        for number in range(ROUNDS_MAX):
            if not self._is_moving() and not (look and number == 0):
                break
            if await self._first.attend() == "recovering":
                return False
            # What waits for something that a plan must bring is at rest, too.
            after = self._room.disk.ask(_MOVED)
            unmoved = unmoved + 1 if after == before else 0
            if unmoved == UNMOVED_MAX:
                break
            before = after
            until = self._room.machine.last_end()
            await asyncio.sleep(0.1 if until is None else max(until - self._judge.now, 0) + 0.1)
        return True

    def _is_moving(self) -> bool:
        rows = self._room.disk.ask(
            "SELECT (SELECT count(*) FROM runs WHERE final = 0),"
            " (SELECT count(*) FROM instances WHERE state IN ('terminating', 'provisioning')),"
            # What its document says to be stopped waits for ever.
            " (SELECT count(*) FROM runs r JOIN attempts a ON a.run_uid = r.uid"
            " AND a.number = r.attempt WHERE r.final = 0 AND a.state = 'waiting'"
            " AND r.stop_requested = '' AND r.document ->> 'state' = 'stopped'),"
            # Hosts of an earlier template wait for what runs on them, and then for a round; so
            # does a place that one of them has left.
            " (SELECT count(*) FROM instances i JOIN resources s ON s.kind = 'fleet'"
            " AND s.name = i.fleet WHERE i.state <> 'terminated' AND i.template_digest <> ''"
            " AND s.outputs <> '' AND (s.outputs ->> 'template' <> i.template_digest"
            " OR i.number >= ?)),"
            " (SELECT count(*) FROM resources s, json_each(s.outputs, '$.places') p"
            " WHERE s.kind = 'fleet' AND s.state = 'present' AND s.outputs <> ''"
            " AND NOT EXISTS (SELECT 1 FROM instances i WHERE i.fleet = s.name"
            " AND i.number = p.value AND i.state = 'ready'))",
            (SURGE,),
        )
        ((runs, instances, stopped, outdated, empty),) = rows
        return bool(runs - stopped or instances or outdated or empty)
