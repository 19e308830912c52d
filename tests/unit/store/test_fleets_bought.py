"""Rows of instances of a cloud: the stack that they are created in, and what they were created by."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from contract.ledgers import CountingIds
from fleetform.model.apply import StepOutcome
from fleetform.model.cost import BoughtHost
from fleetform.model.instance import InstanceState
from fleetform.model.offers import CHOSEN_ZONE
from fleetform.model.override import OverrideKind
from fleetform.model.plan import Step
from fleetform.model.rollout import EXCHANGED
from fleetform.model.verbs import Verb
from fleetform.providers.contract.hosts import CreatedHost
from fleetform.spec.desired import ResourceKey
from fleetform.store.fleets import (
    begin_make,
    begin_update,
    finish_write,
    note_created,
    note_ended,
    retire,
)
from fleetform.store.hosts import mark_instance
from fleetform.store.opening import ledger_in_memory
from fleetform.store.resources import Context
from unit.plan.trees import UID

FLEET = ResourceKey("fleet", "gpus")


def step(nodes, **endpoint):
    places = [
        {
            "name": f"gpus-{number}",
            "number": number,
            "provider": "aws",
            "endpoint": {"region": "us-east-1", "instance_type": "g5.xlarge", **endpoint},
        }
        for number in range(nodes)
    ]
    arguments = {"name": "gpus", "document": {}, "template": "t", "instances": places}
    return Step("fleet.update:fleet/gpus", Verb.FLEET_UPDATE, FLEET, (), arguments)


def with_ended(step, ended):
    return replace(step, arguments={**step.arguments, "ended": ended})


@pytest.fixture
def write():
    """Return a function that calls another one in a transaction of a new ledger."""
    ledger = ledger_in_memory(UID, ids := CountingIds(), now_ms=1)

    def write(call, *arguments, **named):
        with ledger._database.write() as transaction:
            if call in {begin_make, begin_update, finish_write}:
                return call(Context(transaction, "apply", "", "tests", 1, ids), *arguments)
            return call(transaction, *arguments, **{"now_ms": 1, **named})

    write.spending = ledger.read_spending
    write.instances = lambda: ledger.read_book(()).instances
    write.live = ledger.read_live
    write.events = ledger.read_resource_events
    write.quarantine = lambda host: ledger.put_overrides(
        OverrideKind.QUARANTINE,
        (f"host/{host}",),
        reason="it",
        who="tests",
        now_ms=1,
        until_ms=None,
    )
    write.known = ledger.read_known_instances
    yield write
    ledger.close()


def test_one_step_is_a_batch_for_each_hundred(write):
    """Instances that one step brings in have the name of one stack, at most a hundred each."""
    write(begin_make, step(201))
    stacks = [one.endpoint["stack"] for one in write.instances()]
    assert [len(list(group)) for _, group in itertools.groupby(stacks)] == [100, 100, 1]
    write(begin_update, step(203))
    later = [one.endpoint["stack"] for one in write.instances()]
    assert later[:201] == stacks
    assert later[201] == later[202] not in stacks


def test_an_instance_keeps_what_it_was_created_by(write):
    """A later step says another offer for the same place, and the row does not follow."""
    write(begin_make, step(1))
    (before,) = write.instances()
    created = CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA", zone="us-east-1b")
    write(note_created, before.uid, created)
    write(begin_update, step(1, instance_type="g6.xlarge"))
    (after,) = write.instances()
    place = {"id": "i-1", "hostname": "192.0.2.1", CHOSEN_ZONE: "us-east-1b"}
    assert after.endpoint == {**before.endpoint, **place}
    assert (after.address, after.host_key) == ("192.0.2.1", "ssh-ed25519 AAAA")
    assert after.is_created
    assert not before.is_created


def test_the_ledger_knows_how_long_an_instance_existed(write):
    """From the answer to its creation to that to its release, with the price of its offer; others cost nothing."""
    write(begin_make, step(3, price_micros=1_006_000))
    first, second, _never_created = write.instances()
    created = CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA")
    write(note_created, first.uid, created, now_ms=100)
    write(note_created, first.uid, created, now_ms=150)
    write(note_created, second.uid, created, now_ms=200)
    write(retire, second.uid, now_ms=700)
    assert write.spending().hosts == (
        BoughtHost(first.uid, "gpus", 1_006_000, 100, None),
        BoughtHost(second.uid, "gpus", 1_006_000, 200, 700),
    )


@pytest.mark.parametrize(("launched", "counted"), [(40, 40), (170, 100)])
def test_an_instance_that_is_adopted_costs_from_its_launch(write, launched, counted):
    """The cloud says when that was; its clock may be ahead."""
    write(begin_make, step(1))
    (host,) = write.instances()
    created = CreatedHost("i-1", "192.0.2.1", created_at_ms=launched)
    write(note_created, host.uid, created, now_ms=100)
    assert [one.created_at_ms for one in write.spending().hosts] == [counted]


def test_the_history_of_a_fleet_has_its_hosts(write):
    """Creation, silence and release of a host are events of its fleet."""
    write(begin_make, step(1))
    (host,) = write.instances()
    write(note_created, host.uid, CreatedHost("i-1", "192.0.2.1"))
    write(mark_instance, host.uid, state="unreachable", message="no route")
    write(retire, host.uid)
    assert [one.message for one in write.events(FLEET) if one.kind.startswith("host.")] == [
        "host gpus-0 was created: i-1 at 192.0.2.1",
        "host gpus-0 is unreachable: no route",
        "host gpus-0 (i-1) was released",
    ]


def test_a_released_instance_is_not_wanted_again(write):
    """A plan that wants it back while it is being released gets another one in its place, however far the release came."""
    write(begin_make, step(1))
    (before,) = write.instances()
    write(begin_update, step(0))
    write(begin_update, step(1))
    assert [one.state for one in write.instances()] == [InstanceState.TERMINATING]
    assert [one.message for one in write.instances()] == [EXCHANGED]
    write(retire, before.uid)
    assert write.instances() == ()


def test_an_instance_with_a_job_is_wanted_again(write):
    """Nothing releases it before its job ends, so it stays what it is."""
    write(begin_make, step(1))
    (before,) = write.instances()
    write(begin_update, step(0))
    write(place_job, before.uid)
    write(begin_update, step(1))
    (after,) = write.instances()
    assert (after.uid, after.state) == (before.uid, InstanceState.PROVISIONING)


def place_job(transaction, instance_uid, *, now_ms):
    transaction.execute("INSERT INTO runs (number, uid, name) VALUES (1, 'run', 'run')")
    transaction.execute(
        "INSERT INTO allocations (job_uid, instance_uid, run_uid) VALUES ('job', ?, 'run')",
        (instance_uid,),
    )


def test_an_instance_that_has_ended_makes_room_at_once(write):
    """Its row leaves under a number of its own, and the same step gives its place to another uid in a new batch."""
    write(begin_make, step(2))
    first, second = write.instances()
    for number, one in enumerate((first, second)):
        write(note_created, one.uid, CreatedHost(f"i-{number}", "192.0.2.1", "ssh-ed25519 AAAA"))
    ended = {first.uid: "i-0 was terminated"}
    write.quarantine("gpus-0")
    for _ in range(2):
        write(begin_update, with_ended(step(2), ended))
        leaving, new, kept = sorted(write.instances(), key=lambda one: one.number)
        assert (leaving.uid, leaving.state, leaving.number) == (first.uid, "terminating", -1)
        assert (kept.uid, kept.number) == (second.uid, 1)
        assert (new.name, new.number) == ("gpus-0", 0)
        assert new.endpoint["stack"] != first.endpoint["stack"]
    assert write.live().overrides == (), "its successor is another machine"
    write(retire, first.uid)
    assert {one.uid for one in write.instances()} == {new.uid, second.uid}


def test_an_instance_that_has_ended_is_recorded(write):
    """It is unreachable with the reason, and the drift is that of a look, so that the next plan replaces it."""
    write(begin_make, step(1))
    (one,) = write.instances()
    write(note_created, one.uid, CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA"))
    for _ in range(2):
        write(note_ended, one.uid, "i-1 was terminated")
    (after,) = write.instances()
    assert (after.state, after.message) == ("unreachable", "i-1 was terminated")
    (recorded,) = write.live().recorded_drift
    assert (recorded.drift.path, recorded.drift.expected, recorded.drift.seen) == (
        "hosts[gpus-0].host",
        "i-1",
        "gone",
    )
    assert write.known({one.uid, "f" * 32}) == {one.uid}
    write(begin_update, with_ended(step(1), {one.uid: "i-1 was terminated"}))
    assert write.live().recorded_drift == ()
    write(retire, one.uid)
    (never_created,) = write.instances()
    write(begin_update, step(0))
    write(retire, never_created.uid)
    events = [(one.kind, one.message) for one in write.events(FLEET)]
    assert [one for one in events if one[0] in {"host.lost", "host.terminated"}] == [
        ("host.lost", "host gpus-0 is gone: i-1 was terminated"),
        ("host.terminated", "host gpus-0 (i-1) was removed: it no longer exists"),
        ("host.terminated", "host gpus-0 was removed: it was never created"),
    ]


def test_an_instance_of_a_fleet_that_follows_demand_leaves_at_once(write):
    """Its place is free without a plan: demand brings in another instance, or none."""
    scaled = step(1)
    scaling = {"min": 0, "max": 4, "idle_seconds": 60, "host": scaled.arguments["instances"][0]}
    digests = dict.fromkeys(("digest", "execution_digest", "own_digest"), "d")
    scaled = replace(scaled, arguments={**scaled.arguments, **digests, "scaling": scaling})
    write(begin_make, scaled)
    write(finish_write, [scaled], [StepOutcome(scaled.key)])
    (one,) = write.instances()
    write(note_created, one.uid, CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA"))
    write(note_ended, one.uid, "i-1 was terminated")
    (after,) = write.instances()
    assert (after.state, after.number) == ("terminating", -1)
    assert write.live().recorded_drift == ()


def test_how_an_instance_is_reached_changes_in_place(write):
    """Who may connect to it, and by which jump host, is as declared now; its image and id stay."""
    before = step(1, ssh_from=["203.0.113.7/32"], proxy_jump="jump", image="ami-1")
    before.arguments["offers"] = [{"region": "us-east-1", "instance_type": "g5.xlarge"}]
    write(begin_make, before)
    (instance,) = write.instances()
    write(note_created, instance.uid, CreatedHost("i-1", "192.0.2.1"))
    after = step(1, ssh_from=["198.51.100.9/32"], image="ami-2")
    after.arguments["offers"] = before.arguments["offers"]
    write(begin_update, after)
    (instance,) = write.instances()
    assert instance.endpoint["ssh_from"] == ["198.51.100.9/32"]
    assert "proxy_jump" not in instance.endpoint
    assert (instance.endpoint["image"], instance.endpoint["id"]) == ("ami-1", "i-1")
