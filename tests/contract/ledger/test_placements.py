"""Placements: a gang is reserved whole or not at all, and units are allotted once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from contract.ledgers import (
    GIB,
    Desk,
    carry_out,
    enter,
    fleet_step,
    hello,
    plan_of,
    run_key,
    step,
    submit_step,
    written,
)
from fleetform.agents.protocol.frames import job_digest
from fleetform.agents.protocol.messages import StartJob
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.lifecycle import job_request
from fleetform.model.decision import Finish, Placement, Requeue
from fleetform.model.ports import FenceLost, Ledger
from fleetform.model.run import AttemptState, RunState


def test_single_job_passes_its_commit_point(desk: Desk) -> None:
    """A gang of one is starting as soon as it is reserved, with its generations raised."""
    desk.submit(submit_step("a"))
    before = desk.run("a")
    assert desk.place("a", desk.share(gpus=("GPU-0", "GPU-1"), memory_limited=True))
    run = desk.run("a")
    book = desk.ledger.read_book([run.uid])
    (job,) = book.attempts[run.uid].jobs
    assert book.attempts[run.uid].state is AttemptState.STARTING
    assert (job.state, job.gen, job.boot_id) == (JobState.STARTING, 2, "boot-1")
    assert (job.gpus, job.memory_limited) == (("GPU-0", "GPU-1"), True)
    assert run.generation == before.generation + 1
    (held,) = book.allocations
    assert (held.job_uid, held.cpu_millicores, held.gpus) == (job.uid, 1000, job.gpus)
    live = desk.ledger.read_live().resources[run_key("a")]
    assert live.run is not None
    assert live.run.gpus == 2


def test_gang_is_reserved_whole(two_hosts: Desk) -> None:
    """All ranks are reserved, and none is starting before all are prepared."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2))
    assert desk.place("g", desk.share(0, on=0), desk.share(1, on=1))
    attempt = desk.ledger.read_book().attempts[desk.run("g").uid]
    assert attempt.state is AttemptState.RESERVED
    assert [job.state for job in attempt.jobs] == [JobState.RESERVED] * 2
    assert [job.instance_uid for job in attempt.jobs] == list(desk.instances)


def test_gang_that_misses_leaves_nothing(two_hosts: Desk) -> None:
    """One rank that cannot be reserved leaves the whole gang as it was, and others go on."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2), submit_step("b"))
    wide = desk.share(1, on=1, cpu_millicores=9000)
    before = desk.run("g")
    assert desk.place_all(("g", [desk.share(0), wide]), ("b", [desk.share(0)])) == (False, True)
    assert desk.run("g") == before
    book = desk.ledger.read_book()
    assert len(book.allocations) == 1
    assert {job.state for job in book.attempts[before.uid].jobs} == {JobState.WAITING}


def test_ranks_of_a_gang_go_to_different_hosts(two_hosts: Desk) -> None:
    """Two ranks on one host are no placement, nor is a gang that lacks one."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2))
    assert not desk.place("g", desk.share(0), desk.share(1))
    assert not desk.place("g", desk.share(0))
    assert not desk.place("g", desk.share(0), desk.share(2, on=1))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"instance_generation": 99}, "generation"),
        ({"boot_id": "boot-0"}, "boot"),
        ({"cpu_millicores": 8001}, "cpu"),
        ({"memory_bytes": 65 * GIB}, "memory"),
        ({"disk_bytes": 101 * GIB}, "disk"),
        ({"gpus": ("GPU-9",)}, "unknown gpu"),
        ({"instance_uid": "nobody"}, "unknown instance"),
    ],
)
def test_placement_misses(desk: Desk, change: dict[str, object], why: str) -> None:
    """What the placement believes of its host must be so."""
    desk.submit(submit_step("a"))
    share = desk.share()
    fields = {name: getattr(share, name) for name in share.__slots__}
    assert not desk.place("a", type(share)(**{**fields, **change})), why


def test_units_are_allotted_once(desk: Desk) -> None:
    """A GPU that one job holds is given to another only when its end is proved."""
    desk.submit(submit_step("a"), submit_step("b"))
    share = desk.share(gpus=("GPU-0",))
    assert desk.place_all(("a", [share]), ("b", [share])) == (True, False)
    assert not desk.place("b", share)
    desk.say(desk.record("a", JobState.FINISHED))
    assert desk.place("b", share)


