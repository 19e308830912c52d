"""
How a run that waits for room is kept from starving behind smaller ones.

The rule. On each fleet, the first run in the queue's order that is waiting for room alone has
instances *held* for it: as many as it has nodes, those where it can start earliest. Runs behind
it use other instances freely. A held instance takes a run from behind only when that cannot
delay the first one (Lifka's EASY backfill, 1995, with an instance for a node):

    a  its `max_duration` ends before the first run can start there, or
    b  it leaves enough when that moment comes: units beyond what the first run needs.

When the first run can start is known only where all that is in its way has a `max_duration`.
Where it is not known, neither holds, and the held instances drain: the only promise that can
be kept when nothing is known of durations. Held are then those that lack least, and because
nothing is put on them, they only come to lack less: the hold does not wander off.

An instance that is not ready is never held: a silent host would stop its whole fleet. Neither is one
that lacks GPUs because a process outside fleetform uses them: the end of no job makes room there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fleetform.model.run import Run
from fleetform.schedule.demand import Take
from fleetform.schedule.space import Free, Held, Hold, Space, capacity, usable_gpus


@dataclass(frozen=True, slots=True)
class _Prospect:
    """An instance that could be held: since when it has room, and what it lacks until then."""

    at_ms: int | None
    lack: tuple[int, int, int, int]
    space: Space

    @property
    def key(self) -> tuple[bool, int, tuple[int, int, int, int], int]:
        return (self.at_ms is None, self.at_ms or 0, self.lack, self.space.order)


def choose_hold(
    run: Run, choices: Sequence[Sequence[tuple[Space, Take]]], now_ms: int
) -> tuple[Hold, tuple[Space, ...]] | None:
    """
    Choose the instances to hold for `run`.

    `choices` has one entry for each set of instances that could take the whole run (a fleet's,
    for a gang), each instance with what one node of the run takes there.

    Returns:
        The hold and its instances, or None where no set has enough of them.
    """
    nodes = run.template.nodes
    best: list[tuple[_Prospect, Take]] | None = None
    for whole_choice in choices:
        choice = [
            (space, take)
            for space, take in whole_choice
            if capacity(space.instance).choose(take) is not None
        ]
        if len(choice) < nodes:
            continue
        prospects = [(_prospect(space, take, now_ms), take) for space, take in choice]
        prospects.sort(key=lambda pair: pair[0].key)
        chosen = prospects[:nodes]
        # The last one decides when the whole gang can start.
        if best is None or chosen[-1][0].key[:3] < best[-1][0].key[:3]:
            best = chosen
    if best is None:
        return None
    times = [prospect.at_ms for prospect, _ in best]
    at_ms = None if any(time is None for time in times) else max(t for t in times if t is not None)
    hold = Hold(run, at_ms)
    if at_ms is not None:
        for prospect, take in best:
            spare = _spare(prospect.space, take, at_ms)
            if spare is not None:
                hold.spares[prospect.space.order] = spare
    return hold, tuple(prospect.space for prospect, _ in best)


def _prospect(space: Space, take: Take, now_ms: int) -> _Prospect:
    lack = _lack(space.free, take)
    if space.free.choose(take) is not None:
        return _Prospect(now_ms, lack, space)
    leaving = sorted(_known_ends(space.held), key=lambda pair: pair[0])
    free = space.free.copy()
    for end_ms, held in leaving:
        _give_back(free, held, space)
        if free.choose(take) is not None:
            return _Prospect(end_ms, lack, space)
    return _Prospect(None, lack, space)


def _known_ends(many: Iterable[Held]) -> list[tuple[int, Held]]:
    return [(held.end_ms, held) for held in many if held.end_ms is not None]


def _spare(space: Space, take: Take, at_ms: int) -> Free | None:
    free = capacity(space.instance)
    for held in space.held:
        if held.end_ms is None or held.end_ms > at_ms:
            free.remove(held)
    gpus = free.choose(take)
    if gpus is None:
        return None
    free.remove(
        Held(take.cpu_millicores, take.memory_bytes, take.disk_bytes, gpus, take.blocks, None)
    )
    return free


def _give_back(free: Free, held: Held, space: Space) -> None:
    free.cpu_millicores += held.cpu_millicores
    free.memory_bytes += held.memory_bytes
    free.disk_bytes += held.disk_bytes
    free.blocks += held.blocks
    if held.gpus:
        back = [gpu for gpu in usable_gpus(space.instance) if gpu.uuid in held.gpus]
        free.gpus = sorted([*free.gpus, *back], key=lambda gpu: (gpu.index, gpu.uuid))


def _lack(free: Free, take: Take) -> tuple[int, int, int, int]:
    return (
        max(0, take.gpu_count - len(free.gpus)),
        max(0, take.cpu_millicores - free.cpu_millicores),
        max(0, take.memory_bytes - free.memory_bytes),
        max(0, take.disk_bytes - free.disk_bytes),
    )
