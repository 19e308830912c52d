"""Offers of a fleet in the ledger: kept with their refusals, taken before a cloud is asked, and renamed with the fleet."""

from __future__ import annotations

import pytest

from contract.ledgers import CountingIds, carry_out, move_step, step, written
from fleetform.lifecycle.offers import must_be_released
from fleetform.model.instance import InstanceState
from fleetform.model.offers import NoOffer, Refusal
from fleetform.providers.contract.hosts import CreatedHost
from fleetform.store.opening import ledger_in_memory
from unit.plan.trees import UID

CHEAP = {"instance_type": "g5.xlarge", "region": "us-east-1", "price_micros": 1_006_000}
DEAR = {"instance_type": "g5.2xlarge", "region": "us-east-1"}


@pytest.fixture
def ledger():
    made = ledger_in_memory(UID, CountingIds(), now_ms=1)
    made.take_fence(who="tests", now_ms=1)
    yield made
    made.close()


def declare(ledger, nodes, offers=(CHEAP, DEAR), template="", **endpoint):
    places = [
        {
            "name": f"gpus-{number}",
            "number": number,
            "provider": "aws",
            "endpoint": {**offers[0], **endpoint},
        }
        for number in range(nodes)
    ]
    said = written({}, type="fleet", instances=places, offers=list(offers), template=template)
    carry_out(ledger, [step("fleet.make", "gpus", **said)])


def uids(ledger):
    return [one.uid for one in ledger.read_live().instances]


def refuse(ledger, uid, terms, *, now_ms, problem="no capacity", **more):
    refusal = Refusal(uid, terms, problem, **more)
    return ledger.refuse_offers([refusal], fence=1, now_ms=now_ms)


def taken(ledger, *, now_ms):
    found = ledger.take_offers(uids(ledger), fence=1, now_ms=now_ms)
    return [one if isinstance(one, NoOffer) else one["instance_type"] for one in found.values()]


def test_a_refusal_is_of_the_fleet(ledger):
    """It is recorded once, moves what has an answer, and outlives a new plan and a rename."""
    declare(ledger, 2)
    assert taken(ledger, now_ms=1) == ["g5.xlarge"] * 2
    first, second = uids(ledger)
    (refused,) = refuse(ledger, first, CHEAP, now_ms=2)
    following = "g5.2xlarge in us-east-1, unknown price instead of $1.01/h"
    assert str(refused) == f"g5.xlarge in us-east-1 was refused: no capacity; next is {following}"
    assert taken(ledger, now_ms=2) == ["g5.2xlarge", "g5.xlarge"]
    assert refuse(ledger, second, CHEAP, now_ms=3) == ()
    assert taken(ledger, now_ms=3) == ["g5.2xlarge"] * 2
    stacks = [one.endpoint["stack"] for one in ledger.read_live().instances]
    assert stacks[0] == stacks[1]

    declare(ledger, 3, offers=(CHEAP, {**DEAR, "zone": "us-east-1a"}))
    assert [one.refused_at_ms for one in ledger.read_offers("gpus")] == [2, None]
    carry_out(ledger, [move_step("fleet", "gpus", "cards")])
    assert ledger.read_offers("gpus") == ()
    assert [one.problem for one in ledger.read_offers("cards")] == ["no capacity", ""]


def test_what_was_released_gets_another_uid(ledger):
    """A uid is bought once: a host whose batch was refused keeps uid and offer until it is released."""
    declare(ledger, 1)
    taken(ledger, now_ms=1)
    (before,) = uids(ledger)
    refuse(ledger, before, CHEAP, now_ms=2, exists=True)
    assert uids(ledger) == [before]
    (endpoint,) = ledger.take_offers([before], fence=1, now_ms=3).values()
    assert must_be_released(endpoint)
    assert refuse(ledger, before, CHEAP, now_ms=900_000, problem="") == ()
    (after,) = uids(ledger)
    assert after != before
    assert ledger.take_offers([before], fence=1, now_ms=3) == {}
    (endpoint,) = ledger.take_offers([after], fence=1, now_ms=3).values()
    assert not must_be_released(endpoint)
    assert endpoint["instance_type"] == "g5.2xlarge"


