"""One round over plain values: order, room, throttles, dependencies, verdicts, reasons."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from fleetform.model.instance import GpuUse, Instance, InstanceState
from fleetform.model.run import Dependency, GpuRequirement, RunState, RunUid, When
from fleetform.model.scheduler_state import Outcome
from unit.schedule.cases import (
    GB,
    NOW,
    codes,
    decide,
    details,
    gpus,
    held,
    instance,
    need,
    run,
    started,
    with_gpus,
)

# -- order and packing ----------------------------------------------------------------------


def test_priority_comes_before_age():
    """Higher priority starts first, then the older run."""
    runs = [run("old", 1), run("urgent", 2, priority=10), run("new", 3)]
    assert started(decide(runs, [instance("a")])) == ["urgent", "old", "new"]


def test_input_order_is_irrelevant():
    """Runs and instances in any order give the same decisions."""
    runs = [run("a", 1, need(cpu=3)), run("b", 2, need(cpu=6)), run("c", 3, need(cpu=2))]
    hosts = [instance("x", number=0), instance("y", number=1, cpu_millicores=4000)]
    results = {
        repr(decide(some, others))
        for some in itertools.permutations(runs)
        for others in itertools.permutations(hosts)
    }
    assert len(results) == 1


def test_best_fit_fills_the_fullest_host_that_has_room():
    """A small run goes where least would be left over, so that a whole host stays free."""
    full, empty = instance("full", number=1), instance("empty", number=0)
    decisions = decide([run("a")], [full, empty], allocations=[held(full, cpu=7)])
    assert decisions.starts[0].shares[0].instance_uid == full.uid


def test_runs_without_gpus_keep_off_gpu_hosts():
    """A run that needs no GPU takes the host without any, though it has more CPUs free."""
    gpu_host = with_gpus(instance("g", number=0, cpu_millicores=2000), *gpus(4))
    plain = instance("p", number=1)
    decisions = decide([run("a")], [gpu_host, plain])
    assert decisions.starts[0].shares[0].instance_uid == plain.uid


def test_a_share_names_what_was_seen_of_its_instance():
    """Generation and boot of the instance travel with the placement."""
    share = decide([run("a", generation=7)], [instance("h", generation=5)]).starts[0].shares[0]
    assert (share.instance_generation, share.boot_id) == (5, "boot-h")


@pytest.mark.parametrize("attempt", [0, 1, 4])
def test_the_attempt_to_place_is_the_latest(attempt: int):
    """A run without an attempt yet gets its first."""
    placement = decide([run("a", attempt=attempt)], [instance("h")]).starts[0]
    assert placement.attempt == max(attempt, 1)


@pytest.mark.parametrize("state", list(InstanceState))
def test_only_ready_instances_take_jobs(state: InstanceState):
    """Every other state keeps the run waiting and never ends it."""
    decisions = decide([run("a")], [instance("h", state=state)])
    assert started(decisions) == (["a"] if state is InstanceState.READY else [])
    assert not decisions.impossible
    if state is not InstanceState.READY:
        assert codes(decisions, "a") == ["fleet-not-ready"]


def test_a_run_goes_to_the_fleets_it_names():
    """`fleets` narrows the choice; a fleet without instances is waited for."""
    hosts = [instance("a", "one"), instance("b", "two", number=0)]
    decisions = decide([run("r", fleets=("two",)), run("s", 2, fleets=("three",))], hosts)
    assert decisions.starts[0].shares[0].instance_uid == "uid-b"
    assert details(decisions, "s") == ["fleet three has no instance yet"]


def test_a_volume_draws_its_run_to_its_fleet():
    """A run goes where its volume lies, and one that may not is ended."""
    from fleetform.model.run import VolumeMount

    hosts = [instance("a", "one"), instance("b", "two")]
    mount = (VolumeMount("data", "/data"),)
    runs = [run("r", volumes=mount), run("s", 2, volumes=mount, fleets=("one",))]
    decisions = decide(runs, hosts, volume_fleets={"data": "two"})
    assert decisions.starts[0].shares[0].instance_uid == "uid-b"
    assert decisions.impossible[0].reasons == (
        "volume data is on fleet two, which `fleets` of the run excludes",
    )


def test_a_run_goes_to_the_hosts_that_have_its_volumes():
    """It waits for those although others are free, and is not given up: the list may grow."""
    from fleetform.model.run import VolumeMount

    hosts = [instance("a", "one"), instance("b", "one", number=1)]
    data, other = VolumeMount("data", "/data"), VolumeMount("other", "/other")
    runs = [
        run("r", 1, need(cpu=8), volumes=(data,)),
        run("s", 2, need(cpu=8), volumes=(data,)),
        run("t", 3, need(cpu=8)),
        run("u", 4, volumes=(data, other)),
        run("v", 5, nodes=2, volumes=(data,)),
    ]
    decisions = decide(
        runs,
        hosts,
        volume_fleets={"data": "one", "other": "one"},
        volume_hosts={"data": frozenset({"b"}), "other": frozenset({"a"})},
    )
    assert {one.run_uid: one.shares[0].instance_uid for one in decisions.starts} == {
        "uid-r": "uid-b",
        "uid-t": "uid-a",
    }
    assert details(decisions, "s")[-1] == "volume data: only b has it"
    assert details(decisions, "u") == ["volume data: only b has it", "volume other: only a has it"]
    assert "volume-hosts" in codes(decisions, "v")
    assert not decisions.impossible


def test_a_run_goes_to_the_fleets_of_its_queue():
    """A queue narrows the choice, together with the run's own `fleets`; a run waits only there."""
    hosts = [instance("a", "one"), instance("b", "two"), instance("c", "three")]
    queues = {"batch": ("one", "two"), "any": ()}
    runs = [
        run("r", queue="batch", fleets=("two", "three")),
        run("s", 2, queue="any", fleets=("three",)),
        run("t", 3, need(cpu=8), queue="batch"),
        run("u", 4, need(cpu=8), queue="batch"),
    ]
    decisions = decide(runs, hosts, queue_fleets=queues)
    assert started(decisions) == ["r", "s", "t"]
    assert [one.shares[0].instance_uid for one in decisions.starts] == ["uid-b", "uid-c", "uid-a"]
    assert details(decisions, "u")[-1] == "queue batch allows fleets one and two only"
    assert codes(decisions, "u") == ["resources", "resources", "queue"]


