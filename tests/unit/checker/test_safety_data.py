"""Data that goes against the policy that was applied last is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import Invariant
from fleetform.model.live import Live
from fleetform.model.plan import Permissions, Plan, Step
from fleetform.spec.desired import Desired
from unit.checker.test_check import ALLOWED, edit_step, found, key
from unit.plan.trees import fleet, ledger, planned, row, tree, volume

KEPT = volume("data", deletion_policy="retain")
ASIDE = volume("data", deletion_policy="snapshot")
GONE = volume("data", deletion_policy="delete")


def removal(*, applied: object) -> tuple[Plan, Desired, Live, Permissions]:
    desired, live = tree(fleet("local")), ledger(row(fleet("local")), row(applied))
    return planned(desired, live, allow_destroy=True), desired, live, ALLOWED


@pytest.mark.parametrize("applied", [KEPT, ASIDE, GONE])
@pytest.mark.parametrize("claimed", [KEPT, ASIDE, GONE])
def test_data_goes_as_the_policy_last_applied_says(applied: object, claimed: object) -> None:
    """A plan made for one policy is found wrong where another was applied."""
    plan, desired, _, allowed = removal(applied=claimed)
    _, _, live, _ = removal(applied=applied)
    # What may go may be left as well.
    right = applied is claimed or (claimed is KEPT and applied is GONE)
    assert (Invariant.POLICY_OBEYED in found(plan, desired, live, allowed)) == (not right)


def test_a_volume_that_is_let_go_is_not_put_aside() -> None:
    """`removed:` leaves everything as it is, whatever the policy says."""
    live = ledger(row(fleet("local")), row(ASIDE))
    desired = replace(tree(fleet("local")), removed=(key("volume/data"),))
    plan = planned(desired, live)
    assert [step.verb for step in plan.steps] == ["volume.forget"]
    assert found(plan, desired, live, Permissions()) == set()


def test_a_loss_that_would_be_hidden() -> None:
    """A directory that was made before is made again only after a removal that failed, or asked."""
    live = ledger(row(fleet("local")), row(volume("data")))
    desired = tree(fleet("local"), volume("data", description="texts"))
    plan = planned(desired, live)
    assert found(plan, desired, live, Permissions()) == set()

    def make_again(step: Step) -> Step:
        return replace(step, arguments={**step.arguments, "take": "any"})

    broken = edit_step(plan, "volume.update:volume/data", make_again)
    assert found(broken, desired, live, Permissions()) == {Invariant.LOSS_SEEN}
    unheard = replace(row(volume("data")), digest="", state="failed")
    live = ledger(row(fleet("local")), unheard)
    assert found(planned(desired, live), desired, live, Permissions()) == set()


@pytest.mark.parametrize("into", ["/elsewhere/data.snapshot-data-1", "/data", "/data.snapshot"])
def test_a_snapshot_that_nobody_would_find(into: str) -> None:
    """It lies beside its volume, and bears its uid."""
    plan, *rest = removal(applied=ASIDE)
    step_key = "volume.snapshot:volume/data"

    def put_elsewhere(step: Step) -> Step:
        return replace(step, arguments={**step.arguments, "into": into})

    assert found(edit_step(plan, step_key, put_elsewhere), *rest) == {Invariant.SNAPSHOT_ADJACENT}


@pytest.mark.parametrize(
    ("said", "is_right"), [("delete", True), ("retain", True), ("snapshot", False)]
)
@pytest.mark.parametrize("policy", ["delete", "retain"])
def test_hosts_leave_as_the_policy_says(policy: str, said: str, is_right: bool) -> None:
    """What may be deleted may also be kept; what is to be kept may not be deleted."""
    both, one = {"hosts": ["a", "b"]}, {"hosts": ["a"]}
    live = ledger(row(fleet("local")), row(volume("data", deletion_policy=policy, **both)))
    desired = tree(fleet("local"), volume("data", deletion_policy=policy, **one))
    plan = planned(desired, live, allow_destroy=True)
    assert found(plan, desired, live, ALLOWED) == set()

    def leave(step: Step) -> Step:
        return replace(step, arguments={**step.arguments, "data": said})

    broken = edit_step(plan, "volume.withdraw:volume/data", leave)
    is_right = is_right and (policy == "delete" or said == "retain")
    assert (Invariant.POLICY_OBEYED in found(broken, desired, live, ALLOWED)) == (not is_right)