def test_an_apply_asks_again(ledger):
    """Without a retry nothing else does, also when the refusals are old."""
    declare(ledger, 1)
    for terms in (CHEAP, DEAR):
        taken(ledger, now_ms=1)
        refuse(ledger, uids(ledger)[0], terms, now_ms=1)
    (none,) = taken(ledger, now_ms=2)
    assert [one.terms for one in none.refused] == [CHEAP, DEAR]
    assert ledger.read_live().instances[0].is_refused
    (still,) = taken(ledger, now_ms=3_600_000)
    assert isinstance(still, NoOffer)
    seen = ledger.read_overview()
    assert seen.hosts == {"refused": 1}
    assert [(one.name, one.state) for one in seen.troubled_hosts] == [("gpus-0", "refused")]
    assert not ledger.read_overview().needs_controller
    declare(ledger, 1)
    assert taken(ledger, now_ms=3_600_000) == ["g5.xlarge"]


def test_a_person_asks_again(ledger):
    """Refused offers are free at once, hosts without a retry are asked for by the controller again, and the event says who asked."""
    declare(ledger, 1)
    for terms in (CHEAP, DEAR):
        taken(ledger, now_ms=1)
        (last,) = refuse(ledger, uids(ledger)[0], terms, now_ms=1)
    assert str(last) == "g5.2xlarge in us-east-1 was refused: no capacity"
    taken(ledger, now_ms=2)
    (before,) = ledger.read_live().tried_offers.values()
    assert [(one.terms, one.is_refused(2)) for one in before] == [(CHEAP, True), (DEAR, True)]
    said = "no offer is left"
    ledger.mark_instance(uids(ledger)[0], state="provisioning", message=said, fence=1, now_ms=2)
    retried = ledger.retry_offers("gpus", who="ada", now_ms=3)
    assert [one.terms for one in retried] == [CHEAP, DEAR]
    (after,) = ledger.read_live().tried_offers.values()
    assert [(one.terms, one.is_refused(3)) for one in after] == [(CHEAP, False), (DEAR, False)]
    (host,) = ledger.read_live().instances
    assert (host.is_refused, host.message) == (False, "")
    assert taken(ledger, now_ms=3) == ["g5.xlarge"]
    assert [one.message for one in ledger.read_events() if one.kind == "offer.retried"] == [
        "ada has g5.xlarge in us-east-1, g5.2xlarge in us-east-1 asked for again"
    ]


def test_a_person_asks_again_for_nothing(ledger):
    """No event says so, and a host whose creation has no answer yet stays at its offer."""
    declare(ledger, 1)
    assert taken(ledger, now_ms=1) == ["g5.xlarge"]
    (before,) = ledger.read_live().instances
    assert ledger.retry_offers("gpus", who="ada", now_ms=2) == ()
    assert ledger.read_live().instances == (before,)
    assert not [one for one in ledger.read_events() if one.kind == "offer.retried"]


def test_another_template_renews_what_was_never_created(ledger):
    """A host that AWS has refused for its network is asked for under another uid in the new one; those that exist stay."""
    declare(ledger, 2, template="t1", vpc="vpc-1")
    taken(ledger, now_ms=1)
    exists, missing = uids(ledger)
    created = CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA")
    ledger.note_created(exists, created, fence=1, now_ms=2)
    declare(ledger, 2, template="t2", vpc="vpc-2")
    rows = {one.uid: one for one in ledger.read_live().instances}
    assert rows.pop(exists).number == 0
    gone = rows.pop(missing)
    assert (gone.state, gone.number) == (InstanceState.TERMINATING, -1)
    (new,) = rows.values()
    assert (new.number, new.endpoint["vpc"], new.name) == (1, "vpc-2", "gpus-1")


def test_a_retry_counts_for_hosts_that_are_missing(ledger):
    """It may be declared after they were refused, and removed again."""
    declare(ledger, 1)
    for terms in (CHEAP, DEAR):
        taken(ledger, now_ms=1)
        (last,) = refuse(ledger, uids(ledger)[0], terms, now_ms=1)
    assert str(last) == "g5.2xlarge in us-east-1 was refused: no capacity"
    taken(ledger, now_ms=2)
    declare(ledger, 1, retry_seconds=60)
    (none,) = taken(ledger, now_ms=3)
    assert (none.next_ms, none.until_ms) == (600_001, 60_003)
    seen = ledger.read_overview()
    assert seen.hosts == {"waiting for capacity": 1}
    assert [one.state for one in seen.troubled_hosts] == ["waiting for capacity"]
    declare(ledger, 1)
    (none,) = taken(ledger, now_ms=4)
    assert none.next_ms is None


def test_a_fleet_that_is_gone_has_no_offers(ledger):
    declare(ledger, 0)
    carry_out(ledger, [step("fleet.remove", "gpus")])
    assert ledger.read_offers("gpus") == ()
