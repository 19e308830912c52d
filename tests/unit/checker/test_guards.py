"""What guards a plan, each broken once: overrides, windows, owners, data, order, what is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import Invariant, check
from fleetform.model.claim import Claim
from fleetform.model.live import Live
from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import Deferred, Permissions, Plan, Scope, Stake, Step
from fleetform.model.run import RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.spec.desired import Desired, FreezeWindow, Rules
from unit.checker.test_check import ALLOWED, edit, edit_step, example, found, key
from unit.plan.trees import NOW_MS, element, fleet, ledger, planned, row, task, tree, volume

OPEN = FreezeWindow("holidays", begin=0, end=NOW_MS // 1000)
SHUT = FreezeWindow("long ago", begin=0, end=1)


def override(kind: OverrideKind, target: str = "", until_ms: int | None = None) -> Override:
    return Override(4, kind, target, "smoke", "ada@node1", 0, until_ms)


def under(plan: Plan, *overrides: Override) -> Plan:
    """The same plan, telling of these."""
    return replace(plan, overrides=overrides)


def beneath(live: Live, *overrides: Override) -> Live:
    return replace(live, overrides=overrides)


# -- overrides -------------------------------------------------------------------------------


def test_an_override_that_is_not_told_of() -> None:
    """Whoever reads a plan must see what stands above the tree."""
    plan, desired, live, allowed = example()
    pause = override(OverrideKind.PAUSE)
    assert found(plan, desired, beneath(live, pause), allowed) == {Invariant.OVERRIDES_TOLD}
    assert found(under(plan, pause), desired, beneath(live, pause), allowed) == set()


def test_an_override_that_is_not_in_force() -> None:
    """One that is over, or that nobody made, is no news."""
    plan, desired, live, allowed = example()
    over = override(OverrideKind.PAUSE, until_ms=NOW_MS)
    assert found(under(plan, over), desired, beneath(live, over), allowed) == {
        Invariant.OVERRIDES_TOLD
    }


def test_a_change_under_a_freeze() -> None:
    """Nothing is carried out, whatever was allowed."""
    plan, desired, live, allowed = example()
    freeze = override(OverrideKind.FREEZE)
    assert found(under(plan, freeze), desired, beneath(live, freeze), allowed) == {
        Invariant.OVERRIDES_KEPT
    }


def test_a_begin_under_a_stop() -> None:
    """What would be submitted is found by its name and its sweep; what only ends is not."""
    plan, desired, live, allowed = example()
    for target, count in (("run/new", 1), ("run/s*", 1), ("run/gone", 0), ("run/*", 4)):
        stop = override(OverrideKind.STOP, target)
        told = under(plan, stop)
        details = [
            one
            for one in check(told, desired, beneath(live, stop), allowed)
            if one.invariant is Invariant.OVERRIDES_KEPT
        ]
        assert len(details) == count, target


# -- freeze windows --------------------------------------------------------------------------


def judged_by(rules: Rules) -> tuple[Plan, Desired, Live, Permissions]:
    """The example, made in a time in which no window of these is open."""
    _, desired, live, allowed = example()
    desired = replace(desired, environment=replace(desired.environment, rules=rules))
    live = replace(live, rules=rules)
    return planned(desired, live, allow_destroy=True, allow_restart=True), desired, live, allowed


def moved_to(plan: Plan, at_ms: int) -> Plan:
    return replace(plan, annex={**plan.annex, "planned_at_ms": at_ms})


def test_a_change_in_a_freeze_window() -> None:
    """An open window of the rules last applied holds every change."""
    plan, *rest = judged_by(Rules(freeze=(OPEN, SHUT)))
    assert found(plan, *rest) == set()
    assert found(moved_to(plan, NOW_MS - 1), *rest) == {Invariant.WINDOWS_KEPT}


def test_a_window_for_what_destroys() -> None:
    """It finds what is destructive, and nothing else."""
    plan, *rest = judged_by(Rules(freeze=(replace(OPEN, only="destructive"),)))
    details = [one.detail for one in check(moved_to(plan, NOW_MS - 1), *rest)]
    assert [one.split()[0] for one in details] == ["fleet/old", "run/busy", "run/gone"]


def test_a_window_that_a_commit_takes_away() -> None:
    """It is judged by the window, and one that is only brought along judges nothing."""
    allowed = Permissions()
    for applied, wanted, broken in ((OPEN, SHUT, True), (SHUT, OPEN, False)):
        desired = tree(rules=Rules(freeze=(wanted,)))
        live = ledger(rules=Rules(freeze=(applied,)))
        plan = moved_to(planned(desired, live), NOW_MS - 1)
        assert found(plan, desired, live, allowed) == (
            {Invariant.WINDOWS_KEPT} if broken else set()
        )


def test_a_thaw_lets_through() -> None:
    """Who says why may pass; the plan tells of it."""
    plan, desired, live, allowed = judged_by(Rules(freeze=(OPEN,)))
    thaw = override(OverrideKind.THAW)
    thawed = under(moved_to(plan, NOW_MS - 1), thaw)
    assert found(thawed, desired, beneath(live, thaw), allowed) == set()


# -- owners and scope ------------------------------------------------------------------------


def test_what_somebody_else_owns() -> None:
    """Making or taking it is found; leaving it alone is not."""
    desired, live = tree(fleet("local"), volume("data")), ledger(row(fleet("local")))
    plan = planned(desired, live)
    claims = {key("volume/data"): Claim("/data", "other-uid", "theirs", "volume v", 1000)}
    owned = replace(live, claims=claims)
    assert found(plan, desired, owned, Permissions()) == {Invariant.OWNERS_KEPT}
    assert found(planned(desired, owned), desired, owned, Permissions()) == set()


def test_what_is_left_and_done() -> None:
    """What is left for another plan is not carried out by this one."""
    plan, *rest = example()
    change = next(one for one in plan.changes if one.key == key("run/new"))
    both = replace(plan, deferred=(Deferred(change, "it is not among the targets"),))
    assert Invariant.LEFT_IS_LEFT in found(both, *rest)


def test_a_change_beside_the_targets() -> None:
    """A target brings along what it needs, and nothing more."""
    desired = tree(fleet("local"), task("asked", fleets=["local"]), task("other"))
    live, scope = ledger(), Scope(targets=("run/asked",))
    made = make_plan(desired, live, permissions=ALLOWED, scope=scope, now_ms=NOW_MS)
    assert {str(one.key) for one in made.changes} == {"fleet/local", "run/asked"}
    assert check(made, desired, live, ALLOWED, scope) == ()
    whole = make_plan(desired, live, permissions=ALLOWED, now_ms=NOW_MS)
    details = [one.detail for one in check(whole, desired, live, ALLOWED, scope)]
    assert details == ["run/other is changed beside the targets"]


# -- data ------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("into", ["/elsewhere/data.snapshot-data-1", "/data", "/data.snapshot"])
def test_a_snapshot_that_nobody_would_find(into: str) -> None:
    """It lies beside its volume, and bears its uid."""
    plan, *rest = removal(applied=ASIDE)
    step_key = "volume.snapshot:volume/data"

    def put_elsewhere(step: Step) -> Step:
        return replace(step, arguments={**step.arguments, "into": into})

    assert found(edit_step(plan, step_key, put_elsewhere), *rest) == {Invariant.SNAPSHOT_BESIDE}


# -- order -----------------------------------------------------------------------------------


def drop_needs(plan: Plan, step_key: str) -> Plan:
    return edit_step(plan, step_key, lambda step: replace(step, needs=()))


def removals() -> tuple[Plan, Desired, Live, Permissions]:
    """A fleet that goes, with a volume on it and a run that has it mounted."""
    user = task("user", fleets=["old"], volumes=[{"name": "spare", "path": "/in"}])
    live = ledger(
        row(fleet("old")),
        row(volume("spare", on="old", deletion_policy="snapshot")),
        row(user, RunState.RUNNING),
        row(task("anywhere"), RunState.RUNNING),
    )
    desired = tree()
    return planned(desired, live, allow_destroy=True), desired, live, ALLOWED


def test_the_fixed_order_of_removal_is_clean() -> None:
    """Runs stop, volumes go, fleets go."""
    plan, *rest = removals()
    assert {"run.stop", "volume.snapshot", "fleet.remove"} <= {step.verb for step in plan.steps}
    assert found(plan, *rest) == set()


@pytest.mark.parametrize("hasty", ["volume.snapshot:volume/spare", "fleet.remove:fleet/old"])
def test_something_goes_under_its_users(hasty: str) -> None:
    """What does not wait may go first."""
    plan, *rest = removals()
    assert found(drop_needs(plan, hasty), *rest) == {Invariant.REMOVAL_ORDERED}


def test_a_successor_that_does_not_wait() -> None:
    """What takes a place begins when it is free: a restart, an archive, a volume that moved."""
    plan, *rest = example()
    assert found(drop_needs(plan, "run.submit:run/busy"), *rest) == {Invariant.SUCCESSOR_WAITS}
    assert found(drop_needs(plan, "run.archive:run/gone"), *rest) == {Invariant.SUCCESSOR_WAITS}
    desired = tree(fleet("local"), volume("data", path="/new"))
    live = ledger(row(fleet("local")), row(volume("data")))
    moved = planned(desired, live, allow_destroy=True)
    assert found(drop_needs(moved, "volume.make:volume/data"), desired, live, ALLOWED) == {
        Invariant.SUCCESSOR_WAITS
    }


# -- what is told ----------------------------------------------------------------------------


def test_a_loss_without_words() -> None:
    """What destroys says what is lost."""
    plan, *rest = example()
    mute = edit(plan, "fleet/old", lambda one: replace(one, at_stake=""))
    assert found(mute, *rest) == {Invariant.STAKE_TOLD}


@pytest.mark.parametrize("stake", [None, Stake(("other",), 1, 0)])
def test_work_that_ends_unnamed(stake: Stake | None) -> None:
    """A run whose work would be ended is named."""
    plan, *rest = example()
    mute = edit(plan, "run/gone", lambda one: replace(one, stake=stake))
    assert found(mute, *rest) == {Invariant.STAKE_TOLD}


def test_other_rules_than_those_applied_last() -> None:
    """A plan does not say that it was judged by the rules that it brings along."""
    plan, *rest = example()
    assert found(replace(plan, rules=Rules(delete_count=99)), *rest) == {
        Invariant.RULES_APPLIED_LAST
    }


@pytest.mark.parametrize("part", ["changes", "held", "warnings", "commit", "rules"])
def test_a_digest_of_something_else(part: str) -> None:
    """Each part of a plan is in its digest; the annex is not."""
    plan, desired, live, allowed = example()
    elements = [row(element("t", lr=one), RunState.RUNNING) for one in range(8)]
    held = planned(tree(broken=[key("run/x")]), ledger(*elements), allow_destroy=True).held
    assert held
    other = {"changes": (), "held": held, "warnings": ("!",), "commit": "", "rules": None}[part]
    broken = check(replace(plan, **{part: other}), desired, live, allowed)
    assert Invariant.DIGEST_RIGHT in {one.invariant for one in broken}
    annexed = replace(plan, annex={**plan.annex, "more": 1})
    assert check(annexed, desired, live, allowed) == ()


def test_a_protected_run_that_is_stopped() -> None:
    """`state: stopped` ends its work as well as a removal would."""
    stopped = task("guarded", state="stopped")
    live = ledger(row(task("guarded"), RunState.RUNNING))
    desired = tree(stopped)
    plan = planned(desired, live, allow_destroy=True)
    assert found(plan, desired, live, ALLOWED) == set()
    guarded = replace(live.resources[key("run/guarded")], protected=True)
    live = replace(live, resources={guarded.key: guarded})
    assert found(plan, desired, live, ALLOWED) == {Invariant.PROTECTED_STAYS}
    assert planned(desired, live, allow_destroy=True).is_empty
