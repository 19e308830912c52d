"""How many hosts waiting runs need, and which hosts no run needs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.model.decision import Decisions
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.scaling import ScaleRequest, Scaling
from unit.schedule.cases import codes, decide, details, gpus, held, instance, need, run, started

HOST = instance("new", "gpus", state=InstanceState.UNCREATED, gpus=gpus(1), boot_id="")


def limits(least=0, most=3, places=(), host=HOST, **more):
    return Scaling(least, most, 300_000, frozenset(places), replace(host, **more))


def scaled(runs, instances=(), *, least=0, most=3, **queue):
    places = {one.number for one in instances if one.fleet == "gpus"}
    known = {"gpus": limits(least, most, places), **queue.pop("scaling", {})}
    return decide(runs, instances, scaling=known, **queue)


def host(number, state=InstanceState.READY, **more):
    values = {"gpus": gpus(1), **more}
    return instance(f"gpus-{number}", "gpus", number, state=state, **values)


def gpu_run(name, number=1, **more):
    return run(name, number, need(cpu=1, gpus=1), **more)


def asked(decisions: Decisions) -> dict[str, int]:
    return {one.fleet: one.hosts for one in decisions.scale}


def test_a_burst_is_one_request():
    """Fifty runs that fit on hosts of one GPU each ask for as many hosts at once, up to the most."""
    runs = [gpu_run(f"r{n}", n) for n in range(50)]
    decisions = scaled(runs, most=40)
    assert decisions.scale == (ScaleRequest("gpus", 40, 40),)
    assert details(decisions, "r0") == ["waits for 1 host that fleet gpus will create"]
    assert "fleet gpus has at most 40 hosts" in details(decisions, "r49")


def test_runs_share_the_hosts_that_they_ask_for():
    """As many runs count on one host as fit on it."""
    runs = [run(f"r{n}", n, need(cpu=4, memory=8)) for n in range(5)]
    assert asked(scaled(runs)) == {"gpus": 3}
    assert asked(scaled(runs[:2])) == {"gpus": 1}


def test_hosts_that_are_being_created_are_counted():
    """A host that is being created is not asked for again, and the runs say that they wait for it."""
    coming = host(0, InstanceState.PROVISIONING, boot_id="")
    decisions = scaled([gpu_run("a"), gpu_run("b", 2)], [coming])
    assert asked(decisions) == {"gpus": 1}
    assert details(decisions, "a") == ["waits for 1 host that fleet gpus is creating"]
    assert scaled([gpu_run("a")], [coming]).scale == ()


def test_runs_reuse_before_they_buy():
    """A host of another fleet that is being created is waited for, whichever fleet comes first by name."""
    coming = instance("own-0", "own", state=InstanceState.PROVISIONING, gpus=gpus(1))
    assert scaled([gpu_run("a", fleets=("gpus", "own"))], [coming]).scale == ()


def test_the_cheaper_fleet_creates_the_host():
    """Of fleets that could create a host for a run, the one with the lower price does, and an unknown one is the last."""
    cheap = {
        "cheap": limits(endpoint={"price_micros": 1}),
        "dear": limits(endpoint={"price_micros": 2}),
    }
    assert asked(scaled([gpu_run("a")], scaling=cheap)) == {"cheap": 1}
    assert asked(scaled([gpu_run("a", fleets=("gpus", "dear"))], scaling=cheap)) == {"dear": 1}


@pytest.mark.parametrize("state", [InstanceState.UNREACHABLE, InstanceState.SUSPECT])
def test_a_host_that_takes_no_jobs_is_not_counted_on(state):
    """Another one is created beside a host that may stay away."""
    assert asked(scaled([gpu_run("a")], [host(0, state)])) == {"gpus": 1}
    assert scaled([gpu_run("a")], [host(0, InstanceState.RECOVERING)]).scale == ()


def test_a_host_that_cannot_be_created_now_is_named():
    """A run that waits for it has the reason that the host has, and no further host is asked for."""
    waiting = "waiting for capacity until 12:00"
    fields = {"provider": "aws", "endpoint": {"refused_since_ms": 1}, "install_id": ""}
    refused = host(0, InstanceState.PROVISIONING, message=waiting, **fields)
    decisions = scaled([gpu_run("a")], [refused])
    assert decisions.scale == ()
    assert details(decisions, "a") == [f"waits for host gpus-0: {waiting}"]
    failed = replace(refused, endpoint={}, message="AWS refused the credentials")
    decisions = scaled([gpu_run("a")], [failed])
    assert details(decisions, "a") == [
        "waits for host gpus-0: not created: AWS refused the credentials"
    ]
    many = [replace(refused, name=f"gpus-{n}", uid=f"u{n}", number=n) for n in range(2)]
    assert details(scaled([gpu_run("a", nodes=2)], many), "a") == [
        f"waits for hosts gpus-0, gpus-1: {waiting}"
    ]


def test_a_run_that_fleets_without_hosts_keep_waiting():
    """Each fleet that it may use has `nodes: 0`: only another apply ends its wait."""
    named, free = gpu_run("a", fleets=("gpus",)), gpu_run("b", 2)
    decisions = decide([named, free], [], hostless_fleets=frozenset({"gpus"}))
    assert not decisions.impossible
    for name in ("a", "b"):
        assert codes(decisions, name) == ["no-hosts"]
        assert details(decisions, name) == ["fleet gpus has `nodes: 0`"]
    both = gpu_run("a", fleets=("gpus", "later"))
    decisions = decide([both], [], hostless_fleets=frozenset({"gpus"}))
    assert codes(decisions, "a") == ["fleet-not-ready"]
    decisions = decide([free], [host(0)], hostless_fleets=frozenset({"none"}))
    assert [one.run_uid for one in decisions.starts] == [free.uid]


def test_no_host_is_created_for_a_run_that_reuses():
    """`creation_policy: reuse` waits for hosts that others have brought in."""
    decisions = scaled([gpu_run("a", creation_policy="reuse")])
    assert decisions.scale == ()
    assert not decisions.impossible
    assert "`creation_policy: reuse` lets no host be created for it" in details(decisions, "a")
    coming = host(0, InstanceState.PROVISIONING)
    decisions = scaled([gpu_run("a", creation_policy="reuse")], [coming])
    assert codes(decisions, "a") == ["scaling"]


def test_a_run_that_something_else_keeps_asks_for_no_host():
    """A run that its document stops needs none."""
    assert scaled([gpu_run("a", wanted="stopped")]).scale == ()


def test_no_host_is_created_for_an_owner_whom_none_has():
    """The first host shows the accounts of the next ones; the reason names the one that exists."""
    fields = {"provider": "aws", "run_as": "owner"}
    there = host(0, **fields, agent_account="root", accounts=frozenset({"ubuntu"}))
    runs = [replace(gpu_run(f"r{n}", n), owner="ada") for n in range(2)]
    fleets = {"gpus": limits(places={0}, **fields)}
    decisions = scaled(runs, [there], scaling=fleets)
    assert decisions.scale == ()
    assert not decisions.impossible
    assert details(decisions, "r0") == ["account ada does not exist on host gpus-0"]
    assert asked(scaled(runs, scaling=fleets)) == {"gpus": 2}


def test_a_run_that_fits_no_new_host_is_impossible():
    """It ends at once and asks for nothing, and one on more nodes than the fleet may have does too."""
    large, wide = run("large", 1, need(gpus=2)), gpu_run("wide", 2, nodes=4)
    decisions = scaled([large, wide])
    assert {one.run_uid for one in decisions.impossible} == {large.uid, wide.uid}
    assert decisions.scale == ()


def test_a_gang_asks_for_what_it_lacks():
    """Free hosts of the fleet count, and those that another gang counts on do not."""
    gangs = [gpu_run("a", 1, nodes=2), gpu_run("b", 2, nodes=2)]
    decisions = scaled(gangs, [host(0)], most=8)
    assert asked(decisions) == {"gpus": 3}
    assert details(decisions, "a") == ["waits for 1 host that fleet gpus will create"]
    assert details(decisions, "b") == ["waits for 2 hosts that fleet gpus will create"]
    assert decisions.spare == ()


def test_a_gang_that_needs_a_busy_host_asks_for_the_others():
    """All hosts that the fleet may have are needed, and one of them works for another run still."""
    busy = host(0)
    decisions = scaled(
        [gpu_run("a", nodes=3)], [busy], allocations=[held(busy, cpu=8, gpus=("GPU-0",))]
    )
    assert asked(decisions) == {"gpus": 2}


def test_the_least_number_is_asked_for_without_a_run():
    """A fleet that has lost hosts gets them again."""
    assert scaled([], [host(1)], least=2).scale == (ScaleRequest("gpus", 1, 0),)


def test_spare_hosts():
    """Idle hosts beyond the least number are spare, the highest number first; a busy or drained one is not."""
    hosts = [host(0), host(1), host(2), host(3, drained="for a look"), host(4)]
    busy = held(hosts[2], cpu=1)
    decisions = scaled([], hosts, least=1, most=9, allocations=[busy])
    assert decisions.spare == ("uid-gpus-4", "uid-gpus-1", "uid-gpus-0")
    assert scaled([], hosts, least=4, most=9, allocations=[busy]).spare == ("uid-gpus-4",)


def test_a_host_that_a_run_starts_on_or_waits_for_is_not_spare():
    """The run that starts takes it, and one that waits for a host that comes keeps that."""
    hosts = [host(0), host(1, InstanceState.PROVISIONING)]
    decisions = scaled([gpu_run("a"), gpu_run("b", 2)], hosts)
    assert started(decisions) == ["a"]
    assert decisions.spare == ()
    assert scaled([], hosts).spare == ("uid-gpus-1", "uid-gpus-0")


def test_a_fleet_of_a_fixed_number_is_left_alone():
    """Its hosts are nobody's but the plan's."""
    assert decide([gpu_run("a")], [host(0)]).spare == ()
    assert decide([gpu_run("a", nodes=2)], [host(0)]).scale == ()


# -- promises -----------------------------------------------------------------------------


@st.composite
def worlds(draw):
    """A fleet with limits, some hosts in various states, and runs of various needs."""
    least = draw(st.integers(0, 3))
    most = draw(st.integers(max(least, 1), 6))
    states = [
        InstanceState.READY, InstanceState.PROVISIONING, InstanceState.UNREACHABLE,
        InstanceState.RECOVERING, InstanceState.TERMINATING,
    ]  # fmt: skip
    numbers = draw(st.lists(st.integers(0, most - 1), unique=True))
    hosts = [host(number, draw(st.sampled_from(states))) for number in sorted(numbers)]
    runs = [
        run(
            f"r{n}", n, need(cpu=draw(st.integers(1, 8)), gpus=draw(st.integers(0, 1))),
            nodes=draw(st.sampled_from([1, 1, 1, 2, 3])),
        )
        for n in range(draw(st.integers(0, 8)))
    ]  # fmt: skip
    busy = [
        held(one, f"other{one.number}", cpu=8, gpus=("GPU-0",))
        for one in hosts
        if one.state is not InstanceState.PROVISIONING and draw(st.booleans())
    ]
    return least, most, hosts, runs, busy


def _created(hosts: list[Instance], decisions: Decisions, most: int) -> list[Instance]:
    taken = {one.number for one in hosts}
    free = [number for number in range(most) if number not in taken]
    count = sum(one.hosts for one in decisions.scale)
    return [*hosts, *(host(number, InstanceState.PROVISIONING) for number in free[:count])]


@given(worlds())
def test_the_limits_hold(world):
    """No fleet is asked to have more than its most, and no spare host has a job, is leaving or is one of the least."""
    least, most, hosts, runs, busy = world
    decisions = scaled(runs, hosts, least=least, most=most, allocations=busy)
    later = _created(hosts, decisions, most)
    assert len(later) <= most or not decisions.scale
    leaving = {one.uid for one in hosts if one.state is InstanceState.TERMINATING}
    used = {one.instance_uid for one in busy} | {
        share.instance_uid for start in decisions.starts for share in start.shares
    }
    assert not set(decisions.spare) & (used | leaving)
    assert len(hosts) - len(leaving) - len(decisions.spare) >= min(least, len(hosts) - len(leaving))


@given(worlds())
def test_what_was_asked_for_is_asked_for_once(world):
    """Once the hosts that a round asks for are being created, the next round asks for no more, and spares none of them."""
    least, most, hosts, runs, busy = world
    decisions = scaled(runs, hosts, least=least, most=most, allocations=busy)
    gone = {start.run_uid for start in decisions.starts} | {
        one.run_uid for one in decisions.impossible
    }
    allotted = [
        held(one, f"start{one.number}", cpu=8, gpus=("GPU-0",))
        for one in hosts
        for start in decisions.starts
        for share in start.shares
        if share.instance_uid == one.uid
    ]
    waiting = [one for one in runs if one.uid not in gone]
    later = _created(hosts, decisions, most)
    again = scaled(waiting, later, least=least, most=most, allocations=[*busy, *allotted])
    if not allotted:
        assert again.scale == ()
        new = {one.uid for one in later} - {one.uid for one in hosts}
        if len(later) > least:
            assert not new & set(again.spare)