def test_the_default_queue_is_for_runs_that_name_none():
    """A run without a queue goes where the default one leads, and any other queue outranks it."""
    hosts = [instance("a", "one"), instance("b", "two")]
    runs = [run("r"), run("s", 2, queue="other")]
    decisions = decide(
        runs, hosts, queue_fleets={"usual": ("two",), "other": ("one",)}, default_queue="usual"
    )
    assert [one.shares[0].instance_uid for one in decisions.starts] == ["uid-b", "uid-a"]


def test_a_run_is_unschedulable_on_the_fleets_of_its_queue():
    """What other fleets have does not count, and a queue without a common fleet ends the run."""
    from fleetform.model.run import VolumeMount

    hosts = [instance("a", "one"), replace(instance("b", "two"), cpu_millicores=64_000)]
    runs = [
        run("r", 1, need(cpu=32), queue="batch"),
        run("s", 2, queue="batch", fleets=("two",)),
        run("t", 3, queue="batch", volumes=(VolumeMount("data", "/data"),)),
    ]
    decisions = decide(runs, hosts, queue_fleets={"batch": ("one",)}, volume_fleets={"data": "two"})
    assert {one.run_uid: one.reasons for one in decisions.impossible} == {
        "uid-r": ("needs 32 CPUs; the largest instance of fleet one has 8 CPUs",),
        "uid-s": ("queue batch allows fleet one only, and `fleets` of the run names two",),
        "uid-t": ("volume data is on fleet two, which queue batch excludes",),
    }


def test_a_run_waits_for_a_queue_that_is_not_applied():
    """A run whose queue the ledger does not have is neither placed nor given up."""
    decisions = decide([run("r", queue="batch")], [instance("a")])
    assert details(decisions, "r") == ["queue batch has not been applied"]
    assert not decisions.impossible


def test_nobody_is_placed_with_a_volume_that_is_about_to_go():
    """Nor is room held for them: whoever is behind them in the queue starts."""
    from fleetform.model.run import VolumeMount

    first = run("r", priority=9, volumes=(VolumeMount("data", "/data"),))
    decisions = decide([first, run("s", 2)], [instance("a")], leaving_volumes=frozenset({"data"}))
    assert started(decisions) == ["s"]
    assert codes(decisions, "r") == ["volume-leaving"]
    assert details(decisions, "r") == ["volume data is being removed by an apply"]


