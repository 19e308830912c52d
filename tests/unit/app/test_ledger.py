"""A ledger that knows less than the world is told by what bears its environment's uid."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fleetform.app.ledger import outgrown_by, prove_outgrown, refuse_if_outgrown
from fleetform.app.problems import RecoveringProblem
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.leadership import Holder
from fleetform.model.live import Live
from fleetform.providers.contract.observed import InstanceSeen
from unit.plan.trees import UID, ledger

HOST = "1" * 32
LIVE: Live = replace(
    ledger(), fence=4, instances=(Instance(HOST, "pool-0", "pool", 0, InstanceState.READY),)
)
SEEN = InstanceSeen(HOST, "pool-0", "pool", UID, LIVE.ledger_id, LIVE.epoch, alive=True, fence=4)


def test_a_host_that_knows_no_more_is_no_proof() -> None:
    """Its ledger, its epoch and its fence are ours."""
    assert outgrown_by([SEEN], LIVE) == ""
    assert outgrown_by([replace(SEEN, commits=LIVE.serial)], LIVE) == ""


def test_commits_of_an_earlier_epoch_are_no_proof() -> None:
    """A ledger that was put together again or restored counts on from another number."""
    later = replace(LIVE, epoch=LIVE.epoch + 1)
    assert outgrown_by([replace(SEEN, commits=LIVE.serial + 9)], later) == ""


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (replace(SEEN, ledger_id="other", epoch=9), "another ledger"),
        (replace(SEEN, fence=5), "a newer state of this ledger"),
        (replace(SEEN, commits=LIVE.serial + 1), "a newer state of this ledger"),
        (replace(SEEN, uid="2" * 32, ledger_id="", epoch=0, fence=0), "does not know it"),
    ],
)
def test_a_host_that_knows_more_is_proof(seen: InstanceSeen, sentence: str) -> None:
    """Also one that was made and that nobody has greeted: its uid is in no row."""
    assert sentence in outgrown_by([SEEN, seen], LIVE)


def test_a_host_that_was_let_go_is_no_proof() -> None:
    """It is up and belongs to no fleet, by somebody's decision."""
    stray = replace(SEEN, uid="2" * 32)
    assert outgrown_by([stray], replace(LIVE, released_hosts=frozenset({stray.uid}))) == ""


@pytest.mark.parametrize("told", [{"commits": LIVE.serial + 1}, {"fence": 5}, {"uid": "2" * 32}])
def test_what_was_written_down_meanwhile_is_no_proof(told: dict[str, object]) -> None:
    """Whoever manages goes on between the look at the ledger and the one at its hosts."""
    more = Instance("2" * 32, "pool-1", "pool", 1, InstanceState.READY)
    later = replace(LIVE, serial=LIVE.serial + 1, fence=5, instances=(*LIVE.instances, more))
    seen = [replace(SEEN, **told)]
    assert prove_outgrown(seen, LIVE, lambda: LIVE)
    assert prove_outgrown(seen, LIVE, lambda: later) == ""


@pytest.mark.parametrize(
    ("fence", "heard", "is_refused"), [(4, 4, True), (4, 3, False), (0, 4, False)]
)
def test_the_fence_of_a_new_lease_is_nobodys_yet(fence: int, heard: int, is_refused: bool) -> None:
    """A host that has heard it, heard it from another ledger; a file lock brings no fence."""
    told: list[str] = []
    ledger = SimpleNamespace(
        read_live=lambda: LIVE, read_standing=lambda: LIVE, begin_recovery=told.append
    )
    manager_lease = SimpleNamespace(holder=Holder(1, "ada", "apply", 0, "here", fence))

    async def inventory(_: str) -> list[InstanceSeen]:
        return [replace(SEEN, fence=heard)]

    hosts = SimpleNamespace(inventory=inventory)
    asking = refuse_if_outgrown(ledger, hosts, manager_lease)
    if is_refused:
        with pytest.raises(RecoveringProblem, match="a newer state of this ledger"):
            asyncio.run(asking)
    else:
        asyncio.run(asking)
    assert bool(told) is is_refused
