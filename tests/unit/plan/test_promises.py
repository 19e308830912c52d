"""What holds for every tree and every ledger: the promises that a plan stands on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.checker import check
from fleetform.model.live import Live, LiveResource, Work
from fleetform.model.plan import HeldBy, Permissions, Plan, Reason
from fleetform.model.run import FINAL, RunState
from fleetform.model.run_state import Outdated
from fleetform.plan.phase import Phase, phase
from fleetform.plan.serialize import dump, load
from fleetform.spec.desired import Declared, Desired, ResourceKey, Rules
from unit.plan.trees import carry_out, element, fleet, ledger, planned, row, task, tree, volume

NAMES = ("a", "b", "c", "d")
CAUSES = {
    Reason.EXECUTION_CHANGED,
    Reason.RERUN_ASKED,
    Reason.RESUMED,
}


@st.composite
def tasks(draw: st.DrawFn, name: str) -> Declared:
    """One task; what it inherits is its environment, the rest is its own."""
    own: dict[str, Any] = {"commands": [draw(st.sampled_from(["x", "y"]))]}
    optional = {
        "priority": st.integers(0, 2),
        "rerun": st.integers(0, 2),
        "state": st.sampled_from(["running", "stopped"]),
        "on_change": st.sampled_from(["hold", "restart", "after-finish"]),
        "protect": st.booleans(),
        "fleets": st.sampled_from([["f"], []]),
        "volumes": st.just([{"name": "v", "path": "/in"}]),
        "description": st.sampled_from(["one", "two"]),
    }
    for field, values in optional.items():
        if draw(st.integers(0, 3)) == 0:
            own[field] = draw(values)
    inherited = draw(st.sampled_from([{}, {"env": {"BASE": "1"}}, {"env": {"BASE": "2"}}]))
    return task(name, own=own, **own, **inherited)


@st.composite
def declarations(draw: st.DrawFn) -> list[Declared]:
    """What a tree may declare; references are always to what it declares."""
    found = [draw(tasks(name)) for name in NAMES if draw(st.booleans())]
    found += [
        element("s", lr=lr, batch=batch)
        for lr in (1, 2)
        for batch in (8, 16)
        if draw(st.booleans())
    ]
    used = {key for one in found for key in one.references}
    if ResourceKey("volume", "v") in used or draw(st.booleans()):
        policy = draw(st.sampled_from([{}, {"deletion_policy": "delete"}, {"protect": True}]))
        found.append(volume("v", "f", draw(st.sampled_from(["/1", "/2"])), **policy))
        used.add(ResourceKey("fleet", "f"))
    if ResourceKey("fleet", "f") in used or draw(st.booleans()):
        found.append(fleet("f", nodes=draw(st.integers(0, 2)), protect=draw(st.booleans())))
    return found


RULES = st.builds(
    Rules,
    allow_destroy=st.booleans(),
    delete_percent=st.sampled_from([0, 50, 100]),
    delete_count=st.integers(0, 2),
)
PERMISSIONS = st.builds(
    Permissions,
    allow_destroy=st.booleans(),
    allow_restart=st.booleans(),
    allow_deletes=st.none() | st.integers(0, 4),
    destroy=st.sampled_from([False, False, False, True]),
)
UNREAD = st.sampled_from([(), (), (), ("odd.yaml",)])
STATES = st.sampled_from(list(RunState))


@st.composite
def ledgers(draw: st.DrawFn) -> Live:
    rows: list[LiveResource] = []
    for declared in draw(declarations()):
        one = row(declared, draw(STATES))
        if one.run is not None:
            over = one.run.state in FINAL
            one = replace(
                one,
                archived=over and not one.protected and draw(st.booleans()),
                run=replace(one.run, stale=draw(st.sampled_from(Outdated))),
            )
        rows.append(one)
    live = ledger(*rows, rules=draw(st.none() | RULES))
    at_work = [one.key.name for one in rows if one.run is not None and phase(one) is Phase.ACTIVE]
    if ResourceKey("fleet", "f") not in live.resources or not at_work:
        return live
    here = draw(st.sets(st.sampled_from(at_work)))
    return replace(live, work=tuple(Work(name, "f", 1, 0) for name in sorted(here)))


@st.composite
def situations(draw: st.DrawFn) -> tuple[Desired, Live, Permissions]:
    live = draw(ledgers())
    declared = draw(declarations())
    known = [*(one.key for one in declared), *live.resources]
    broken = draw(st.lists(st.sampled_from(known), max_size=1)) if known else []
    beyond = draw(st.lists(st.sampled_from(declared), max_size=2, unique_by=id)) if declared else []
    declared = [one for one in declared if one not in beyond]
    return (
        tree(*declared, rules=draw(RULES), broken=broken, unread=draw(UNREAD), beyond=beyond),
        live,
        draw(PERMISSIONS),
    )


def make(situation: tuple[Desired, Live, Permissions]) -> Plan:
    desired, live, permissions = situation
    return planned(
        desired,
        live,
        allow_destroy=permissions.allow_destroy,
        allow_restart=permissions.allow_restart,
        allow_deletes=permissions.allow_deletes,
        destroy=permissions.destroy,
    )


thorough = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@thorough
@given(situations())
def test_a_second_reader_finds_nothing(situation: tuple[Desired, Live, Permissions]) -> None:
    """No plan breaks an invariant of the checker, which shares no code with the planner."""
    violations = check(make(situation), *situation)
    assert [one.sentence for one in violations] == []


@thorough
@given(situations())
def test_it_converges_and_then_rests(situation: tuple[Desired, Live, Permissions]) -> None:
    """Carry a plan out, let what runs come to its end, and a few plans later nothing is left."""
    desired, live, permissions = situation
    for _ in range(12):
        plan = make((desired, live, permissions))
        if plan.is_empty:
            break
        live, _ = carry_out(plan, live)
    assert make((desired, live, permissions)).is_empty


@thorough
@given(situations())
def test_applied_again_at_once_it_is_empty(situation: tuple[Desired, Live, Permissions]) -> None:
    """Whatever was not held is done after one plan: a second one has nothing of it left."""
    desired, live, permissions = situation
    plan = make(situation)
    after, _ = carry_out(plan, live)
    again = make((desired, after, permissions))
    done = {change.key for change in plan.changes}
    # What the first plan released may go now: what it kept waiting, and a budget that is a
    # share of what there is. And a run that was stopped in order to stop is now over.
    released = {one.change.key for one in plan.held}
    released.update(one.change.key for one in again.held)
    assert {change.key for change in again.changes} & (done - released) == set()


@thorough
@given(situations())
def test_nothing_runs_again_without_a_reason(
    situation: tuple[Desired, Live, Permissions],
) -> None:
    """A run that is over is submitted only for a reason from the list."""
    _, live, _ = situation
    plan = make(situation)
    for change in plan.changes:
        old = live.resources.get(change.key)
        if old is None or old.run is None or old.run.state not in FINAL:
            continue
        if any(step.verb == "run.submit" for step in change.steps):
            assert set(change.reasons) & CAUSES


@thorough
@given(situations())
def test_no_run_starts_twice(situation: tuple[Desired, Live, Permissions]) -> None:
    """Within one plan each name is submitted once at most."""
    _, started = carry_out(make(situation), situation[1])
    assert max(Counter(started).values(), default=0) <= 1


@thorough
@given(situations())
def test_nothing_protected_is_lost(situation: tuple[Desired, Live, Permissions]) -> None:
    """Every protected row is there after the plan, as the same thing."""
    _, live, _ = situation
    after, started = carry_out(make(situation), live)
    for key, old in live.resources.items():
        if old.protected:
            assert key in after.resources
            assert not after.resources[key].archived
            assert key.name not in started or key.kind != "run"


@thorough
@given(situations())
def test_budgets_hold(situation: tuple[Desired, Live, Permissions]) -> None:
    """No more running work ends, and no more is deleted, than rules and flags allow."""
    _, live, permissions = situation
    if permissions.destroy:
        return
    after, _ = carry_out(make(situation), live)
    rules = live.rules or Rules()
    for kind in ("run", "fleet", "volume"):
        rows = {
            key: one for key, one in live.resources.items() if key.kind == kind and not one.archived
        }
        limit = max(
            rules.delete_count,
            len(rows) * rules.delete_percent // 100,
            permissions.allow_deletes or 0,
        )
        lost = sum(
            key not in after.resources if kind != "run" else _was_cut_short(one, after)
            for key, one in rows.items()
        )
        if kind == "volume":
            continue  # Most are forgotten, which loses nothing.
        assert lost <= limit


@st.composite
def fleets_that_go(draw: st.DrawFn) -> tuple[Desired, Live, Permissions]:
    """Runs at work on two fleets; of both some leave the tree, or are divided in another way."""
    tasks = [task(name) for name in NAMES] + [element("s", lr=lr) for lr in (1, 2, 3)]
    hosts = [fleet(name, update={"strategy": "recreate"}) for name in ("f", "g")]
    divided = [
        fleet(name, update={"strategy": "recreate"}, sharing="blocks", blocks=2)
        for name in ("f", "g")
    ]
    live = ledger(
        *map(row, hosts),
        *(row(one, draw(st.sampled_from([RunState.RUNNING, RunState.PENDING]))) for one in tasks),
        rules=Rules(allow_destroy=True, delete_percent=0, delete_count=draw(st.integers(0, 4))),
    )
    work = tuple(
        Work(one.key.name, name, 1, 0)
        for one in tasks
        if phase(live.resources[one.key]) is Phase.ACTIVE
        for name in sorted(draw(st.sets(st.sampled_from(["f", "g"]))))
    )
    left = [
        *(one for one in tasks if draw(st.booleans())),
        *(
            draw(st.sampled_from([one, other]))
            for one, other in zip(hosts, divided, strict=True)
            if draw(st.booleans())
        ),
    ]
    allowed = Permissions(allow_deletes=draw(st.none() | st.integers(0, 9)))
    return tree(*left, rules=live.rules), replace(live, work=work), allowed


@thorough
@given(fleets_that_go())
def test_runs_that_end_with_their_fleet_are_within_the_budget(
    situation: tuple[Desired, Live, Permissions],
) -> None:
    """Counted is who ends and not who says so, and the plans that follow get to the rest."""
    desired, live, permissions = situation
    plan = make(situation)
    assert [one.sentence for one in check(plan, *situation)] == []
    ended = {step.resource.name for step in plan.steps if step.verb == "run.stop"}
    ended -= {key.name for key, one in live.resources.items() if phase(one) is not Phase.ACTIVE}
    fleets = {change.key.name for change in plan.changes if change.key.kind == "fleet"}
    ended |= {one.run for one in live.work if one.fleet in fleets}
    assert live.rules is not None
    limit = max(live.rules.delete_count, permissions.allow_deletes or 0)
    assert len(ended) <= limit
    assert len(fleets) <= limit
    # What it asks for is enough.
    asked = {one.cure for one in plan.held if one.by is HeldBy.BUDGET}
    assert len(asked) <= 1
    for cure in asked:
        enough = Permissions(allow_deletes=int(cure.rpartition(" ")[2]))
        assert make((desired, live, enough)).held == ()


def _was_cut_short(old: LiveResource, after: Live) -> bool:
    run = old.run
    assert run is not None
    if run.state in FINAL or run.state in {RunState.PENDING, RunState.SUBMITTED}:
        return False
    new = after.resources[old.key].run
    assert new is not None
    return new.state is RunState.STOPPED


@thorough
@given(situations(), st.randoms(use_true_random=False))
def test_order_is_irrelevant(situation: tuple[Desired, Live, Permissions], shuffler: Any) -> None:
    """Trees and ledgers are listed in any order; the plan is the same to the last byte."""
    desired, live, permissions = situation
    declared = list(desired.resources.items())
    rows = list(live.resources.items())
    shuffler.shuffle(declared)
    shuffler.shuffle(rows)
    turned = (
        replace(desired, resources=dict(declared)),
        replace(live, resources=dict(rows)),
        permissions,
    )
    assert dump(make(turned)) == dump(make(situation))


@thorough
@given(situations())
def test_every_plan_survives_its_file(situation: tuple[Desired, Live, Permissions]) -> None:
    """Writing and reading is exact."""
    plan = make(situation)
    assert load(dump(plan)) == plan