@pytest.mark.parametrize("sharing", ["exact", "blocks", "whole"])
def test_a_disk_of_unknown_size_is_not_counted(sharing):
    """A host whose disk nobody has measured takes jobs that ask for disk, one after another."""
    host = instance("a", disk_bytes=0, sharing=sharing, blocks=4)
    holder = [held(host, disk_bytes=500 * GB)] if sharing == "exact" else []
    runs = [run("r", requirement=need(cpu=2, disk=300))]
    assert started(decide(runs, [host], allocations=holder)) == ["r"]


# -- gangs ----------------------------------------------------------------------------------


def test_a_gang_takes_distinct_instances():
    """All ranks start in one placement, each on a host of its own."""
    hosts = [instance(f"h{n}", number=n) for n in range(3)]
    (placement,) = decide([run("g", nodes=3)], hosts).starts
    assert [share.rank for share in placement.shares] == [0, 1, 2]
    assert len({share.instance_uid for share in placement.shares}) == 3


def test_a_gang_starts_whole_or_not_at_all():
    """One host too few, and no rank starts."""
    hosts = [instance(f"h{n}", number=n) for n in range(3)]
    decisions = decide(
        [run("g", 1, need(cpu=8), nodes=3)], hosts, allocations=[held(hosts[0], cpu=1)]
    )
    assert not decisions.starts
    assert details(decisions, "g") == [
        "needs 3 instances at once; 2 of 3 of fleet local have room now"
    ]


def test_a_gang_stays_within_one_fleet():
    """Two fleets with one host each do not make room for a gang of two."""
    decisions = decide([run("g", nodes=2)], [instance("a", "one"), instance("b", "two")])
    assert decisions.impossible[0].reasons == (
        "needs 2 instances at once; fleet one has 1",
        "needs 2 instances at once; fleet two has 1",
    )


# -- what keeps a run -----------------------------------------------------------------------


def test_concurrency_counts_places_in_use_and_those_given_now():
    """Of a group with a limit of two and one running, one more starts."""
    runs = [run(f"r{n}", n, concurrency_group="g", concurrency_limit=2) for n in range(3)]
    decisions = decide(runs, [instance("h")], concurrency={"g": 1})
    assert started(decisions) == ["r0"]
    assert details(decisions, "r1") == ["concurrency limit reached: 2 of 2 in group g"]


def test_not_before_waits_and_says_when():
    """A run is not placed before its time, and the round is due then."""
    decisions = decide([run("r", not_before_ms=NOW + 12_000)], [instance("h")])
    assert decisions.next_at_ms == NOW + 12_000
    assert details(decisions, "r") == ["starts in 12s at the earliest"]


@pytest.mark.parametrize(("begun_ms", "waits"), [(NOW - 1, True), (NOW, True), (NOW + 1, False)])
def test_a_delay_that_begins_later_than_now_is_over(begun_ms: int, waits: bool):
    """A clock that was set back by an hour makes no delay of seconds an hour long."""
    delayed = run("r", not_before_ms=NOW + 3600_000)
    decisions = decide([delayed], [instance("h")], delayed_since={delayed.uid: begun_ms})
    assert bool(decisions.starts) is not waits


def test_a_stopped_run_waits_whatever_else_holds():
    """`state: stopped` keeps a run from starting and from being ended."""
    runs = [run("r", wanted="stopped"), run("s", 2, need(cpu=99), wanted="stopped")]
    decisions = decide(runs, [instance("h")])
    assert not decisions.starts
    assert not decisions.impossible
    assert codes(decisions, "r") == ["stopped"]


def test_an_earlier_run_of_the_name_goes_first():
    """A rerun waits until its predecessor is over."""
    from dataclasses import replace

    later = replace(run("r", 2), after_uid="uid-earlier")
    assert not decide([later], [instance("h")], unfinished=frozenset({"uid-earlier"})).starts
    assert decide([later], [instance("h")]).starts


def test_all_reasons_are_given_at_once():
    """Dependency, time, throttle and room are all told to one run."""
    host = instance("h")
    waiting = run(
        "r",
        1,
        need(cpu=4),
        depends_on=(Dependency("up"),),
        not_before_ms=NOW + 1,
        concurrency_group="g",
        concurrency_limit=1,
    )
    decisions = decide(
        [waiting],
        [host],
        outcomes={"up": Outcome(RunState.RUNNING, "", "", True)},
        concurrency={"g": 1},
        allocations=[held(host, cpu=6)],
    )
    assert codes(decisions, "r") == ["dependency", "not-before", "concurrency", "resources"]


