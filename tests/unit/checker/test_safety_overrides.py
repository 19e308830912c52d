"""What stands above a plan, each broken once: overrides, freeze windows, other owners."""

from __future__ import annotations

from dataclasses import replace

from fleetform.checker import Invariant, check
from fleetform.model.live import Live
from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import Permissions, Plan
from fleetform.model.volume import Claim
from fleetform.spec.desired import Desired, FreezeWindow, Rules
from unit.checker.test_check import example, found, key
from unit.plan.trees import NOW_MS, fleet, ledger, planned, row, task, tree, volume

OPEN = FreezeWindow("holidays", begin=0, end=NOW_MS // 1000)
SHUT = FreezeWindow("long ago", begin=0, end=1)


def override(kind: OverrideKind, target: str = "", until_ms: int | None = None) -> Override:
    return Override(4, kind, target, "smoke", "ada@node1", 0, until_ms)


def under(plan: Plan, *overrides: Override) -> Plan:
    """The same plan, telling of these."""
    return replace(plan, overrides=overrides)


def beneath(live: Live, *overrides: Override) -> Live:
    return replace(live, overrides=overrides)


def test_an_override_that_is_not_told_of() -> None:
    """Whoever reads a plan must see what stands above the tree."""
    plan, desired, live, allowed = example()
    pause = override(OverrideKind.PAUSE)
    assert found(plan, desired, beneath(live, pause), allowed) == {Invariant.OVERRIDES_LISTED}
    assert found(under(plan, pause), desired, beneath(live, pause), allowed) == set()


def test_an_override_that_is_not_in_force() -> None:
    """One that is over, or that nobody made, is no news."""
    plan, desired, live, allowed = example()
    over = override(OverrideKind.PAUSE, until_ms=NOW_MS)
    assert found(under(plan, over), desired, beneath(live, over), allowed) == {
        Invariant.OVERRIDES_LISTED
    }


def test_an_override_of_what_is_renamed() -> None:
    """A stop, and a drain, go with what they are about: neither keeps a renaming from its plan."""
    desired = replace(
        tree(fleet("main"), task("eval", fleets=["main"])),
        moved=((key("fleet/local"), key("fleet/main")), (key("run/train"), key("run/eval"))),
    )
    stop = override(OverrideKind.STOP, "run/train")
    drain = replace(override(OverrideKind.DRAIN, "host/local-0"), number=5)
    live = ledger(row(fleet("local")), row(task("train", fleets=["local"])))
    made = planned(desired, beneath(live, stop, drain))
    assert [str(step.resource) for step in made.steps] == ["fleet/main", "run/eval"]
    elsewhere = under(made, replace(stop, target="run/other"), drain)
    assert found(elsewhere, desired, beneath(live, stop, drain), Permissions()) == {
        Invariant.OVERRIDES_LISTED
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


def test_what_somebody_else_owns() -> None:
    """Making or taking it is found; leaving it alone is not."""
    desired, live = tree(fleet("local"), volume("data")), ledger(row(fleet("local")))
    plan = planned(desired, live)
    claims = {key("volume/data"): Claim("/data", "other-uid", "theirs", "volume v", 1000)}
    owned = replace(live, claims=claims)
    assert found(plan, desired, owned, Permissions()) == {Invariant.OWNERS_KEPT}
    assert found(planned(desired, owned), desired, owned, Permissions()) == set()


def test_what_is_not_there_to_be_taken_in() -> None:
    """Taking it in is found; making it anew is not."""
    desired, live = tree(fleet("local"), volume("data")), ledger(row(fleet("local")))
    imported = replace(desired, imports=(key("volume/data"),))
    plan = planned(imported, live)
    claims = {key("volume/data"): Claim("/data", "", missing="volume/data")}
    gone = replace(live, claims=claims)
    assert found(plan, imported, gone, Permissions()) == {Invariant.OWNERS_KEPT}
    assert found(planned(desired, gone), desired, gone, Permissions()) == set()
