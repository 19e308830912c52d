"""Who may act: the kernel's lock is kept by whoever lives, a lease by whoever renews it."""

from __future__ import annotations

import random

import pytest

from fleetform.model.refusals import FenceLost
from simulation.apply.faults import Faults
from simulation.apply.judge import Judge
from simulation.apply.lock import TERM_SECONDS, Lock
from simulation.apply.machine import Machine
from simulation.apply.process import Process, Room
from simulation.controller import SeededIds
from simulation.disk import SimulatedDisk


def room(*, lease: bool) -> Room:
    """A machine on which nothing goes wrong by itself, with a ledger."""
    source, judge = random.Random(1), Judge()
    disk = SimulatedDisk("6" * 32, SeededIds(source))
    machine = Machine(source, judge, disk, lambda: judge.now)
    faults = Faults(source, lambda *_: None)
    return Room(judge, disk, machine, Lock(lease=lease), faults, None, None, None, None, None, {})


def stand(process: Process, seconds: float) -> None:
    """Let a process stand still from now on, just after it has renewed."""
    process.keep_lease()
    process._stands_until = process.room.judge.now + seconds


@pytest.mark.parametrize("lease", [False, True])
def test_one_at_a_time(lease: bool) -> None:
    """A second one gets it when the first gives it up, and a stranger gives up nothing."""
    here = room(lease=lease)
    lock, first, second = here.lock, Process("a", here), Process("b", here)
    assert lock.take(first)
    assert lock.take(first)
    here.judge.now += 3 * TERM_SECONDS
    assert not lock.take(second)
    lock.release(second)
    assert not lock.take(second)
    lock.release(first)
    assert lock.take(second)


def test_the_kernel_frees_what_a_lease_keeps() -> None:
    """Whoever dies holds the kernel's lock no more, and a lease until its term is over."""
    local, remote = room(lease=False), room(lease=True)
    for here in (local, remote):
        dying = Process("a", here)
        assert here.lock.take(dying)
        dying.die()
    assert local.lock.take(Process("b", local))
    successor = Process("b", remote)
    assert not remote.lock.take(successor)
    remote.judge.now += TERM_SECONDS
    assert remote.lock.take(successor)


def test_the_kernel_keeps_it_for_who_stands_still() -> None:
    """However long its holder is paused, it holds."""
    here = room(lease=False)
    paused = Process("a", here)
    assert here.lock.take(paused)
    stand(paused, 10 * TERM_SECONDS)
    here.judge.now += 9 * TERM_SECONDS
    assert not here.lock.take(Process("b", here))
    assert here.lock.is_sure(paused)


def test_a_lease_ends_by_itself() -> None:
    """Effects end after half a term, and only after a whole one may somebody else act."""
    here = room(lease=True)
    lock, paused, other = here.lock, Process("a", here), Process("b", here)
    assert lock.take(paused)
    stand(paused, 2 * TERM_SECONDS)
    here.judge.now += TERM_SECONDS * 0.7
    assert not lock.is_sure(paused)
    assert not lock.take(other)
    here.judge.now += TERM_SECONDS * 0.3
    assert lock.take(other)
    assert other.fence > paused.fence
    assert lock.is_sure(other)
    # It wakes up, believes nothing, and learns at its next renewal that it is over.
    here.judge.now += TERM_SECONDS
    with pytest.raises(FenceLost):
        paused.require()
    here.judge.now += TERM_SECONDS
    with pytest.raises(FenceLost):
        paused.require()
    assert paused.has_lost
    # Nor is anything written under its fence.
    with pytest.raises(FenceLost):
        paused.ledger.retire("nobody", fence=paused.fence, now_ms=0)


def test_a_lease_that_nobody_took_is_renewed_late() -> None:
    """Who wakes up after its term and finds nobody else goes on under the same fence."""
    here = room(lease=True)
    paused = Process("a", here)
    assert here.lock.take(paused)
    stand(paused, 2 * TERM_SECONDS)
    here.judge.now += 3 * TERM_SECONDS
    paused.require()
    assert not here.lock.take(Process("b", here))
