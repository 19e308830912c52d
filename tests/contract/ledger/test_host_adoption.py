"""Instances of a cloud that get rows in a ledger that did not know them: their places, and what is written of them."""

from __future__ import annotations

import pytest

from contract.ledger.test_scaling import HOST, opened, scaled_step, there
from contract.ledgers import ENVIRONMENT, carry_out, fleet_step
from fleetform.model.instance import InstanceState
from fleetform.model.ports import Ledger
from fleetform.model.recovery import Evidence
from fleetform.providers.contract.hosts import CreatedHost
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.spec.desired import Desired, Environment


def listed(name: str, **endpoint: object) -> InstanceSeen:
    facts = {"id": f"i-{name}", "hostname": "192.0.2.7", "zone": "us-east-1a", "stack": "gpus-s"}
    return InstanceSeen(
        name.rjust(32, "0"), name, "gpus", ENVIRONMENT, "", 0, alive=True, provider="aws",
        endpoint={**HOST["endpoint"], **facts, **endpoint}, host_key="key", created_at_ms=5,
    )  # fmt: skip


def adopt(ledger: Ledger, steps, *instances: InstanceSeen):
    evidence = Evidence(
        Desired(Environment("test", ENVIRONMENT), {}), instances, {}, {},
        without_agent=frozenset(one.uid for one in instances),
    )  # fmt: skip
    return ledger.adopt_evidence(evidence, steps, who="me", now_ms=9, mark_missing=False)


def fixed_step(nodes: int, verb: str = "fleet.make"):
    made = fleet_step("gpus", nodes, verb)
    made.arguments["instances"] = [{**HOST, **one} for one in made.arguments["instances"]]
    return made


@pytest.mark.parametrize("name", ["gpus-1", "gpus-7", "other"])
def test_it_takes_a_place_that_the_fleet_wants(ledger: Ledger, name: str) -> None:
    """Its own if `nodes` has that, else a free one, also that of an instance that was never created."""
    carry_out(ledger, [fixed_step(2)])
    first, never = there(ledger)
    ledger.note_created(
        first.uid,
        CreatedHost("i-0", "192.0.2.1"),
        fence=ledger.take_fence(who="test", now_ms=1),
        now_ms=2,
    )
    _, host = adopt(ledger, {"gpus": fixed_step(2)}, listed(name))
    assert (host.name, host.state, host.found) == (
        "gpus-1",
        "provisioning",
        "it has no agent yet",
    )
    rows = {one.uid: one for one in there(ledger)}
    adopted = rows[name.rjust(32, "0")]
    assert (adopted.name, adopted.host_key, adopted.endpoint["id"]) == (
        "gpus-1",
        "key",
        f"i-{name}",
    )
    assert rows[first.uid].number == 0
    assert (rows[never.uid].state, rows[never.uid].number) == (InstanceState.TERMINATING, -1)


def test_more_than_the_fleet_wants_are_adopted_too(ledger: Ledger) -> None:
    """The result says so, because a change of the fleet releases them."""
    carry_out(ledger, [fixed_step(1)])
    fleet, *_ = adopt(ledger, {"gpus": fixed_step(1)}, listed("gpus-0"), listed("gpus-1"))
    assert fleet.note == "1 host more than `nodes`: its next change releases them"
    alive = [one for one in there(ledger) if one.state is not InstanceState.TERMINATING]
    assert [one.number for one in alive] == [0, 1]


def test_a_fleet_that_follows_demand_wants_it(ledger: Ledger) -> None:
    """It is of the template of now, at the price of its offer."""
    opened(ledger)
    adopt(ledger, {"gpus": scaled_step(0, 0, 3)}, listed("gpus-2"))
    (host,) = there(ledger)
    assert (host.number, host.template_digest) == (2, "one")
    (limits,) = ledger.read_book().scaling.values()
    assert limits.places == {2}
