"""Fleets and volumes: their rows follow what was carried out, and only that."""

from __future__ import annotations

import pytest

from contract.ledgers import (
    GIB,
    Desk,
    carry_out,
    enter,
    fleet_step,
    move_step,
    plan_of,
    step,
    submit_step,
    written,
)
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.apply import StepOutcome
from fleetform.model.instance import InstanceState
from fleetform.model.plan import Predicate
from fleetform.model.ports import Ledger
from fleetform.model.volume import MADE_ON, NOT_ON, volume_hosts
from fleetform.spec.desired import ResourceKey


def test_fleet_gets_instances_with_its_intent(ledger: Ledger) -> None:
    """Instances have rows and uids before anybody makes them, with what the fleet declares."""
    declared = {"local": {"cpu": 4000, "memory": GIB}, "sharing": "blocks", "blocks": 4}
    make = fleet_step("f", 2, **declared)
    accepted = enter(ledger, plan_of(ledger, [make]))
    begun = ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)
    live = ledger.read_live()
    assert [(one.name, one.number, one.state, one.parts) for one in live.instances] == [
        ("f-0", 0, InstanceState.PROVISIONING, 2),
        ("f-1", 1, InstanceState.PROVISIONING, 2),
    ]
    first = live.instances[0]
    assert (first.cpu_millicores, first.memory_bytes, first.sharing, first.blocks) == (
        (4000, GIB, "blocks", 4)
    )
    assert first.declared == declared["local"]
    assert live.resources[make.resource].uid == begun[make.key].resource_uid


def test_shrunk_fleet_is_drained(two_hosts: Desk) -> None:
    """The update of a fleet ends no work: who leaves takes no job more, and its jobs go on."""
    desk = two_hosts
    desk.submit(submit_step("a"), submit_step("b"))
    desk.place("a", desk.share(on=1))
    desk.say(desk.record("a", JobState.RUNNING), on=1)
    carry_out(desk.ledger, [fleet_step("local", 1, "fleet.update")])
    leaving = desk.ledger.read_live().instances[1]
    assert leaving.state is InstanceState.TERMINATING
    assert not desk.place("b", desk.share(on=1))
    desk.say(desk.record("a", JobState.FINISHED), on=1)
    (history,) = desk.ledger.read_runs(["a"])
    assert history.attempts[-1].jobs[0].cause is Cause.EXITED
    assert not desk.ledger.read_book().allocations


def test_retired_host_is_gone(two_hosts: Desk) -> None:
    """A host that was let go is gone for good: its place is another instance's afterwards."""
    desk, ledger = two_hosts, two_hosts.ledger
    desk.submit(submit_step("a"))
    desk.place("a", desk.share(on=1))
    desk.say(desk.record("a", JobState.RUNNING), on=1)
    carry_out(ledger, [fleet_step("local", 1, "fleet.update")])
    ledger.retire(desk.instances[1], fence=desk.fence, now_ms=2)
    assert [one.number for one in ledger.read_live().instances] == [0]
    (history,) = ledger.read_runs(["a"])
    assert history.host_names[desk.instances[1]] == "local-1"
    assert history.attempts[-1].jobs[0].cause is Cause.LOST
    carry_out(ledger, [fleet_step("local", 2, "fleet.update")])
    second = ledger.read_live().instances[1]
    assert second.number == 1
    assert second.uid not in desk.instances


def test_leaving_host_is_taken_back(two_hosts: Desk) -> None:
    """A fleet that grows again keeps the host that was leaving, which is then not retired."""
    desk = two_hosts
    carry_out(desk.ledger, [fleet_step("local", 1, "fleet.update")])
    carry_out(desk.ledger, [fleet_step("local", 2, "fleet.update")])
    desk.ledger.retire(desk.instances[1], fence=desk.fence, now_ms=2)
    back = desk.ledger.read_live().instances[1]
    assert (back.uid, back.state) == (desk.instances[1], InstanceState.PROVISIONING)
    desk.greet(back.uid)
    assert desk.ledger.read_live().instances[1].state is InstanceState.READY


