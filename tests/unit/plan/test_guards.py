"""What no flag gets past: protection, a freeze, a window; whatever is declared and whatever is live."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.checker import check
from fleetform.model.claim import Claim
from fleetform.model.live import Live
from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import HeldBy, Permissions, Plan, Scope
from fleetform.model.run import FINAL, RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.spec.desired import Desired, FreezeWindow, ResourceKey, Rules
from unit.plan.test_promises import situations
from unit.plan.trees import NOW_MS, carry_out, fleet, ledger, planned, row, task, tree, volume

OPEN = FreezeWindow("holidays", begin=0, end=NOW_MS // 1000 + 3600)
NARROW = FreezeWindow("careful", begin=0, end=NOW_MS // 1000 + 3600, only="destructive")
SHUT = FreezeWindow("long ago", begin=0, end=1)
EVERYTHING = Permissions(allow_destroy=True, allow_restart=True, allow_deletes=10**6)


def held_by(plan: Plan) -> dict[str, HeldBy]:
    return {str(one.change.key): one.by for one in plan.held}


def override(kind: OverrideKind, target: str = "", until_ms: int | None = None) -> Override:
    return Override(1, kind, target, "smoke", "ada@node1", 0, until_ms)


def make(desired: Desired, live: Live, scope: Scope | None = None) -> Plan:
    """A plan with every permission, which the second reader finds nothing in."""
    scope = scope or Scope()
    plan = make_plan(desired, live, permissions=EVERYTHING, scope=scope, now_ms=NOW_MS)
    assert check(plan, desired, live, EVERYTHING, scope) == ()
    return plan


# -- promises --------------------------------------------------------------------------------

OVERRIDES = st.lists(
    st.builds(
        override,
        st.sampled_from([one for one in OverrideKind if one is not OverrideKind.TAKEOVER]),
        st.sampled_from(["run/*", "run/sweep", "run/a*"]),
        st.sampled_from([None, NOW_MS, NOW_MS + 1]),
    ),
    max_size=2,
)


@st.composite
def guarded(draw: st.DrawFn) -> tuple[Desired, Live, Permissions, Scope]:
    """A situation with everything that stands above it, and with each flag that there is."""
    desired, live, permissions = draw(situations())
    windows = draw(st.lists(st.sampled_from([OPEN, NARROW, SHUT]), max_size=2, unique=True))
    if live.rules is not None:
        live = replace(live, rules=replace(live.rules, freeze=tuple(windows)))
    removed = [key for key in live.resources if key not in desired.resources]
    let_go = draw(st.lists(st.sampled_from(removed), max_size=2, unique=True)) if removed else []
    known = sorted({f"{key.kind}/{key.name[0]}*" for key in (*live.resources, *desired.resources)})
    scope = Scope(
        targets=tuple(draw(st.lists(st.sampled_from(known), max_size=2))) if known else (),
        excludes=tuple(draw(st.lists(st.sampled_from(known), max_size=1))) if known else (),
        replaces=tuple(draw(st.lists(st.sampled_from(known), max_size=2))) if known else (),
    )
    return (
        replace(desired, removed=tuple(let_go)),
        replace(live, overrides=tuple(draw(OVERRIDES))),
        permissions,
        scope if not permissions.destroy else Scope(),
    )


@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
@given(guarded())
def test_no_flag_gets_past_the_guards(case: tuple[Desired, Live, Permissions, Scope]) -> None:
    """
    Nothing protected is lost or ended, nothing is done under a freeze or in a window.

    And a second reader agrees, whatever flags, targets, replacements and `removed:` were given.
    """
    desired, live, permissions, scope = case
    plan = make_plan(desired, live, permissions=permissions, scope=scope, now_ms=NOW_MS)
    assert check(plan, desired, live, permissions, scope) == ()
    ended = {step.resource for step in plan.steps if step.verb == "run.stop"}
    after, started = carry_out(plan, live)
    for key, old in live.resources.items():
        if old.protected and not old.archived:
            assert not after.resources[key].archived
            assert after.resources[key].uid == old.uid
            assert old.run is None or old.run.state in FINAL or key not in ended or _waits(old)
            assert key.kind != "run" or key.name not in started
    if any(one.kind is OverrideKind.FREEZE for one in plan.overrides):
        assert plan.is_empty


def _waits(old: object) -> bool:
    run = getattr(old, "run", None)
    return run is not None and run.state in {RunState.PENDING, RunState.SUBMITTED}


# -- each by itself --------------------------------------------------------------------------


def test_a_freeze_holds_everything_and_names_its_author() -> None:
    """Also what is only made, and the rules; what was over before is not told of."""
    over = override(OverrideKind.PAUSE, until_ms=NOW_MS)
    freeze = override(OverrideKind.FREEZE)
    live = replace(ledger(row(task("old"))), overrides=(over, freeze))
    plan = make(tree(fleet("local"), rules=Rules(delete_count=1)), live)
    assert plan.is_empty
    assert set(held_by(plan)) == {"environment/lab", "fleet/local", "run/old"}
    assert {one.detail for one in plan.held} == {"emergency freeze by ada@node1: smoke"}
    assert plan.overrides == (freeze,)


def test_a_stop_lets_through_what_ends() -> None:
    """The commit that makes it permanent is applied while it holds; what begins is held."""
    live = replace(
        ledger(row(task("a"), RunState.RUNNING), row(task("b"), RunState.RUNNING)),
        overrides=(override(OverrideKind.STOP, "run/*"),),
    )
    plan = make(tree(task("a", state="stopped"), task("c")), live)
    assert {str(one.key) for one in plan.changes} == {"run/a", "run/b"}
    assert held_by(plan) == {"run/c": HeldBy.OVERRIDE}
    assert plan.held[0].cure == "`fleetform emergency lift 1`"


@pytest.mark.parametrize(
    ("window", "held"),
    [(OPEN, {"fleet/old", "run/new"}), (NARROW, {"fleet/old"}), (SHUT, set())],
)
def test_a_window_holds_what_it_is_for(window: FreezeWindow, held: set[str]) -> None:
    """All, or what destroys; its reason is in the plan, and no time is."""
    rules = Rules(freeze=(window,))
    plan = make(tree(task("new"), rules=rules), replace(ledger(row(fleet("old"))), rules=rules))
    assert set(held_by(plan)) == held
    assert {one.detail for one in plan.held} <= {window.reason}


def test_windows_are_those_last_applied() -> None:
    """One that the commit brings holds the next plan; one that it takes away holds this one."""
    plan = make(tree(task("new"), rules=Rules(freeze=(OPEN,))), ledger(rules=Rules()))
    assert {str(one.key) for one in plan.changes} == {"environment/lab", "run/new"}
    assert "rules that change count from the next plan on" in plan.warnings[0]
    plan = make(tree(task("new")), ledger(rules=Rules(freeze=(OPEN,))))
    assert held_by(plan) == {"environment/lab": HeldBy.WINDOW, "run/new": HeldBy.WINDOW}


def test_the_digest_has_the_window_and_not_its_times() -> None:
    """The same plan a minute later is the same plan."""
    rules = Rules(freeze=(OPEN,))
    desired, live = tree(task("new"), rules=rules), ledger(rules=rules)
    first, second = (
        make_plan(desired, live, permissions=EVERYTHING, now_ms=NOW_MS + late)
        for late in (0, 60_000)
    )
    assert first.digest == second.digest
    assert first.annex["windows"] == [
        {"reason": "holidays", "only": "all", "open": True, "begin_ms": 0,
         "end_ms": NOW_MS + 3_600_000}
    ]  # fmt: skip


def test_what_somebody_else_owns_is_held() -> None:
    """With every permission, and with the owner's name."""
    key = ResourceKey("volume", "data")
    live = replace(ledger(row(fleet("local"))), claims={key: Claim("/data", "u", "theirs")})
    plan = make(tree(fleet("local"), volume("data"), task("t", volumes=[{"name": "data"}])), live)
    assert held_by(plan) == {"volume/data": HeldBy.OWNER, "run/t": HeldBy.DEPENDENCY}
    assert plan.held[1].detail == "/data is environment theirs (u)"


