"""Hosts are exchanged one after the other, and never more at once than was said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.lifecycle.rollout import Place, next_moves, status_of
from fleetform.model.rollout import SURGE, Exchange, Move, Template
from fleetform.model.rollout_status import RolloutStatus


def template(strategy="drain", at_once=1, places=3):
    return Template("new", strategy, at_once, tuple(range(places)))


def old(number, **facts):
    return Place(f"old-{number}", number, is_outdated=True, **facts)


def new(number, **facts):
    return Place(f"new-{number}", number, is_outdated=False, **facts)


def moves(wanted, *hosts):
    return [(one.move, one.uid or one.number) for one in next_moves(wanted, hosts)]


def test_nothing_to_do():
    """Hosts of the template are left alone."""
    assert moves(template(), new(0), new(1), new(2)) == []


def test_an_idle_host_goes_first():
    """Nothing has to be waited for; the others go on."""
    hosts = (old(0, is_idle=False), old(1), old(2, is_idle=False))
    assert moves(template(), *hosts) == [(Move.LEAVE, "old-1")]


def test_a_busy_host_rests_until_it_is_idle():
    """What runs there runs to its end, and nothing else is exchanged meanwhile."""
    busy = (old(0, is_idle=False), old(1, is_idle=False))
    wanted = template(places=2)
    assert moves(wanted, *busy) == [(Move.REST, "old-0")]
    resting = replace(busy[0], is_resting=True)
    assert moves(wanted, resting, busy[1]) == []
    assert moves(wanted, replace(resting, is_idle=True), busy[1]) == [(Move.LEAVE, "old-0")]
    assert moves(wanted, replace(resting, is_leaving=True), busy[1]) == []
    assert moves(wanted, busy[1]) == [(Move.MAKE, 0)]
    assert moves(wanted, new(0, is_ready=False), busy[1]) == []
    assert moves(wanted, new(0), busy[1]) == [(Move.REST, "old-1")]


def test_as_many_at_once_as_was_said():
    """Those that are away count: the leaving, the empty places, and the new ones on their way."""
    hosts = [old(number) for number in range(5)]
    assert len(moves(template(at_once=2, places=5), *hosts)) == 2
    hosts[0] = replace(hosts[0], is_leaving=True)
    assert moves(template(at_once=2, places=5), *hosts) == [(Move.LEAVE, "old-1")]


def test_recreating_waits_for_nothing():
    """What runs there is ended, which the plan has asked about."""
    hosts = (old(0, is_idle=False), old(1, is_idle=False))
    assert moves(template("recreate", 2, 2), *hosts) == [(Move.END, "old-0"), (Move.END, "old-1")]


def test_a_surge_comes_before_the_old_one_goes():
    """At no time are there fewer hosts than were wanted."""
    wanted = template("surge", places=1)
    busy = old(0, is_idle=False)
    early = new(SURGE)
    assert moves(wanted, busy) == [(Move.MAKE, SURGE)]
    assert moves(wanted, busy, replace(early, is_ready=False)) == []
    assert moves(wanted, busy, early) == [(Move.REST, "old-0")]
    resting = replace(busy, is_resting=True)
    assert moves(wanted, resting, early) == []
    assert moves(wanted, replace(resting, is_idle=True), early) == [(Move.LEAVE, "old-0")]
    assert moves(wanted, early) == [(Move.SETTLE, early.uid)]
    assert moves(wanted, replace(early, number=0)) == []


def play(hosts: dict[int, Place], one: Exchange) -> None:
    """Carry out one move; what leaves is gone at once, and what is made is there."""
    by_uid = {host.uid: number for number, host in hosts.items()}
    if one.move is Move.MAKE:
        assert one.number not in hosts
        hosts[one.number] = new(one.number)
    elif one.move is Move.SETTLE:
        hosts[one.number] = replace(hosts.pop(by_uid[one.uid]), number=one.number)
    elif one.move is Move.REST:
        number = by_uid[one.uid]
        # Sooner or later its work has ended.
        hosts[number] = replace(hosts[number], is_resting=True, is_idle=True)
    else:
        assert one.move is Move.END or hosts[by_uid[one.uid]].is_idle
        del hosts[by_uid[one.uid]]


@pytest.mark.parametrize("strategy", ["drain", "surge", "recreate"])
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=6), st.integers(1, 4))
def test_it_ends_and_keeps_to_its_bound(strategy, drawn, at_once):
    """However hosts stand, all are exchanged in the end, and never too many are away."""
    wanted = template(strategy, at_once, len(drawn))
    hosts = {
        number: Place(f"h{number}", number, is_outdated=outdated, is_idle=idle)
        for number, (outdated, idle) in enumerate(drawn)
    }
    for _ in range(20 * len(drawn)):
        found = next_moves(wanted, hosts.values())
        if not found:
            break
        play(hosts, found[0])
        here = [one for one in hosts.values() if not one.is_resting or strategy == "surge"]
        floor = len(drawn) if strategy == "surge" else len(drawn) - at_once
        assert len(here) >= floor
    assert sorted(hosts) == list(wanted.places)
    assert not any(one.is_outdated for one in hosts.values())


@pytest.mark.parametrize("strategy", ["drain", "recreate", "surge"])
def test_one_that_came_early_gets_the_place_under_any_strategy(strategy):
    """The strategy may change while it waits for the old one; nobody else is made then."""
    early = Place("early", SURGE, is_outdated=False)
    assert moves(template(strategy, places=1), early) == [(Move.SETTLE, "early")]


@pytest.mark.parametrize("strategy", ["drain", "recreate", "surge"])
def test_one_that_came_early_for_nothing_goes_again(strategy):
    """A template that is taken back leaves the old hosts right, and nobody's place for the new."""
    wanted = template(strategy, places=1)
    early = old(SURGE)
    assert moves(wanted, new(0, is_idle=False), early) == [(Move.LEAVE, early.uid)]
    busy = replace(early, is_idle=False)
    assert moves(wanted, new(0), busy) == [(Move.REST, early.uid)]
    assert moves(wanted, new(0), replace(busy, is_resting=True)) == []
    assert moves(wanted, new(0), replace(early, is_leaving=True)) == []


def test_how_far_a_rollout_is():
    """Each place counts once: its host has the new template, waits, or is being replaced."""
    hosts = [new(0), old(1, is_idle=False), old(2), old(3, is_leaving=True), new(SURGE + 1)]
    found = status_of(template(places=5), hosts)
    assert found == RolloutStatus(hosts=5, updated=1, waiting=2, busy=1)
