"""What is renamed is the same: nothing is made, ended or run for it, whatever is renamed together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.ledgers import CountingIds
from fleetform.checker import check
from fleetform.model.apply import StepOutcome
from fleetform.model.plan import Permissions, Plan, Reason
from fleetform.plan.planner import plan
from fleetform.plan.serialize import dump
from fleetform.spec.desired import Declared, Desired, ResourceKey
from fleetform.store.ledger import StoredLedger
from fleetform.store.opening import ledger_in_memory
from unit.plan.trees import UID, element, fleet, task, tree, volume

FLEETS, VOLUMES, RUNS = ("f1", "f2"), ("v1", "v2"), ("r1", "r2", "r3")
SWEEP = "s1"
LABELS = tuple(
    [("fleet", name) for name in FLEETS]
    + [("volume", name) for name in VOLUMES]
    + [("run", name) for name in (*RUNS, SWEEP)]
)


@dataclass(frozen=True)
class World:
    """A tree without names: who refers to whom, by labels, and what is inherited."""

    uses: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]
    inheriting: frozenset[str]

    def declare(self, names: Mapping[tuple[str, str], str], base: str = "1") -> list[Declared]:
        found = [fleet(names["fleet", one]) for one in FLEETS]
        found += [
            volume(names["volume", one], on=names["fleet", FLEETS[0]], path=f"/{one}")
            for one in VOLUMES
        ]
        for label in RUNS:
            fleets, volumes, upstream = self.uses[label]
            own = {
                "commands": [label],
                "fleets": sorted(names["fleet", one] for one in fleets),
                "volumes": [{"name": names["volume", one], "path": f"/{one}"} for one in volumes],
                "depends_on": {
                    "runs": sorted(
                        ({"run": names["run", one]} for one in upstream),
                        key=lambda one: one["run"],
                    )
                },
            }
            own = {field: value for field, value in own.items() if value not in ([], {"runs": []})}
            inherited = {"env": {"BASE": base}} if label in self.inheriting else {}
            declared = task(names["run", label], own=own if inherited else None, **own, **inherited)
            found.append(declared)
        found += [element(names["run", SWEEP], lr=lr) for lr in (1, 2)]
        return found


@st.composite
def worlds(draw: st.DrawFn) -> World:
    uses = {}
    for number, label in enumerate(RUNS):
        uses[label] = (
            tuple(one for one in FLEETS if draw(st.booleans())),
            tuple(one for one in VOLUMES if draw(st.booleans())),
            tuple(one for one in (*RUNS[:number], SWEEP) if draw(st.booleans())),
        )
    return World(uses, frozenset(one for one in RUNS if draw(st.booleans())))


@st.composite
def renamings(draw: st.DrawFn) -> dict[tuple[str, str], str]:
    """New names for some; one that is given up is nobody's yet, or `spec` would refuse it."""
    return {
        (kind, label): f"{label}-{draw(st.integers(0, 9))}" if draw(st.booleans()) else label
        for kind, label in LABELS
    }


def desired(
    declared: list[Declared], moved: tuple[tuple[ResourceKey, ResourceKey], ...] = ()
) -> Desired:
    return replace(tree(*declared), moved=moved)


def carried_out(ledger: StoredLedger, wanted: Desired) -> Plan:
    live = ledger.read_live()
    permissions = Permissions()
    made = plan(wanted, live, permissions=permissions, now_ms=1)
    assert check(made, wanted, live, permissions) == ()
    if not made.changes:
        return made
    accepted = ledger.accept(made, dump(made), who="anna", now_ms=1)
    done: set[str] = set()
    while left := [step for step in made.steps if step.key not in done]:
        ready = [step for step in left if set(step.needs) <= done]
        assert ready
        outward = [step for step in ready if step.verb.startswith(("fleet.", "volume."))]
        ledger.begin_steps(accepted.apply_uid, outward, now_ms=1)
        refused = ledger.finish_steps(
            accepted.apply_uid, ready, [StepOutcome(step.key) for step in ready], now_ms=1
        )
        assert refused == {}
        done.update(step.key for step in ready)
    ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=1)
    return made


