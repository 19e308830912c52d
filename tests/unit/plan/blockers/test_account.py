"""Runs that no host could start as their owner, and root that nobody granted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fleetform.model.instance import Instance, InstanceState
from fleetform.model.live import Live
from fleetform.model.plan import HeldBy, Plan
from fleetform.spec.desired import Declared, Desired
from unit.plan.trees import declare, ledger, planned, row, task, tree


def over_ssh(*hosts: str, **document: Any) -> Declared:
    listed = [{"hostname": one} for one in hosts]
    return declare("fleet", "gpu", {"type": "fleet", "ssh_config": {"hosts": listed}, **document})


def live(fleet: Declared, person: str, **accounts: frozenset[str] | None) -> Live:
    up = tuple(
        Instance(
            f"uid-{name}", name, "gpu", number, InstanceState.READY,
            provider="ssh", agent_account="root", accounts=found,
        )
        for number, (name, found) in enumerate(accounts.items())
    )  # fmt: skip
    return replace(ledger(row(fleet)), instances=up, person=person)


def held(plan: Plan) -> dict[str, tuple[HeldBy, str]]:
    return {one.change.key.name: (one.by, one.detail) for one in plan.held}


ADA, BOTH = frozenset({"root", "ada"}), frozenset({"root", "ada", "bob"})


def test_a_missing_account_is_named_with_its_hosts() -> None:
    """No host has it, so the run is held; with one host that has it, it is not."""
    fleet = over_ssh("a", "b")
    declared = tree(fleet, task("train", fleets=["gpu"]))
    found = held(planned(declared, live(fleet, "bob", a=ADA, b=ADA)))
    assert found["train"] == (
        HeldBy.ACCOUNT,
        "account bob does not exist on host a; account bob does not exist on host b",
    )
    assert held(planned(declared, live(fleet, "bob", a=ADA, b=BOTH))) == {}
    assert held(planned(declared, live(fleet, "ada", a=ADA, b=ADA))) == {}


def test_a_gang_needs_the_account_on_as_many_hosts_as_it_has_nodes() -> None:
    """Of two hosts one is not enough."""
    fleet = over_ssh("a", "b")
    declared = tree(fleet, task("train", fleets=["gpu"], nodes=2))
    assert "train" in held(planned(declared, live(fleet, "bob", a=ADA, b=BOTH)))


def test_what_is_not_known_is_no_obstacle() -> None:
    """A host that cannot list its accounts is asked when a job starts."""
    fleet = over_ssh("a")
    declared = tree(fleet, task("train"))
    assert held(planned(declared, live(fleet, "bob", a=None))) == {}


@pytest.mark.parametrize("granted", [True, False])
def test_root_is_granted_by_the_environment(granted: bool) -> None:
    """Without the grant neither the fleet nor a run on it is carried out."""
    before, fleet = over_ssh("a"), over_ssh("a", run_as="root")
    declared: Desired = tree(fleet, task("train", fleets=["gpu"]))
    environment = replace(declared.environment, grants_root=granted)
    plan = planned(replace(declared, environment=environment), live(before, "ada", a=ADA))
    assert set(held(plan)) == (set() if granted else {"gpu", "train"})


def test_the_account_root_is_no_owner() -> None:
    """Root on the controller is not root on hosts unless the fleet says so."""
    fleet = over_ssh("a")
    found = held(planned(tree(fleet, task("train")), live(fleet, "root", a=ADA)))
    assert "root applied it" in found["train"][1]
