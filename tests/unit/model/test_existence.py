"""What a list of a cloud proves about the instances of the ledger."""

from __future__ import annotations

import pytest

from fleetform.model.existence import LISTED_MS, ended_text, is_known, place_of
from fleetform.model.instance import Instance, InstanceState
from fleetform.providers.contract.observed import InstanceSeen

NOW_MS = 1_700_000_000_000


def row(cloud_id="i-1", heard_at_ms=NOW_MS - LISTED_MS):
    endpoint = {"account": "1", "region": "eu-north-1", **({"id": cloud_id} if cloud_id else {})}
    return Instance(
        "u1", "gpus-0", "gpus", 0, InstanceState.READY,
        provider="aws", endpoint=endpoint, seen_at_ms=heard_at_ms,
    )  # fmt: skip


def seen(cloud_id="i-1", uid="u1", *, alive=True):
    return InstanceSeen(
        uid, "gpus-0", "gpus", "e", "", 0, alive, provider="aws", endpoint={"id": cloud_id}
    )


def test_an_instance_that_is_listed_exists():
    """However long its agent has been silent."""
    assert ended_text(row(heard_at_ms=None), [seen()], now_ms=NOW_MS) == ""


def test_an_instance_that_was_terminated_has_ended():
    """The cloud says so, and names it."""
    listed = [seen("i-2"), seen(alive=False)]
    assert ended_text(row(heard_at_ms=NOW_MS), listed, now_ms=NOW_MS) == "i-1 was terminated"


@pytest.mark.parametrize(
    ("heard_at_ms", "text"),
    [
        (NOW_MS - LISTED_MS, "i-1 no longer exists"),
        (NOW_MS - LISTED_MS + 1, ""),
        (None, ""),
    ],
    ids=["long-ago", "a-moment-ago", "never"],
)
def test_an_instance_that_is_not_listed(heard_at_ms, text):
    """It is gone only if it has existed for longer than a cloud takes to list it."""
    assert ended_text(row(heard_at_ms=heard_at_ms), [seen("i-2")], now_ms=NOW_MS) == text


def test_a_row_without_an_id_has_not_ended():
    """Its creation may be under way."""
    assert ended_text(row(""), [], now_ms=NOW_MS) == ""


def test_what_the_ledger_knows():
    """It knows an instance by its id, and by its uid while the creation of the row is not finished."""
    assert is_known(seen(), {"u1": row()})
    assert is_known(seen("i-2"), {"u1": row("")})
    assert not is_known(seen("i-2"), {"u1": row()})
    assert not is_known(seen(uid="u2"), {"u1": row()})


def test_one_list_covers_an_account_and_a_region():
    """Whatever else instances differ in."""
    endpoint = {"account": "1", "region": "eu-north-1"}
    assert place_of("aws", {**endpoint, "zone": "a"}) == place_of("aws", {**endpoint, "id": "i-1"})
    assert place_of("aws", {**endpoint, "region": "eu-west-1"}) != place_of("aws", endpoint)