def test_fleet_that_failed_is_planned_again(ledger: Ledger) -> None:
    """A fleet that could not be made keeps its instances, and differs from what is declared."""
    make = fleet_step("f")
    accepted = enter(ledger, plan_of(ledger, [make]))
    ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)
    ledger.finish_steps(accepted.apply_uid, [make], [StepOutcome(make.key, "no")], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="", now_ms=1)
    row = ledger.read_live().resources[make.resource]
    assert (row.digest, row.document) == ("", "{}")
    uid = ledger.read_live().instances[0].uid
    carry_out(ledger, [fleet_step("f", 1, "fleet.update")])
    assert ledger.read_live().instances[0].uid == uid
    assert ledger.read_live().resources[make.resource].digest == make.arguments["digest"]


def test_removed_fleet_loses_its_jobs(desk: Desk) -> None:
    """Hosts that were released run nothing any more: that is proof for what ran there."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    carry_out(desk.ledger, [step("fleet.remove", "local")])
    (history,) = desk.ledger.read_runs(["a"])
    assert history.attempts[-1].jobs[0].cause is Cause.LOST
    assert not desk.ledger.read_live().instances
    assert not desk.ledger.read_book().allocations


def test_volume_lives_and_is_forgotten(ledger: Ledger) -> None:
    """A volume has a uid from its intent on, changes in place, and is gone when forgotten."""
    document = {"type": "volume", "fleet": "f", "path": "data"}
    make = step("volume.make", "v", **written(document, fleet="f", path="data"))
    accepted = enter(ledger, plan_of(ledger, [make]))
    uid = ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)[make.key].resource_uid
    ledger.finish_steps(accepted.apply_uid, [make], [StepOutcome(make.key)], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=1)
    protect = written({**document, "protect": True}, fleet="f", path="data")
    carry_out(ledger, [step("volume.update", "v", **protect)])
    row = ledger.read_live().resources[make.resource]
    assert (row.uid, row.generation, row.protected) == (uid, 2, True)
    carry_out(ledger, [step("volume.forget", "v", fleet="f", path="data")])
    assert not ledger.read_live().resources


def test_volume_that_is_put_aside_is_remembered(ledger: Ledger) -> None:
    """The volume is gone, and where its data is, whose it was and who let it go is kept."""
    document = {"type": "volume", "fleet": "f", "path": "data", "deletion_policy": "snapshot"}
    carry_out(ledger, [step("volume.make", "v", **written(document, fleet="f", path="data"))])
    (row,) = ledger.read_live().resources.values()
    aside = step("volume.snapshot", "v", fleet="f", path="data", into="data.snapshot-v-1")
    carry_out(ledger, [aside], now_ms=77)
    assert not ledger.read_live().resources
    (kept,) = ledger.read_snapshots()
    assert (kept.volume, kept.volume_uid, kept.who) == ("v", row.uid, "anna")
    assert (kept.fleet, kept.path, kept.place) == ("f", "data", "data.snapshot-v-1")
    assert kept.taken_at_ms == 77


def test_each_place_of_a_volume_that_is_put_aside_again_is_remembered(ledger: Ledger) -> None:
    """Once each: also one that its host had put aside before, without anybody hearing of it."""
    document = {"type": "volume", "fleet": "f", "path": "data", "deletion_policy": "snapshot"}
    make = step("volume.make", "v", **written(document, fleet="f", path="data"))
    aside = step("volume.snapshot", "v", fleet="f", path="data", into="data.snapshot-v-1")
    unheard, again = "data.snapshot-v-1", "data.snapshot-v-1-op"
    for places, known in (([], []), ([unheard, again], [unheard, again])):
        carry_out(ledger, [make])
        accepted = enter(ledger, plan_of(ledger, [aside]))
        ledger.begin_steps(accepted.apply_uid, [aside], now_ms=1)
        outcome = StepOutcome(aside.key, outputs={"places": places})
        ledger.finish_steps(accepted.apply_uid, [aside], [outcome], now_ms=1)
        ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=1)
        assert sorted(one.place for one in ledger.read_snapshots()) == known
    assert [event.message for event in ledger.read_events() if event.kind == "volume.snapshot"] == [
        "volume v was removed: fleet f had nothing in data to keep as a snapshot",
        f"volume v was kept as a snapshot: its data is in {unheard} and {again} on fleet f",
    ]


def test_book_says_where_volumes_lie(desk: Desk) -> None:
    """A run that mounts a volume must go to its fleet: the whole book tells which that is."""
    where = {"fleet": "local", "path": "d"}
    make = step("volume.make", "data", **written(where, type="volume", **where))
    accepted = enter(desk.ledger, plan_of(desk.ledger, [make]))
    desk.ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)
    assert desk.ledger.read_book().volume_fleets == {}
    desk.ledger.finish_steps(accepted.apply_uid, [make], [StepOutcome(make.key)], now_ms=1)
    assert desk.ledger.read_book().volume_fleets == {"data": "local"}
    assert desk.ledger.read_book(()).volume_fleets == {}


def _volume_on(ledger: Ledger, verb: str, *hosts: str, **lacking: str) -> None:
    """Carry out a step on the volume `data` that these hosts have afterwards, and these lack."""
    where = {"fleet": "local", "path": "d", "hosts": [*hosts, *lacking]}
    make = step(verb, "data", **written(where, type="volume", **where))
    accepted = enter(ledger, plan_of(ledger, [make]))
    ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)
    outcome = StepOutcome(make.key, outputs={MADE_ON: list(hosts), NOT_ON: lacking})
    ledger.finish_steps(accepted.apply_uid, [make], [outcome], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=1)


def test_hosts_of_a_volume_are_recorded(ledger: Ledger) -> None:
    """A volume that a host lacks differs from any document until that host has it too."""
    key = ResourceKey("volume", "data")
    _volume_on(ledger, "volume.make", "a", b="it did not answer")
    row = ledger.read_live().resources[key]
    assert (row.digest, row.state) == ("", "present")
    there = volume_hosts(row.outputs)
    assert there is not None
    assert (there.made_on, there.not_on) == (frozenset({"a"}), {"b": "it did not answer"})
    assert ledger.read_book().volume_hosts == {"data": frozenset({"a"})}
    _volume_on(ledger, "volume.update", "a", "b")
    assert ledger.read_live().resources[key].digest != ""
    assert ledger.read_book().volume_hosts == {"data": frozenset({"a", "b"})}


def test_a_run_is_placed_only_where_its_volume_is(two_hosts: Desk) -> None:
    """Also where the placement was decided before a host left the volume."""
    desk = two_hosts
    _volume_on(desk.ledger, "volume.make", "local-0", "local-1")
    mounting = [{"name": "data", "path": "/d"}]
    desk.submit(submit_step("a", volumes=mounting), submit_step("b", volumes=mounting))
    withdraw = step(
        "volume.withdraw",
        "data",
        fleet="local",
        path="d",
        data="snapshot",
        hosts=["local-1"],
        stays_on=["local-0"],
    )
    accepted = enter(desk.ledger, plan_of(desk.ledger, [withdraw]))
    desk.ledger.begin_steps(accepted.apply_uid, [withdraw], now_ms=1)
    assert not desk.place("a"), "nothing starts while a host leaves"
    outcome = StepOutcome(withdraw.key, outputs={"places": ["d.snapshot"], "left": []})
    desk.ledger.finish_steps(accepted.apply_uid, [withdraw], [outcome], now_ms=1)
    desk.ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=1)
    assert [one.place for one in desk.ledger.read_snapshots()] == ["d.snapshot"]
    assert ResourceKey("volume", "data") in desk.ledger.read_live().resources
    assert not desk.place("a", desk.share(on=1))
    assert desk.place("b", desk.share(on=0))


def test_book_says_where_queues_lead(ledger: Ledger) -> None:
    """The whole book has each queue's fleets and the default one, as they were applied last."""

    def put(verb: str, name: str, **document: object) -> None:
        carry_out(ledger, [step(verb, name, **written(document, type="queue"))])

    put("queue.set", "batch", fleets=["b", "a"])
    put("queue.set", "any", default=True)
    book = ledger.read_book()
    assert (book.queue_fleets, book.default_queue) == ({"any": (), "batch": ("b", "a")}, "any")
    carry_out(ledger, [move_step("fleet", "a", "c")])
    put("queue.remove", "any")
    book = ledger.read_book()
    assert (book.queue_fleets, book.default_queue) == ({"batch": ("b", "c")}, "")
    put("queue.set", "batch", fleets=["d"])
    assert ledger.read_book().queue_fleets == {"batch": ("d",)}
    row = ledger.read_live().resources[ResourceKey("queue", "batch")]
    assert (row.generation, row.state, row.type) == (3, "present", "queue")