@pytest.mark.parametrize(
    ("there", "gone", "warned"), [(3, 3, True), (5, 3, True), (6, 3, False), (2, 2, False)]
)
def test_that_much_goes_is_said(there: int, gone: int, warned: bool) -> None:
    """More than half, and more than two; held or not."""
    tasks = [task(f"t{number}") for number in range(there)]
    live = ledger(*(row(one, RunState.RUNNING) for one in tasks))
    for permissions in (EVERYTHING, Permissions()):
        plan = make_plan(
            tree(*tasks[gone:], fleet("f")), live, permissions=permissions, now_ms=NOW_MS
        )
        assert any("more than half" in one for one in plan.warnings) == warned


def test_a_protected_run_at_work_is_not_stopped_by_its_document() -> None:
    """`state: stopped` is held as a removal is; one that waits loses nothing."""
    for state, held in ((RunState.RUNNING, True), (RunState.PENDING, False)):
        live = ledger(row(task("a", protect=True), state))
        plan = make(tree(task("a", protect=True, state="stopped")), live)
        assert held_by(plan) == ({"run/a": HeldBy.PROTECTION} if held else {})


def test_what_is_protected_is_not_forgotten() -> None:
    """What nobody knows of any more is protected by nobody."""
    live = ledger(row(volume("data", protect=True)))
    desired = replace(tree(fleet("local")), removed=(ResourceKey("volume", "data"),))
    assert held_by(make(desired, live)) == {"volume/data": HeldBy.PROTECTION}