def end_runs(ledger: StoredLedger, states: Mapping[str, str]) -> None:
    """Have each run stand where it is said: `done`, `running`, or as it was submitted."""
    with ledger._database.write() as transaction:
        for name, state in states.items():
            if state != "waiting":
                transaction.execute(
                    "UPDATE runs SET state = ?, final = ?, started_at_ms = 1 WHERE name = ?",
                    (state, int(state == "done"), name),
                )
                transaction.execute(
                    "UPDATE attempts SET state = ? WHERE run_uid ="
                    " (SELECT uid FROM runs WHERE name = ?)",
                    ("finished" if state == "done" else "running", name),
                )


def uids(ledger: StoredLedger) -> dict[str, str]:
    """Who there is, by uid, and by nothing that a name is a part of."""
    return {row.uid: row.type for row in ledger.read_live().resources.values()}


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(
    worlds(),
    renamings(),
    st.lists(st.sampled_from(["done", "running", "waiting"]), min_size=5, max_size=5),
)
def test_a_renaming_changes_nothing(world, names, states):
    """Nothing runs, nobody is made or goes, a second plan is empty, and so it is on the way back."""
    ledger = ledger_in_memory(UID, CountingIds(), now_ms=1)
    before = {label: label[1] for label in LABELS}
    carried_out(ledger, desired(world.declare(before)))
    runs = (*RUNS, f"{SWEEP}[lr=1]", f"{SWEEP}[lr=2]")
    end_runs(ledger, dict(zip(runs, states, strict=True)))
    there = uids(ledger)
    moved = tuple(
        (ResourceKey(kind, label), ResourceKey(kind, names[kind, label]))
        for kind, label in LABELS
        if names[kind, label] != label
    )

    made = carried_out(ledger, desired(world.declare(names), moved))
    assert {step.verb for step in made.steps} <= {"resource.move"}
    assert made.held == ()
    assert uids(ledger) == there
    again = plan(
        desired(world.declare(names), moved),
        ledger.read_live(),
        permissions=Permissions(),
        now_ms=1,
    )
    assert (again.changes, again.held) == ((), ())
    # The entries may go as well: nothing but the names in the ledger counts.
    bare = plan(
        desired(world.declare(names)), ledger.read_live(), permissions=Permissions(), now_ms=1
    )
    assert (bare.changes, bare.held) == ((), ())

    back = tuple((after, before) for before, after in moved)
    made = carried_out(ledger, desired(world.declare(before), back))
    assert {step.verb for step in made.steps} <= {"resource.move"}
    assert uids(ledger) == there
    ledger.close()


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), renamings())
def test_a_base_that_changes_after_a_renaming_reruns_nothing(world, names):
    """What a document says itself is known by its new names: a base's change is not its own."""
    ledger = ledger_in_memory(UID, CountingIds(), now_ms=1)
    before = {label: label[1] for label in LABELS}
    carried_out(ledger, desired(world.declare(before)))
    runs = (*RUNS, f"{SWEEP}[lr=1]", f"{SWEEP}[lr=2]")
    end_runs(ledger, dict.fromkeys(runs, "done"))
    moved = tuple(
        (ResourceKey(kind, label), ResourceKey(kind, names[kind, label]))
        for kind, label in LABELS
        if names[kind, label] != label
    )
    carried_out(ledger, desired(world.declare(names), moved))
    changed = plan(
        desired(world.declare(names, base="2"), moved),
        ledger.read_live(),
        permissions=Permissions(),
        now_ms=1,
    )
    assert {step.verb for step in changed.steps} <= {"run.update"}
    assert all(one.reasons == (Reason.INHERITED_CHANGED,) for one in changed.changes)
    assert len(changed.changes) == len(world.inheriting)
    ledger.close()


