"""What holds of every round, whatever waits and whatever is free."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from fleetform.model.decision import Decisions
from fleetform.model.instance import Allocation, Instance, InstanceState
from fleetform.model.run import GpuRequirement, Requirement, Run
from fleetform.schedule import Policies, Queue, schedule
from unit.schedule.cases import GB, NOW, gpus, held, instance, need, run, with_gpus

REQUIREMENTS = st.builds(
    lambda cpu, memory, disk, count, name: need(
        cpu,
        memory,
        disk,
        gpu=GpuRequirement(count, None, (name,) if name else ()) if count else None,
    ),
    st.sampled_from([None, 1, 2, 3, 8]),
    st.sampled_from([None, 1, 16, 40]),
    st.sampled_from([None, 10, 150]),
    st.sampled_from([0, 0, 1, 2]),
    st.sampled_from(["", "A100", "T4"]),
)

RUNS = st.lists(
    st.tuples(
        REQUIREMENTS,
        st.sampled_from([1, 1, 1, 2, 3]),
        st.sampled_from([0, 0, 5, 50]),
        st.sampled_from([(), ("a",), ("b", "a"), ("c",)]),
        st.sampled_from([None, None, 10, 1000]),
    ),
    max_size=12,
).map(
    lambda many: tuple(
        run(
            f"r{n}",
            n,
            requirement,
            nodes=nodes,
            priority=priority,
            fleets=fleets,
            max_duration_seconds=duration,
        )
        for n, (requirement, nodes, priority, fleets, duration) in enumerate(many)
    )
)

CARDS = st.sampled_from([(), gpus(2), (*gpus(2), *gpus(4, "Tesla T4", 15)[2:])])

HOSTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from(
            [InstanceState.READY] * 4 + [InstanceState.UNREACHABLE, InstanceState.TERMINATING]
        ),
        st.sampled_from([("exact", 1), ("exact", 1), ("whole", 1), ("blocks", 2)]),
        CARDS,
        st.integers(0, 8),
    ),
    max_size=6,
).map(
    lambda many: [
        (
            with_gpus(
                instance(f"h{n}", fleet, n, state=state, sharing=sharing, blocks=blocks), *cards
            ),
            used,
        )
        for n, (fleet, state, (sharing, blocks), cards, used) in enumerate(many)
    ]
)


def occupied(hosts: list[tuple[Instance, int]]) -> list[Allocation]:
    """What other runs hold: CPUs with their memory, as the scheduler would have given it."""
    return [
        held(host, cpu=used, memory_bytes=used * 8 * GB)
        for host, used in hosts
        if used and host.sharing == "exact"
    ]


def decide(
    runs: tuple[Run, ...], hosts: list[tuple[Instance, int]], *, backfill: bool = True
) -> tuple[Decisions, list[Allocation]]:
    allocations = occupied(hosts)
    ends = {"uid-other": NOW + 500_000} if len(hosts) % 2 else {}
    queue = Queue(runs, allocations=allocations, ends_at_ms=ends)
    instances = [host for host, _ in hosts]
    return schedule(queue, instances, Policies(backfill), now_ms=NOW), allocations


def allotted(decisions: Decisions) -> list[Allocation]:
    return [
        Allocation(
            share.instance_uid,
            f"{placement.run_uid}/{share.rank}",
            placement.run_uid,
            share.cpu_millicores,
            share.memory_bytes,
            share.disk_bytes,
            share.gpus,
            share.blocks,
        )
        for placement in decisions.starts
        for share in placement.shares
    ]


@settings(deadline=None)
@given(RUNS, HOSTS, st.booleans())
def test_capacity_is_never_exceeded_and_no_unit_is_given_twice(runs, hosts, backfill):
    """CPU, memory, disk, blocks and every GPU of each instance."""
    decisions, before = decide(runs, hosts, backfill=backfill)
    taken = [*before, *allotted(decisions)]
    for host, _ in hosts:
        here = [one for one in taken if one.instance_uid == host.uid]
        assert sum(one.cpu_millicores for one in here) <= host.cpu_millicores
        assert sum(one.memory_bytes for one in here) <= host.memory_bytes
        assert sum(one.disk_bytes for one in here) <= host.disk_bytes
        assert sum(one.blocks for one in here) <= host.blocks
        cards = Counter(uuid for one in here for uuid in one.gpus)
        assert set(cards) <= {gpu.uuid for gpu in host.gpus}
        assert all(count == 1 for count in cards.values())


@settings(deadline=None)
@given(RUNS, HOSTS, st.booleans())
def test_gangs_are_whole_on_distinct_ready_instances_of_one_allowed_fleet(runs, hosts, backfill):
    """Every placement has a share for each node, and none where it may not be."""
    decisions, _ = decide(runs, hosts, backfill=backfill)
    by_uid = {host.uid: host for host, _ in hosts}
    wanted = {run.uid: run for run in runs}
    for placement in decisions.starts:
        template = wanted[placement.run_uid].template
        chosen = [by_uid[share.instance_uid] for share in placement.shares]
        assert [share.rank for share in placement.shares] == list(range(template.nodes))
        assert len({host.uid for host in chosen}) == template.nodes
        assert {host.state for host in chosen} == {InstanceState.READY}
        assert len({host.fleet for host in chosen}) == 1
        assert not template.fleets or chosen[0].fleet in template.fleets


@settings(deadline=None)
@given(RUNS, HOSTS)
def test_every_run_has_exactly_one_answer(runs, hosts):
    """Started, waiting with a reason, impossible with a reason: never two, never none."""
    decisions, _ = decide(runs, hosts)
    answers = Counter(
        [
            *(placement.run_uid for placement in decisions.starts),
            *decisions.waiting,
            *(one.run_uid for one in decisions.impossible),
            *decisions.aborts,
        ]
    )
    assert answers == Counter(run.uid for run in runs)
    assert all(decisions.waiting.values())
    assert all(one.reasons for one in decisions.impossible)


@settings(deadline=None)
@given(RUNS, HOSTS, st.integers())
def test_order_of_the_inputs_is_irrelevant(runs, hosts, seed):
    """Shuffled runs, instances and allocations give the same value."""
    shuffled = random.Random(seed)
    allocations = occupied(hosts)
    instances = [host for host, _ in hosts]
    first = schedule(Queue(runs, allocations=allocations), instances, Policies(), now_ms=NOW)
    for many in (mixed := [list(runs), instances.copy(), allocations.copy()]):
        shuffled.shuffle(many)
    queue = Queue(tuple(mixed[0]), allocations=mixed[2])
    assert schedule(queue, mixed[1], Policies(), now_ms=NOW) == first


@settings(deadline=None)
@given(RUNS, HOSTS, st.booleans())
def test_priority_is_never_inverted_between_runs_alike(runs, hosts, backfill):
    """Of two runs that ask for the same, the one that is behind never starts alone."""
    decisions, _ = decide(runs, hosts, backfill=backfill)
    begun = {placement.run_uid for placement in decisions.starts}
    order = sorted(runs, key=lambda run: (-run.template.priority, run.number))
    for place, behind in enumerate(order):
        if behind.uid in begun:
            alike = replace(behind.template, name="", priority=0)
            assert all(
                ahead.uid in begun
                for ahead in order[:place]
                if replace(ahead.template, name="", priority=0) == alike
            )


@settings(deadline=None)
@given(RUNS, HOSTS)
def test_a_second_round_starts_nothing_more(runs, hosts):
    """What was decided is all that could be: the round rests."""
    decisions, before = decide(runs, hosts)
    begun = {placement.run_uid: placement for placement in decisions.starts}
    rest = tuple(run for run in runs if run.uid not in begun)
    ends = {"uid-other": NOW + 500_000} if len(hosts) % 2 else {}
    ends |= {
        run.uid: NOW + (run.template.max_duration_seconds + 10) * 1000 + 30_000
        for run in runs
        if run.uid in begun and run.template.max_duration_seconds
    }
    queue = Queue(rest, allocations=[*before, *allotted(decisions)], ends_at_ms=ends)
    again = schedule(queue, [host for host, _ in hosts], Policies(), now_ms=NOW)
    assert not again.starts


@settings(deadline=None)
@given(RUNS, HOSTS)
def test_what_is_called_possible_starts_on_empty_hosts(runs, hosts):
    """A run alone, on idle hosts that are all ready, starts or is impossible: never waits."""
    ready = [
        replace(host, state=InstanceState.READY)
        for host, _ in hosts
        if host.state is not InstanceState.TERMINATING
    ]
    for one in runs:
        decisions = schedule(Queue((one,)), ready, Policies(), now_ms=NOW)
        waits = [reason.code for reasons in decisions.waiting.values() for reason in reasons]
        assert set(waits) <= {"fleet-not-ready"}
        if waits:
            assert not ready or any(
                name not in {host.fleet for host in ready} for name in one.template.fleets
            )


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=30), st.integers(1, 3))
def test_a_large_run_does_not_starve(sizes, hosts_count):
    """However small runs keep arriving, a run for a whole host starts once old work is over."""
    hosts = [instance(f"h{n}", number=n) for n in range(hosts_count)]
    running: list[tuple[int, Allocation]] = []
    large = run("large", 0, Requirement(cpu_min_millicores=8000))
    for moment, size in enumerate([*sizes, *[1] * 12]):
        running = [(end, one) for end, one in running if end > moment]
        small = tuple(
            run(f"s{moment}-{n}", 1 + moment * 10 + n, Requirement(size * 1000)) for n in range(6)
        )
        waiting = (large, *small) if moment >= 2 else small
        queue = Queue(waiting, allocations=[one for _, one in running])
        decisions = schedule(queue, hosts, Policies(), now_ms=NOW + moment)
        if any(placement.run_uid == large.uid for placement in decisions.starts):
            return
        running.extend((moment + 5, one) for one in allotted(decisions))
    raise AssertionError("the large run never started")