def test_reasons_are_shared_between_runs_alike():
    """Ten thousand that wait for the same have one tuple."""
    runs = [run(f"r{n}", n, need(cpu=8)) for n in range(50)]
    decisions = decide(runs, [instance("h")])
    assert len({id(reasons) for reasons in decisions.waiting.values()}) == 1


# -- dependencies ---------------------------------------------------------------------------

MET, OPEN, NEVER = "met", "open", "never"

TABLE = {
    (RunState.RUNNING, True): (OPEN, OPEN, OPEN, MET),
    (RunState.PENDING, False): (OPEN, OPEN, OPEN, OPEN),
    (RunState.UNKNOWN, True): (OPEN, OPEN, OPEN, MET),
    (RunState.DONE, True): (MET, NEVER, MET, MET),
    (RunState.FAILED, True): (NEVER, MET, MET, MET),
    (RunState.STOPPED, True): (NEVER, MET, MET, MET),
    (RunState.STOPPED, False): (NEVER, MET, MET, NEVER),
    (RunState.ABORTED, False): (NEVER, MET, MET, NEVER),
}


@pytest.mark.parametrize(("state", "was_started"), TABLE)
@pytest.mark.parametrize("when", list(When))
def test_each_state_meets_each_condition_or_not(state: RunState, was_started: bool, when: When):
    """The table of upstream states against `when`."""
    expected = TABLE[state, was_started][
        [When.SUCCEEDED, When.FAILED, When.FINISHED, When.STARTED].index(when)
    ]
    decisions = decide(
        [run("r", depends_on=(Dependency("up", when),))],
        [instance("h")],
        outcomes={"up": Outcome(state, "", "", was_started)},
    )
    seen = MET if decisions.starts else NEVER if decisions.aborts else OPEN
    assert seen == expected


def sweep(*states: RunState) -> dict[str, Outcome]:
    return {
        f"s[{n}]": Outcome(state, "s", str(n), state is not RunState.PENDING)
        for n, state in enumerate(states)
    }


def test_a_sweep_means_all_of_its_elements():
    """It is waited for whole, counted, and given up with its first failure."""
    depends = {"depends_on": (Dependency("s"),)}
    some = decide(
        [run("r", **depends)], [instance("h")], outcomes=sweep(RunState.DONE, RunState.RUNNING)
    )
    assert details(some, "r") == ["waits for all of s to succeed; 1 of 2 have succeeded"]
    bad = decide(
        [run("r", **depends)], [instance("h")], outcomes=sweep(RunState.FAILED, RunState.RUNNING)
    )
    assert bad.aborts == {RunUid("uid-r"): "required all of s to succeed, and s[0] had failed"}
    good = decide(
        [run("r", **depends)], [instance("h")], outcomes=sweep(RunState.DONE, RunState.DONE)
    )
    assert started(good) == ["r"]


def test_each_waits_for_the_element_of_its_own():
    """Element 1 starts though element 0 of the other has failed."""
    runs = [
        run(f"t[{n}]", n, parent="t", element=str(n), depends_on=(Dependency("s", each=True),))
        for n in range(2)
    ]
    decisions = decide(runs, [instance("h")], outcomes=sweep(RunState.FAILED, RunState.DONE))
    assert started(decisions) == ["t[1]"]
    assert list(decisions.aborts) == ["uid-t[0]"]


@pytest.mark.parametrize(
    ("states", "need_all", "expected"),
    [
        ((RunState.DONE, RunState.RUNNING), True, OPEN),
        ((RunState.DONE, RunState.RUNNING), False, MET),
        ((RunState.FAILED, RunState.RUNNING), True, NEVER),
        ((RunState.FAILED, RunState.RUNNING), False, OPEN),
        ((RunState.FAILED, RunState.FAILED), False, NEVER),
        ((RunState.FAILED, RunState.DONE), False, MET),
    ],
)
def test_any_and_all(states: tuple[RunState, ...], need_all: bool, expected: str):
    """`any` needs one, `all` needs every one, and neither waits for what cannot be."""
    names = ("a", "b")
    decisions = decide(
        [run("r", depends_on=tuple(map(Dependency, names)), depends_on_all=need_all)],
        [instance("h")],
        outcomes={
            name: Outcome(state, "", "", True) for name, state in zip(names, states, strict=True)
        },
    )
    assert (MET if decisions.starts else NEVER if decisions.aborts else OPEN) == expected