def test_capacity_adds_up_within_a_batch(desk: Desk) -> None:
    """Eight CPUs hold eight jobs of one CPU, however they are handed in."""
    names = [f"r{n}" for n in range(10)]
    desk.submit(*(submit_step(name) for name in names))
    held = desk.place_all(*((name, [desk.share()]) for name in names))
    assert held == (True,) * 8 + (False,) * 2


def test_disk_of_unknown_size_is_not_counted(ledger: Ledger) -> None:
    """A host that reports no size of its disk takes jobs that ask for some, as the scheduler does."""
    desk = Desk.of(ledger)
    seen = hello(desk.instances[0])
    blind = replace(seen, report=replace(seen.report, disk_bytes=0))
    ledger.commit_host(blind, fence=desk.fence, now_ms=desk.now_ms)
    desk.submit(submit_step("a"), submit_step("b"))
    wide = desk.share(disk_bytes=900 * GIB)
    assert desk.place_all(("a", [wide]), ("b", [wide])) == (True, True)


def test_whole_host_takes_one(ledger: Ledger) -> None:
    """On a fleet shared `whole` a second job misses, however small."""
    desk = Desk.of(ledger, sharing="whole")
    desk.submit(submit_step("a"), submit_step("b"))
    assert desk.place("a")
    assert not desk.place("b")


def test_blocks_are_counted(ledger: Ledger) -> None:
    """On a fleet of blocks jobs hold as many as they were given and no more than there are."""
    desk = Desk.of(ledger, sharing="blocks", blocks=4)
    desk.submit(*(submit_step(name) for name in "abc"))
    assert desk.place("a", desk.share(blocks=3))
    assert not desk.place("b", desk.share(blocks=2))
    assert desk.place("c", desk.share(blocks=1))


def test_placement_of_a_changed_run_misses(desk: Desk) -> None:
    """A run that changed since the scheduler saw it is decided anew."""
    desk.submit(submit_step("a"))
    seen = desk.run("a")
    desk.submit(step("run.update", "a", **written({"type": "task", "commands": ["false"]})))
    late = Placement(seen.uid, seen.generation, seen.attempt, (desk.share(),))
    held = desk.ledger.commit_placements([late, late], fence=desk.fence, now_ms=1)
    assert held == (False, False)


def test_leaving_host_takes_no_jobs(two_hosts: Desk) -> None:
    """A host that is to leave the fleet gets no more jobs from the intent on."""
    desk = two_hosts
    desk.submit(submit_step("a"))
    share = desk.share(on=1)
    shrink = fleet_step("local", 1, "fleet.update")
    accepted = enter(desk.ledger, plan_of(desk.ledger, [shrink]))
    desk.ledger.begin_steps(accepted.apply_uid, [shrink], now_ms=1)
    assert not desk.place("a", share)
    assert not desk.place("a", desk.share(on=1))


def test_fence_guards_every_effect(desk: Desk) -> None:
    """Who has been followed by another manager changes nothing any more."""
    desk.submit(submit_step("a"))
    record = desk.record("a", JobState.RUNNING)
    desk.ledger.take_fence(who="next", now_ms=1)
    before = desk.ledger.read_live()
    finish = Finish(RunState.DONE, "", "")
    for attempt in (
        lambda: desk.place("a"),
        lambda: desk.say(record),
        lambda: desk.decide("a", finish),
        lambda: desk.greet(desk.instances[0], boot="boot-2"),
    ):
        with pytest.raises(FenceLost, match="next has fence 2"):
            attempt()
    assert desk.ledger.read_live() == before


def test_nothing_more_is_placed_on_a_fleet_that_goes(desk: Desk) -> None:
    """From the moment a plan is entered its fleets take nothing, though no step has begun."""
    desk.submit(submit_step("a"), submit_step("b"))
    assert desk.place("a")
    removal = plan_of(desk.ledger, [step("fleet.remove", "local")])
    accepted = enter(desk.ledger, removal)
    assert not desk.place("b")
    desk.ledger.finish_apply(accepted.apply_uid, state="interrupted", summary="", now_ms=1)
    assert desk.place("b")


def test_no_run_begins_to_use_a_volume_that_goes(desk: Desk) -> None:
    """From the moment a plan is entered until it is over, though no step has begun; others do."""
    mounts = [{"name": "data", "path": "/d"}]
    desk.submit(submit_step("a", volumes=mounts), submit_step("b"))
    removal = plan_of(desk.ledger, [step("volume.remove", "data", path="/data", fleet="local")])
    accepted = enter(desk.ledger, removal)
    assert desk.ledger.read_book().leaving_volumes == {"data"}
    assert not desk.place("a")
    assert desk.place("b")
    desk.ledger.finish_apply(accepted.apply_uid, state="interrupted", summary="", now_ms=1)
    assert desk.ledger.read_book().leaving_volumes == frozenset()
    assert desk.place("a", desk.share())


