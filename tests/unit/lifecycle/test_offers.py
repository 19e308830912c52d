"""By which offer an instance of a cloud is asked for, after refusals and with a retry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.lifecycle.offers import (
    asked_again,
    created,
    must_be_released,
    next_offer,
    refused,
)
from fleetform.model.offers import (
    REFUSED_MS,
    NoOffer,
    TriedOffer,
    identity_of,
    in_order_of_asking,
    terms_of,
)

CHEAP = {
    "instance_type": "g5.xlarge",
    "region": "us-east-1",
    "zone": "us-east-1a",
    "price_micros": 1,
}
DEAR = {"instance_type": "g5.2xlarge", "region": "us-east-1", "spot": True}
PLACE = {"account": "123456789012", **CHEAP, "stack": "gpus-0123456789ab"}
UID = "f" * 32
HOUR = 3_600_000


def tried(*refused_at):
    return [
        TriedOffer("gpus", terms, at_ms, "" if at_ms is None else "no capacity")
        for terms, at_ms in zip((CHEAP, DEAR), refused_at, strict=True)
    ]


def taken(endpoint=PLACE, offers=None, *, now_ms=0, uid=UID):
    return next_offer(uid, endpoint, offers or tried(None, None), now_ms=now_ms)


def test_an_offer_that_was_not_refused_stays():
    """The instance stays in its batch."""
    endpoint, none = taken()
    assert (none, endpoint) == (None, {**PLACE, "asked": True})


def test_the_next_offer_is_another_batch():
    """Nothing of the refused offer is left, and all instances of the batch get the same new one."""
    endpoint, _ = taken(offers=tried(0, None))
    assert terms_of(endpoint) == DEAR
    assert endpoint["account"] == PLACE["account"]
    assert endpoint["stack"].startswith("gpus-")
    assert endpoint["stack"] != PLACE["stack"]
    assert taken(offers=tried(0, None), uid="e" * 32)[0] == endpoint


def test_what_may_exist_stays_at_its_offer():
    """The cloud was asked for it and has not answered: by another offer it would be bought twice."""
    asked = {**PLACE, "asked": True}
    assert taken(asked, tried(0, None)) == (asked, None)
    assert refused(asked, DEAR, exists=False) is None
    exists = refused(asked, CHEAP, exists=True)
    assert exists is not None
    assert must_be_released(exists)
    assert taken(exists, tried(0, None)) == (exists, None)
    assert (
        taken(refused(asked, CHEAP, exists=False), tried(0, None))[0]["instance_type"]
        == "g5.2xlarge"
    )


def test_a_refused_offer_is_asked_again_after_ten_minutes():
    """First by the first offer."""
    assert REFUSED_MS == 600_000
    waiting = {**PLACE, "retry_seconds": -1}
    _, none = taken(waiting, tried(0, 1000), now_ms=REFUSED_MS - 1)
    assert (none.next_ms, none.until_ms) == (REFUSED_MS, None)
    endpoint, none = taken({**waiting, **DEAR}, tried(0, 1000), now_ms=REFUSED_MS)
    assert (none, endpoint["instance_type"]) == (None, "g5.xlarge")


def test_the_cheaper_offer_is_asked_first_once_it_is_free():
    """Whatever offer the instance had: a plan shows the order of the fleet."""
    endpoint, none = taken({**PLACE, **DEAR}, tried(0, None), now_ms=REFUSED_MS)
    assert (none, endpoint["instance_type"]) == (None, "g5.xlarge")
    assert "spot" not in endpoint


def test_the_order_of_asking():
    """What was refused lately comes last, the one that is free soonest first."""
    order = [identity_of(one.terms) for one in in_order_of_asking(tried(1, None), 2)]
    assert order == [identity_of(DEAR), identity_of(CHEAP)]
    order = [identity_of(one.terms) for one in in_order_of_asking(tried(2, 1), 3)]
    assert order == [identity_of(DEAR), identity_of(CHEAP)]
    assert in_order_of_asking(tried(1, 2), REFUSED_MS + 2) == tried(1, 2)


def test_without_a_retry_only_the_next_apply_asks_again():
    """Also when offers may be asked for again."""
    endpoint, none = taken(offers=tried(0, 0), now_ms=1)
    assert isinstance(none, NoOffer)
    assert (none.next_ms, [one.problem for one in none.refused]) == (None, ["no capacity"] * 2)
    assert taken(endpoint, tried(0, 0), now_ms=HOUR)[1] is not None
    assert taken(asked_again(endpoint, PLACE), tried(0, 0), now_ms=HOUR)[1] is None


def test_a_retry_ends_after_its_duration():
    """It is counted from the first time that no offer was left, whatever was asked since."""
    endpoint, none = taken({**PLACE, "retry_seconds": 3600}, tried(0, 0), now_ms=1)
    assert (none.next_ms, none.until_ms) == (REFUSED_MS, HOUR + 1)
    endpoint, none = taken(endpoint, tried(0, 0), now_ms=REFUSED_MS)
    assert none is None
    endpoint = refused(endpoint, CHEAP, exists=False)
    _, none = taken(endpoint, tried(HOUR, HOUR), now_ms=HOUR + 1)
    assert none.next_ms is None
    assert "refused_since_ms" not in created(endpoint)


def test_a_fleet_of_an_earlier_release_has_its_one_offer():
    """Its step had none beside it."""
    assert next_offer(UID, PLACE, (), now_ms=0) == ({**PLACE, "asked": True}, None)


@pytest.mark.parametrize("retry", [{}, {"retry_seconds": -1}, {"retry_seconds": 900}])
@given(data=st.data())
def test_no_offer_is_asked_twice_in_ten_minutes(retry, data):
    """Whatever the cloud answers and how long each answer takes."""
    offers = tried(None, None)
    endpoint, now_ms = {**PLACE, **retry}, 0
    for _ in range(20):
        now_ms += data.draw(st.integers(0, 400_000))
        endpoint, none = next_offer(UID, endpoint, offers, now_ms=now_ms)
        if none is not None:
            continue
        (position,) = [
            number
            for number, one in enumerate(offers)
            if identity_of(one.terms) == identity_of(endpoint)
        ]
        before = offers[position].refused_at_ms
        assert before is None or now_ms - before >= REFUSED_MS
        now_ms += data.draw(st.integers(0, 30_000))
        offers[position] = TriedOffer("gpus", offers[position].terms, now_ms, "no capacity")
        endpoint = refused(endpoint, terms_of(endpoint), exists=False)