def test_a_run_that_is_not_there_yet_is_waited_for():
    """A later step of the same apply may still submit it."""
    decisions = decide([run("r", depends_on=(Dependency("up"),))], [instance("h")])
    assert details(decisions, "r") == ["waits for up to succeed; that run does not exist"]


# -- never ----------------------------------------------------------------------------------

IMPOSSIBLE = [
    (need(cpu=9), {}, ["needs 9 CPUs; the largest instance of fleet local has 8 CPUs"]),
    (
        need(cpu=1, memory=128),
        {},
        ["needs 128GB of memory; the largest instance of fleet local has 64GB"],
    ),
    (
        need(cpu=1, disk=300),
        {},
        ["needs 300GB of disk; the largest instance of fleet local has 200GB"],
    ),
    (
        need(cpu=1, gpus=8, gpu_name="A100"),
        {},
        ["fleet local has no GPUs, the run asks for 8 GPUs A100"],
    ),
    (
        need(cpu=9, memory=128),
        {},
        [
            "needs 9 CPUs; the largest instance of fleet local has 8 CPUs",
            "needs 128GB of memory; the largest instance of fleet local has 64GB",
        ],
    ),
    (need(cpu=1), {"nodes": 2}, ["needs 2 instances at once; fleet local has 1"]),
]


@pytest.mark.parametrize(("requirement", "more", "reasons"), IMPOSSIBLE)
@pytest.mark.parametrize(
    "state", [InstanceState.READY, InstanceState.UNREACHABLE, InstanceState.PROVISIONING]
)
def test_what_no_capacity_can_take_is_final_with_all_reasons(requirement, more, reasons, state):
    """Judged against what is declared, whatever state the instances are in."""
    decisions = decide([run("r", 1, requirement, **more)], [instance("h", state=state)])
    assert [list(one.reasons) for one in decisions.impossible] == [reasons]


def test_gpus_of_another_name_are_named():
    """Both sides of it: what the fleet has, and what the run asks for."""
    host = with_gpus(instance("h"), *gpus(4))
    decisions = decide([run("r", 1, need(cpu=1, gpus=1, gpu_name="H100"))], [host])
    assert decisions.impossible[0].reasons == (
        "fleet local has GPUs NVIDIA A100-SXM4-80GB, the run asks for 1 GPU H100",
    )


def test_what_two_hosts_have_apart_is_not_on_one():
    """Each need alone could be met, both together on no instance."""
    hosts = [
        instance("cpu", number=0, cpu_millicores=32_000, memory_bytes=8 * GB),
        instance("mem", number=1, cpu_millicores=2000, memory_bytes=512 * GB),
    ]
    decisions = decide([run("r", 1, need(cpu=16, memory=256))], hosts)
    assert decisions.impossible[0].reasons == (
        "needs 16 CPUs and 256GB of memory on one instance; none of fleet local has all of it",
    )


def test_capacity_that_is_not_known_is_not_held_against_a_fleet():
    """An instance that was never reached and declares nothing may turn out large enough."""
    unseen = instance(
        "h",
        state=InstanceState.PROVISIONING,
        boot_id="",
        cpu_millicores=0,
        memory_bytes=0,
        disk_bytes=0,
    )
    assert codes(decide([run("r", 1, need(cpu=99, gpus=8))], [unseen]), "r") == ["fleet-not-ready"]


def test_what_is_declared_is_known_before_the_host_is():
    """A fleet that declares its CPUs can refuse by them while it is being made."""
    unseen = instance(
        "h",
        state=InstanceState.PROVISIONING,
        boot_id="",
        memory_bytes=0,
        disk_bytes=0,
        declared={"cpu": 8000},
    )
    assert decide([run("r", 1, need(cpu=9))], [unseen]).impossible
    assert not decide([run("r", 1, need(cpu=8, memory=999))], [unseen]).impossible


def test_busy_is_not_impossible():
    """A host that is full now can take the run later."""
    host = instance("h")
    decisions = decide([run("r")], [host], allocations=[held(host, cpu=8)])
    assert details(decisions, "r") == [
        "needs 1 CPU; the most that is free on one instance of fleet local is 0 of 8 CPUs"
    ]


# -- GPUs -----------------------------------------------------------------------------------


