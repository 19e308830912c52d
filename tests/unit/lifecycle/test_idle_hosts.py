"""Hosts without jobs leave after a while, whichever controller counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.lifecycle.idle_hosts import judge_idle
from fleetform.lifecycle.progress import FIRST_BOOT_MS
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.scaling import IdleHosts, Scaling

NOW = 1_700_000_000_000
IDLE = 300_000
HOST = Instance("a", "gpus-0", "gpus", 0, InstanceState.READY)


def judged(spare, *hosts, idle_ms=IDLE, now_ms=NOW):
    limits = Scaling(0, 3, idle_ms, frozenset(), HOST)
    return judge_idle(spare, hosts, {"gpus": limits}, now_ms=now_ms)


def since(ms, host=HOST):
    return replace(host, idle_since_ms=ms)


def test_a_host_begins_to_be_idle_and_leaves():
    """The mark is written once, and the host leaves when its time is over."""
    assert judged(["a"], HOST) == IdleHosts(began=("a",), next_at_ms=NOW + IDLE)
    assert judged(["a"], since(NOW - 1)) == IdleHosts(next_at_ms=NOW - 1 + IDLE)
    assert judged(["a"], since(NOW - IDLE)) == IdleHosts(leaving=("a",))


def test_a_host_that_is_needed_again_is_idle_no_more():
    """The time begins anew after its next job."""
    assert judged([], since(NOW - IDLE)) == IdleHosts(ended=("a",))


def test_no_limit_keeps_hosts():
    """With `idle_duration: off` nothing is counted, and an earlier mark goes."""
    assert judged(["a"], HOST, idle_ms=None) == IdleHosts()
    assert judged(["a"], since(1), idle_ms=None) == IdleHosts(ended=("a",))


def test_no_time_at_all():
    """With `idle_duration: 0` a host leaves at once."""
    assert judged(["a"], HOST, idle_ms=0) == IdleHosts(began=("a",), leaving=("a",))


def test_a_host_that_boots_is_not_idle():
    """It stays until it has answered, but no longer than a first boot takes; one that does not exist is given up."""
    booting = replace(HOST, state=InstanceState.PROVISIONING, endpoint={"id": "i-1"})
    assert judged(["a"], since(NOW - FIRST_BOOT_MS + 1, booting)).leaving == ()
    assert judged(["a"], since(NOW - FIRST_BOOT_MS, booting)).leaving == ("a",)
    longer = FIRST_BOOT_MS + IDLE
    assert judged(["a"], since(NOW - FIRST_BOOT_MS, booting), idle_ms=longer).leaving == ()
    refused = replace(booting, endpoint={})
    assert judged(["a"], since(NOW - IDLE, refused)).leaving == ("a",)


@pytest.mark.parametrize("set_back_ms", [1, 10 * IDLE])
def test_a_clock_that_is_set_back_begins_anew(set_back_ms):
    """No host stays for hours because its mark is of the future."""
    found = judged(["a"], since(NOW), now_ms=NOW - set_back_ms)
    assert found == IdleHosts(began=("a",), next_at_ms=NOW - set_back_ms + IDLE)


@given(st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(NOW - 2 * IDLE, NOW)))
def test_only_spare_hosts_leave(marks):
    """Whatever the rows say, a host that is not spare stays and loses its mark."""
    hosts = [replace(HOST, uid=uid, idle_since_ms=mark) for uid, mark in marks.items()]
    found = judged(["a"], *hosts)
    assert set(found.leaving) | set(found.began) <= {"a"}
    assert set(found.ended) == {uid for uid, mark in marks.items() if mark is not None} - {"a"}