def test_no_run_begins_on_a_fleet_that_is_released(desk: Desk) -> None:
    """No fleet would have its jobs."""
    desk.submit(submit_step("a"))
    accepted = enter(desk.ledger, plan_of(desk.ledger, [step("fleet.forget", "local")]))
    assert not desk.place("a")
    desk.ledger.finish_apply(accepted.apply_uid, state="interrupted", summary="", now_ms=1)
    assert desk.place("a")


def test_the_env_of_a_fleet_is_frozen_when_a_job_is_placed(
    two_hosts: Desk, reopen: Callable[[], Ledger]
) -> None:
    """The start of a placed job has the same digest after a change of its fleet; a later attempt differs."""
    desk = two_hosts

    def starts(ledger: Ledger) -> list[StartJob]:
        book = ledger.read_book()
        (run,) = book.runs.values()
        attempt = book.attempts[run.uid]
        return [job_request(run, attempt, job, {}, {}) for job in attempt.jobs]

    def change(**env: str) -> None:
        carry_out(desk.ledger, [fleet_step("local", 2, "fleet.update", env=env)])

    change(CACHE="old")
    desk.submit(submit_step("g", nodes=2, env={"LR": "1"}))
    assert desk.place("g", desk.share(0, on=0), desk.share(1, on=1))
    before = starts(desk.ledger)
    assert [(one.env["CACHE"], one.env["LR"]) for one in before] == [("old", "1")] * 2
    change(CACHE="new")
    again = reopen()
    assert [job_digest(one) for one in starts(again)] == [job_digest(one) for one in before]
    again.close()

    for rank in range(2):
        desk.say(desk.record("g", JobState.FINISHED, rank=rank, exit_code=1), on=rank)
    desk.decide("g", Requeue(0, Cause.EXITED, "exit code 1"))
    assert desk.place("g", desk.share(0, on=0), desk.share(1, on=1))
    assert [one.env["CACHE"] for one in starts(desk.ledger)] == ["new"] * 2


def test_a_gang_keeps_its_master_port(two_hosts: Desk, reopen: Callable[[], Ledger]) -> None:
    """All ranks get it, and the same after a restart; the next attempt gets its own."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2), submit_step("one"))
    assert desk.place_gangs(g=20_007) == (True,)
    assert desk.place("one")

    def ports(ledger: Ledger, name: str) -> list[str | None]:
        book = ledger.read_book()
        uid = desk.run(name).uid
        attempt = book.attempts[uid]
        requests = [job_request(book.runs[uid], attempt, job, {}, {}) for job in attempt.jobs]
        return [one.env.get("FLEETFORM_MASTER_PORT") for one in requests]

    again = reopen()
    assert ports(again, "g") == ports(desk.ledger, "g") == ["20007", "20007"]
    assert ports(again, "one") == [None]
    again.close()
    for rank in range(2):
        desk.say(desk.record("g", JobState.FINISHED, rank=rank, exit_code=1), on=rank)
    desk.decide("g", Requeue(0, Cause.EXITED, "exit code 1"))
    assert desk.place_gangs(g=20_008) == (True,)
    assert ports(desk.ledger, "g") == ["20008", "20008"]
    (history,) = desk.ledger.read_runs(["g"])
    assert [one.master_port for one in history.attempts] == [20_007, 20_008]


def test_a_master_port_is_given_once(two_hosts: Desk) -> None:
    """Another gang gets it when every rank of the first has ended, also if its run is over before that."""
    desk = two_hosts
    desk.submit(*(submit_step(name, nodes=2) for name in "fgh"))
    uid = desk.run("g").uid
    assert desk.place_gangs(g=20_000, h=20_000, f=20_001) == (True, False, True)
    assert desk.ledger.read_book().master_ports == {uid: 20_000, desk.run("f").uid: 20_001}
    desk.say(desk.record("g", JobState.RUNNING), desk.record("g", JobState.FINISHED))
    desk.finish("g", RunState.STOPPED, "superseded")
    assert desk.place_gangs(h=20_000) == (False,)
    assert desk.ledger.read_book([uid]).master_ports == {uid: 20_000}
    desk.say(desk.record("g", JobState.FINISHED, rank=1), on=1)
    assert desk.ledger.read_book([uid]).master_ports == {}
    assert desk.place_gangs(h=20_000) == (True,)
