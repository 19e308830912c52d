"""Who may act: the kernel's lock is kept by whoever lives, a lease by whoever renews it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fleetform.simulate.apply.lock import TERM_SECONDS, Lock


@dataclass
class Somebody:
    silent_seconds: float = 0.0


@pytest.mark.parametrize("lease", [False, True])
def test_one_at_a_time(lease: bool) -> None:
    """A second one gets it when the first gives it up, and a stranger gives up nothing."""
    lock, first, second = Lock(lease=lease), Somebody(), Somebody()
    assert lock.take(first)
    assert lock.take(first)
    assert not lock.take(second)
    lock.release(second)
    assert not lock.take(second)
    lock.release(first)
    assert lock.take(second)


def test_the_kernel_keeps_it_for_who_stands_still() -> None:
    """However long its holder is paused, it holds."""
    lock, paused = Lock(lease=False), Somebody(silent_seconds=10 * TERM_SECONDS)
    assert lock.take(paused)
    assert not lock.take(Somebody())
    assert lock.is_sure(paused)


def test_a_lease_ends_by_itself() -> None:
    """Effects end after half a term, and only after a whole one may somebody else act."""
    lock, paused, other = Lock(lease=True), Somebody(), Somebody()
    assert lock.take(paused)
    paused.silent_seconds = TERM_SECONDS * 0.7
    assert not lock.is_sure(paused)
    assert not lock.take(other)
    paused.silent_seconds = TERM_SECONDS
    assert lock.take(other)
    assert lock.is_sure(other)
    paused.silent_seconds = 0
    assert not lock.is_sure(paused)