def test_volume_that_failed_keeps_its_uid(ledger: Ledger) -> None:
    """
    A volume whose making failed is absent to every plan, and made under the uid that it had.

    Its directory may be there and bear that uid, when only the answer was lost.
    """
    where = {"fleet": "f", "path": "data"}
    make = step("volume.make", "v", **written(where, **where))
    accepted = enter(ledger, plan_of(ledger, [make]))
    first = ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)[make.key]
    ledger.finish_steps(accepted.apply_uid, [make], [StepOutcome(make.key, "no")], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="", now_ms=1)
    assert ledger.read_live().resources[ResourceKey("volume", "v")].archived
    again = enter(ledger, plan_of(ledger, [make], Predicate("absent", make.resource)))
    second = ledger.begin_steps(again.apply_uid, [make], now_ms=2)[make.key]
    assert second.resource_uid == first.resource_uid
    ledger.finish_steps(again.apply_uid, [make], [StepOutcome(make.key)], now_ms=2)
    row = ledger.read_live().resources[ResourceKey("volume", "v")]
    assert (row.archived, row.state, row.uid) == (False, "present", first.resource_uid)


@pytest.mark.parametrize("verb", ["volume.remove", "volume.snapshot"])
def test_volume_whose_removal_failed_is_left_to_the_next_plan(ledger: Ledger, verb: str) -> None:
    """It may be gone although nobody heard of it: without a digest it differs from any document."""
    where = {"fleet": "f", "path": "data"}
    carry_out(ledger, [step("volume.make", "v", **written(where, **where))])
    drop = step(verb, "v", into="data.1", **where)
    accepted = enter(ledger, plan_of(ledger, [drop]))
    ledger.begin_steps(accepted.apply_uid, [drop], now_ms=1)
    ledger.finish_steps(accepted.apply_uid, [drop], [StepOutcome(drop.key, "no")], now_ms=1)
    row = ledger.read_live().resources[ResourceKey("volume", "v")]
    assert (row.digest, row.state, row.archived) == ("", "failed", False)


