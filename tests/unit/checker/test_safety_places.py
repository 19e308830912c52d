"""A directory is one volume's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import Invariant, check
from fleetform.spec.desired import ResourceKey
from unit.checker.test_check import ALLOWED, found
from unit.plan.trees import fleet, ledger, planned, row, tree, volume

LOCAL = fleet("local")
OLD = volume("old", path="/data/old", deletion_policy="delete")


@pytest.mark.parametrize("path", ["/data/old", "/data", "/data/old/in"])
def test_no_volume_comes_where_one_stays(path: str) -> None:
    """Into its directory, around it or within."""
    new = volume("new", path=path)
    desired, live = tree(LOCAL, new), ledger(row(LOCAL), row(OLD))
    plan = planned(desired, live, allow_destroy=True)
    assert check(plan, desired, live, ALLOWED) == ()
    (made,) = (one for one in plan.changes if one.key == new.key)
    steps = tuple(replace(one, needs=()) for one in made.steps)
    alone = replace(plan, changes=(replace(made, steps=steps),))
    assert Invariant.PLACE_IS_FREE in found(alone, desired, live, ALLOWED)
    beside = ledger(row(LOCAL), row(replace(OLD, document={**OLD.document, "path": "/other"})))
    assert Invariant.PLACE_IS_FREE not in found(alone, desired, beside, ALLOWED)


def test_what_is_let_go_is_taken_in_and_not_made_anew() -> None:
    """Its data is there still, and whoever comes takes that in, or stays away."""
    kept = volume("old", path="/data/old")
    new = volume("new", path="/data/old")
    desired = replace(tree(LOCAL, new), imports=(ResourceKey("volume", "new"),))
    live = ledger(row(LOCAL), row(kept))
    plan = planned(desired, live)
    assert check(plan, desired, live, ALLOWED) == ()
    changes = tuple(
        replace(
            change,
            steps=tuple(
                replace(one, verb="volume.make") if one.verb == "volume.adopt" else one
                for one in change.steps
            ),
        )
        for change in plan.changes
    )
    assert Invariant.PLACE_IS_FREE in found(replace(plan, changes=changes), desired, live, ALLOWED)