def test_a_tombstone_gives_way():
    """A run that has the name of one that was archived takes it, and the other the free one."""
    ledger = ledger_in_memory(UID, CountingIds(), now_ms=1)
    carried_out(ledger, desired([task("old"), task("new", commands=["other"])]))
    end_runs(ledger, {"old": "done", "new": "done"})
    uid = {key.name: row.uid for key, row in ledger.read_live().resources.items()}
    carried_out(ledger, desired([task("old")]))
    moved = ((ResourceKey("run", "old"), ResourceKey("run", "new")),)
    made = carried_out(ledger, desired([task("new")], moved))
    assert [step.verb for step in made.steps] == ["resource.move"]
    rows = ledger.read_live().resources
    assert rows[ResourceKey("run", "new")].uid == uid["old"]
    assert rows[ResourceKey("run", "old")].uid == uid["new"]
    assert rows[ResourceKey("run", "old")].archived
    ledger.close()


def test_what_changes_too_is_changed_under_its_new_name():
    """Renamed and changed: the old row decides what the change comes to."""
    ledger = ledger_in_memory(UID, CountingIds(), now_ms=1)
    carried_out(ledger, desired([task("old"), fleet("f1")]))
    end_runs(ledger, {"old": "done"})
    moved = (
        (ResourceKey("run", "old"), ResourceKey("run", "new")),
        (ResourceKey("fleet", "f1"), ResourceKey("fleet", "f2")),
    )
    wanted = desired([task("new", commands=["other"]), fleet("f2", nodes=2)], moved)
    made = carried_out(ledger, wanted)
    assert [step.verb for step in made.steps] == [
        "resource.move",
        "fleet.update",
        "resource.move",
        "run.submit",
    ]
    assert all(one.moved_from for one in made.changes)
    hosts = [(one.fleet, one.name) for one in ledger.read_live().instances]
    assert hosts == [("f2", "f2-0"), ("f2", "f2-1")]
    assert plan(wanted, ledger.read_live(), permissions=Permissions(), now_ms=1).changes == ()
    ledger.close()


def test_a_name_that_is_taken_is_not_given_away():
    """Where both names exist nothing is renamed, and the plan says so."""
    ledger = ledger_in_memory(UID, CountingIds(), now_ms=1)
    carried_out(ledger, desired([task("old"), task("new")]))
    moved = ((ResourceKey("run", "old"), ResourceKey("run", "new")),)
    made = plan(
        desired([task("new")], moved), ledger.read_live(), permissions=Permissions(), now_ms=1
    )
    assert [str(one.key) for one in made.changes] == ["run/old"]
    assert "run/old was not renamed" in made.warnings[0]
    ledger.close()


def test_a_run_that_is_just_starting_keeps_its_name():
    """Its host is told what it is called; two messages must not say different things."""
    ledger = ledger_in_memory(UID, CountingIds(), now_ms=1)
    carried_out(ledger, desired([task("old")]))
    moved = ((ResourceKey("run", "old"), ResourceKey("run", "new")),)
    wanted = desired([task("new")], moved)
    made = plan(wanted, ledger.read_live(), permissions=Permissions(), now_ms=1)
    with ledger._database.write() as transaction:
        transaction.execute("UPDATE attempts SET state = 'reserved'")
        transaction.execute("UPDATE runs SET state = 'provisioning'")
    # The plan was made a moment before.
    accepted = ledger.accept(made, dump(made), who="anna", now_ms=1)
    (step,) = made.steps
    refused = ledger.finish_steps(accepted.apply_uid, [step], [StepOutcome(step.key)], now_ms=1)
    assert "is being started under its current names" in refused[step.key]
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="", now_ms=1)
    assert ResourceKey("run", "old") in ledger.read_live().resources
    held = plan(wanted, ledger.read_live(), permissions=Permissions(), now_ms=1)
    assert held.changes == ()
    assert "is being started under its current names" in held.held[0].detail
    ledger.close()