def test_fleet_of_an_apply_that_ended_early_is_left_to_the_next_plan(ledger: Ledger) -> None:
    """Hosts may have come or gone since the intent; what was only planned is as it was."""
    carry_out(ledger, [fleet_step("f", 1), fleet_step("g", 1)])
    steps = [fleet_step("f", 2, verb="fleet.update"), fleet_step("g", 2, verb="fleet.update")]
    accepted = enter(ledger, plan_of(ledger, steps))
    ledger.begin_steps(accepted.apply_uid, steps[:1], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="interrupted", summary="", now_ms=1)
    rows = ledger.read_live().resources
    assert rows["fleet", "f"].digest == ""
    assert rows["fleet", "g"].digest != ""


def test_volume_of_an_apply_that_ended_early_keeps_its_uid(ledger: Ledger) -> None:
    """
    A volume is absent to every plan until it exists, and its row says what is created.

    An apply that is given up between intent and outcome leaves what a failure leaves.
    """
    where = {"fleet": "f", "path": "data"}
    make = step("volume.make", "v", **written(where, **where))
    accepted = enter(ledger, plan_of(ledger, [make]))
    first = ledger.begin_steps(accepted.apply_uid, [make], now_ms=1)[make.key]
    begun = ledger.read_live().resources[ResourceKey("volume", "v")]
    assert (begun.archived, begun.is_being_created, begun.parsed) == (True, True, where)
    ledger.finish_apply(accepted.apply_uid, state="interrupted", summary="", now_ms=1)
    row = ledger.read_live().resources[ResourceKey("volume", "v")]
    assert (row.archived, row.uid, row.operation) == (True, first.resource_uid, "")