def test_a_fleet_with_a_protected_volume_stays() -> None:
    """A volume that stays keeps its fleet, whatever was allowed."""
    live = ledger(row(fleet("old")), row(volume("data", on="old", protect=True)))
    plan = make(tree(), live)
    assert held_by(plan) == {"fleet/old": HeldBy.DEPENDENCY, "volume/data": HeldBy.PROTECTION}


def test_a_renaming_is_no_loss_for_what_is_protected() -> None:
    """The same thing under another name is the same thing."""
    live = ledger(row(task("a", protect=True), RunState.RUNNING))
    desired = replace(
        tree(task("b", protect=True)),
        moved=((ResourceKey("run", "a"), ResourceKey("run", "b")),),
    )
    plan = make(desired, live)
    assert [step.verb for step in plan.steps] == ["resource.move"]
    assert plan.held == ()


def test_a_replacement_that_somebody_asks_for_is_held() -> None:
    """`--replace` is a flag like any other."""
    live = ledger(row(task("train", protect=True)))
    plan = make(tree(task("train", protect=True)), live, Scope(replaces=("run/train",)))
    assert held_by(plan) == {"run/train": HeldBy.PROTECTION}


def test_a_volume_is_put_aside_where_the_plan_says() -> None:
    """Beside where it lay, by the policy last applied; nothing is at stake."""
    document = {"path": "/data", "deletion_policy": "snapshot"}
    live = ledger(row(fleet("local")), row(volume("data", **document)))
    plan = planned(tree(fleet("local")), live)
    (step,) = plan.steps
    uid = live.resources[ResourceKey("volume", "data")].uid
    assert step.arguments["into"] == f"/data.snapshot-data-{uid[:12]}"
    assert plan.changes[0].at_stake == (
        f"nothing: its data will be in {step.arguments['into']} on fleet local"
    )
    assert not plan.changes[0].destructive
