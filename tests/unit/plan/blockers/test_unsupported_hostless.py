"""What a host would have to do waits for one, and is not tried again and again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import check
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.live import Live
from fleetform.model.plan import Action, HeldBy, Permissions
from fleetform.spec.desired import Desired
from unit.plan.trees import fleet, ledger, planned, row, task, tree, volume

LOCAL = fleet("local")
NONE = fleet("local", nodes=0)
DATA = volume("data", deletion_policy="delete")
ALLOWED = {"allow_destroy": True}
RELEASE = "declare at least one node in fleet local"


def with_host(live: Live) -> Live:
    host = Instance(
        uid="1" * 32, name="local-0", fleet="local", number=0, state=InstanceState.READY
    )
    return replace(live, instances=(host,))


@pytest.mark.parametrize(
    ("desired", "live", "action", "release"),
    [
        (tree(NONE, DATA), ledger(row(NONE)), Action.CREATE, RELEASE),
        (
            tree(NONE),
            ledger(row(NONE), row(DATA)),
            Action.DELETE,
            f"{RELEASE}, or list volume/data under `removed:`",
        ),
        (
            tree(),
            ledger(row(DATA)),
            Action.DELETE,
            f"{RELEASE}, or list volume/data under `removed:`",
        ),
    ],
)
def test_a_volume_waits_for_a_host(
    desired: Desired, live: Live, action: Action, release: str
) -> None:
    """As long as its fleet has none, or is one that nobody knows any more."""
    plan = planned(desired, live, **ALLOWED)
    assert plan.is_empty
    assert check(plan, desired, live, Permissions(**ALLOWED)) == ()
    (held,) = plan.held
    assert (held.change.action, held.by, held.cure) == (action, HeldBy.DEPENDENCY, release)


def test_what_uses_it_waits_as_well() -> None:
    user = task("train", volumes=[{"name": "data", "path": "/in"}])
    plan = planned(tree(NONE, DATA, user), ledger(row(NONE)))
    assert {str(one.change.key) for one in plan.held} == {"volume/data", "run/train"}


@pytest.mark.parametrize(
    ("desired", "live"),
    [
        (tree(LOCAL), ledger(row(NONE), row(DATA))),
        (tree(NONE), with_host(ledger(row(LOCAL), row(DATA)))),
        (tree(), with_host(ledger(row(LOCAL), row(DATA)))),
        (tree(LOCAL, DATA), ledger(row(NONE))),
    ],
)
def test_one_host_is_enough(desired: Desired, live: Live) -> None:
    """One that still is takes data away, one that is to be makes room for it."""
    plan = planned(desired, live, **ALLOWED)
    assert "volume/data" in {str(one.key) for one in plan.changes}