def test_gpus_are_allotted_by_uuid_and_by_kind():
    """Free cards of the right model are given in the host's order."""
    cards = (*gpus(1, "Tesla T4", 15), *gpus(3)[1:])
    host = with_gpus(instance("h"), *cards)
    busy = [held(host, gpus=("h/GPU-1",))]
    share = decide([run("r", 1, need(gpus=1, gpu_name="A100"))], [host], allocations=busy)
    assert share.starts[0].shares[0].gpus == ("h/GPU-2",)


def test_gpus_in_use_are_counted_in_the_reason():
    """The sentence says how many of the right kind are free."""
    host = with_gpus(instance("h"), *gpus(4))
    busy = [held(host, gpus=("h/GPU-1", "h/GPU-2"))]
    decisions = decide([run("r", 1, need(gpus=3, gpu_name="A100"))], [host], allocations=busy)
    assert details(decisions, "r") == [
        "needs 3 GPUs A100; the most that is free on one instance of fleet local is 2 of 4"
    ]


def used_outside(host, *numbers):
    """The host, with these of its GPUs used by a process outside fleetform."""
    use = GpuUse(123, "ada", "python")
    cards = [replace(gpu, used_by=use) if gpu.index in numbers else gpu for gpu in host.gpus]
    return replace(host, gpus=tuple(cards))


def test_a_gpu_that_is_used_outside_fleetform_is_not_allotted():
    """Others of the host are, and the reason of who waits names the process."""
    host = used_outside(with_gpus(instance("h"), *gpus(2)), 0)
    runs = [run("a", 1, need(gpus=1)), run("b", 2, need(gpus=1))]
    decisions = decide(runs, [host])
    assert started(decisions) == ["a"]
    assert decisions.starts[0].shares[0].gpus == ("h/GPU-1",)
    assert details(decisions, "b") == [
        "needs 1 GPU; the most that is free on one instance of fleet local is 0 of 2",
        "GPU 0 of host h is used by python (pid 123, user ada) outside fleetform",
    ]


def test_a_gpu_that_is_used_outside_fleetform_is_missing_for_now_only():
    """A run that needs it waits, and holds no host; one without GPUs is told nothing of them."""
    host = used_outside(with_gpus(instance("h"), *gpus(5)), *range(5))
    decisions = decide([run("a", 1, need(gpus=5)), run("b", 2, need(cpu=8)), run("c", 3)], [host])
    assert started(decisions) == ["b"]
    assert not decisions.impossible
    assert details(decisions, "a")[-1] == "2 more GPUs are used outside fleetform"
    assert len(details(decisions, "c")) == 1


def test_a_gpu_with_a_job_that_is_used_outside_fleetform_is_not_free_after_the_job():
    """The job keeps it; no run is promised the GPU at the end of the job."""
    host = used_outside(with_gpus(instance("h"), *gpus(1)), 0)
    decisions = decide(
        [run("r", 1, need(gpus=1))], [host], allocations=[held(host, gpus=("h/GPU-0",))]
    )
    assert started(decisions) == []
    assert details(decisions, "r")[-1].startswith("GPU 0 of host h is used by python")


def test_a_range_allots_its_minimum():
    """`gpu: 1..4` gets one on a shared host."""
    host = with_gpus(instance("h"), *gpus(4))
    decisions = decide([run("r", 1, need(gpu=GpuRequirement(1, 4)))], [host])
    assert len(decisions.starts[0].shares[0].gpus) == 1


def over_ssh(name: str, number: int, *accounts: str) -> Instance:
    """A host whose agent is root, with these accounts."""
    return instance(
        name, "gpu", number, provider="ssh", agent_account="root", accounts=frozenset(accounts)
    )


def test_a_run_starts_where_its_owner_has_an_account():
    """Hosts without it are passed over, however well the run fits there."""
    hosts = [over_ssh("a", 0, "ada"), over_ssh("b", 1, "ada", "bob")]
    owned = [replace(run(name, number), owner="bob") for number, name in enumerate("xy")]
    decisions = decide(owned, hosts)
    assert [one.shares[0].instance_uid for one in decisions.starts] == ["uid-b", "uid-b"]


def test_a_run_waits_for_the_account_of_its_owner():
    """It is not impossible: somebody may create the account, and the reason names host and account."""
    decisions = decide([replace(run("x"), owner="bob")], [over_ssh("a", 0, "ada")])
    assert (codes(decisions, "x"), decisions.impossible) == (["account"], ())
    assert details(decisions, "x") == ["account bob does not exist on host a"]
