"""Rows of instances of a cloud: the stack that they are created in, and what they were created by."""

from __future__ import annotations

import itertools

import pytest

from contract.ledgers import CountingIds
from fleetform.model.cost import BoughtHost
from fleetform.model.instance import InstanceState
from fleetform.model.plan import Step
from fleetform.model.verbs import Verb
from fleetform.providers.contract.hosts import CreatedHost
from fleetform.spec.desired import ResourceKey
from fleetform.store.fleets import begin_make, begin_update, note_created, retire
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


@pytest.fixture
def write():
    """Return a function that calls another one in a transaction of a new ledger."""
    ledger = ledger_in_memory(UID, ids := CountingIds(), now_ms=1)

    def write(call, *arguments, **named):
        with ledger._database.write() as transaction:
            if call in {begin_make, begin_update}:
                return call(Context(transaction, "apply", "", "tests", 1, ids), *arguments)
            return call(transaction, *arguments, **{"now_ms": 1, **named})

    write.spending = ledger.read_spending
    write.instances = lambda: ledger.read_book(()).instances
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
    write(note_created, before.uid, CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA"))
    write(begin_update, step(1, instance_type="g6.xlarge"))
    (after,) = write.instances()
    assert after.endpoint == {**before.endpoint, "id": "i-1", "hostname": "192.0.2.1"}
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


def test_a_released_instance_is_not_wanted_again(write):
    """A plan that wants it back while it is being released gets another one in its place, however far the release came."""
    write(begin_make, step(1))
    (before,) = write.instances()
    write(begin_update, step(0))
    write(begin_update, step(1))
    assert [one.state for one in write.instances()] == [InstanceState.TERMINATING]
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
