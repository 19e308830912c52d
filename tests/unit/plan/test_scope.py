"""A part of a plan: what was asked for, what it needs, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.app.plan import checked_plan
from fleetform.app.problems import ScopeProblem
from fleetform.checker import check
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.live import Work
from fleetform.model.plan import Action, HeldBy, Permissions, Plan, Reason, Scope
from fleetform.model.predicates import AtWork
from fleetform.model.run import RunState
from fleetform.plan.exit import plan_code
from fleetform.plan.planner import plan
from fleetform.plan.preconditions import failing
from fleetform.plan.scope import idle_addresses
from fleetform.spec.desired import Desired, ResourceKey, Rules
from fleetform.views.reasons import reason_sentence
from unit.plan.trees import NOW_MS, element, fleet, ledger, row, task, tree, volume

TREE = tree(
    fleet("local"),
    fleet("other"),
    volume("data"),
    task("base", fleets=["local"]),
    task("user", fleets=["local"], volumes=[{"name": "data", "path": "/in"}], upstream=["base"]),
    task("alone"),
    element("sweep", lr=1),
    element("sweep", lr=2),
)


def scoped(desired: Desired, live, *, allow: bool = False, **scope: tuple[str, ...]) -> Plan:
    permissions = Permissions(allow_destroy=allow, allow_restart=allow)
    of = Scope(**scope)
    made = plan(desired, live, permissions=permissions, scope=of, now_ms=1)
    assert check(made, desired, live, permissions, of) == ()
    return made


def names(changes) -> list[str]:
    return [str(one.key) for one in changes]


def test_a_target_brings_what_it_needs():
    """A run comes with its fleet, its volumes and the runs it waits for; that is said."""
    made = scoped(TREE, ledger(), targets=("user",))
    assert names(made.changes) == ["fleet/local", "run/base", "run/user", "volume/data"]
    assert made.warnings == (
        "fleet/local, run/base, volume/data are planned too, because the targets need them.",
    )
    assert names(one.change for one in made.deferred) == [
        "fleet/other",
        "run/alone",
        "run/sweep[lr=1]",
        "run/sweep[lr=2]",
    ]
    assert {one.why for one in made.deferred} == {"not a `--target`"}


def test_a_run_that_may_go_anywhere_brings_the_fleets():
    """While none is there: it would wait for ever, and nobody knows which of them it will get."""
    free = tree(fleet("local"), fleet("other"), volume("data"), task("train"))
    made = scoped(free, ledger(), targets=("train",))
    assert names(made.changes) == ["fleet/local", "fleet/other", "run/train"]
    made = scoped(free, ledger(row(fleet("other"))), targets=("train",))
    assert names(made.changes) == ["run/train"]


def test_what_is_there_does_not_come_along():
    """A fleet that only changes is none of the target's business."""
    live = ledger(row(fleet("local", nodes=2)))
    made = scoped(TREE, live, targets=("base",))
    assert names(made.changes) == ["run/base"]
    assert made.warnings == ()


def test_an_exclusion_wins():
    """What needs something that is excluded and not there is held, and says so."""
    made = scoped(TREE, ledger(), targets=("base", "sweep"), excludes=("fleet/*", "sweep[lr=2]"))
    assert names(made.changes) == ["run/sweep[lr=1]"]
    (held,) = made.held
    assert (str(held.change.key), held.by) == ("run/base", HeldBy.DEPENDENCY)
    assert held.detail == "it needs fleet/local, and excluded by `--exclude`"
    assert held.cure == "plan fleet/local as well"
    why = {str(one.change.key): one.why for one in made.deferred}
    assert why["run/sweep[lr=2]"] == "excluded by `--exclude`"


def test_what_is_held_elsewhere_is_left_too():
    """What needs a decision and is not asked for is not told as held, nor are failures."""
    desired = tree(task("busy", commands=["new"]), task("fresh"), task("bad"))
    live = ledger(row(task("busy"), RunState.RUNNING), row(task("bad"), RunState.FAILED))
    made = scoped(desired, live, targets=("fresh",))
    assert made.held == ()
    assert names(one.change for one in made.deferred) == ["run/busy"]
    assert made.settled == ()
    assert plan_code(made, detailed=True) == 2
    assert plan_code(scoped(desired, live), detailed=True) == 3


def test_a_fleet_does_not_go_while_its_user_is_left():
    """Removal goes the other way round: what stands on it has to be in the plan."""
    live = ledger(row(fleet("old")), row(volume("spare", on="old")), row(fleet("kept")))
    made = scoped(tree(), live, allow=True, targets=("fleet/old",))
    assert names(made.changes) == ["fleet/old", "volume/spare"]
    made = scoped(tree(), live, allow=True, targets=("fleet/old",), excludes=("volume/spare",))
    assert made.changes == ()
    assert made.held[0].detail == "volume/spare refers to it and is not removed"
    assert made.held[0].cure == "plan volume/spare as well"


def test_a_target_that_is_excluded_brings_nothing_along():
    """What stands on it goes only with it."""
    live = ledger(row(fleet("old")), row(volume("spare", on="old")))
    made = scoped(tree(), live, allow=True, targets=("fleet/*",), excludes=("fleet/old",))
    assert made.changes == ()
    assert names(one.change for one in made.deferred) == ["fleet/old", "volume/spare"]
    desired = tree(fleet("new"), task("user", fleets=["new"]))
    made = scoped(desired, ledger(), targets=("user",), excludes=("user",))
    assert made.changes == ()


@pytest.mark.parametrize("address", ["run/before", "before", "run/bef*", "after"])
def test_what_is_renamed_is_meant_by_either_name(address: str):
    """Who leaves out what they know by its earlier name does not see it changed."""
    live = ledger(row(task("before")), row(element("sweep", lr=1)), row(task("other")))
    moves = (("before", "after"), ("sweep", "grid"))
    moved = tuple((ResourceKey("run", old), ResourceKey("run", new)) for old, new in moves)
    desired = replace(tree(task("after"), element("grid", lr=1), task("other")), moved=moved)
    assert names(scoped(desired, live, targets=(address,)).changes) == ["run/after"]
    assert names(scoped(desired, live, excludes=(address,)).changes) == ["run/grid[lr=1]"]
    for one in ("sweep", "sweep[lr=1]", "sw*", "grid"):
        assert names(scoped(desired, live, excludes=(one, address)).changes) == []
        assert names(scoped(desired, live, targets=(one,)).changes) == ["run/grid[lr=1]"]


def test_rules_are_left_as_well():
    """The environment is meant by its own address only."""
    desired = tree(task("one"), rules=replace(TREE.environment.rules, allow_destroy=True))
    made = scoped(desired, ledger(), targets=("one",))
    assert names(made.changes) == ["run/one"]
    assert names(one.change for one in made.deferred) == ["environment/lab"]
    made = scoped(desired, ledger(), targets=("environment/lab",))
    assert names(made.changes) == ["environment/lab"]


def test_an_address_that_means_nothing_is_found():
    """With what may have been meant."""
    scope = Scope(targets=("usr",), excludes=("fleet/locl",), replaces=("alone",))
    assert idle_addresses(TREE, ledger(), scope) == [
        ("usr", "run/user"),
        ("fleet/locl", "fleet/local"),
    ]


# -- made anew ------------------------------------------------------------------------------


def test_a_finished_run_runs_again():
    """Although nothing differs; only the one that was asked for."""
    desired = tree(task("one"), task("two"))
    live = ledger(row(task("one")), row(task("two")))
    made = scoped(desired, live, replaces=("one",))
    (change,) = made.changes
    assert (str(change.key), change.action) == ("run/one", Action.REPLACE)
    assert change.reasons == (Reason.REPLACE_ASKED,)
    assert [step.verb for step in change.steps] == ["run.submit"]


def test_a_running_run_is_asked_about():
    """It would lose its work, so it needs the permission that any restart needs."""
    live = ledger(row(task("one"), RunState.RUNNING))
    held = scoped(tree(task("one")), live, replaces=("one",))
    assert [one.by for one in held.held] == [HeldBy.RUNNING_WORK]
    made = scoped(tree(task("one")), live, allow=True, replaces=("one",))
    assert [step.verb for step in made.steps] == ["run.stop", "run.submit"]


def test_a_waiting_run_is_not_begun_twice():
    """What has not begun is new enough."""
    live = ledger(row(task("one"), RunState.PENDING))
    assert scoped(tree(task("one")), live, replaces=("one",)).changes == ()


def test_a_fleet_is_made_anew():
    """Its hosts go and others come: destructive, and by the budget."""
    live = ledger(row(fleet("local")), row(task("user", fleets=["local"])))
    desired = tree(fleet("local"), task("user", fleets=["local"]))
    assert [one.by for one in scoped(desired, live, replaces=("fleet/local",)).held] == [
        HeldBy.DESTRUCTIVE
    ]
    made = scoped(desired, live, allow=True, replaces=("fleet/local",))
    assert [step.verb for step in made.steps] == ["fleet.remove", "fleet.make"]
    assert made.steps[1].needs == (made.steps[0].key,)


@pytest.mark.parametrize(
    ("policy", "verbs"), [("delete", ["volume.remove", "volume.make"]), ("retain", [])]
)
def test_a_volume_is_made_anew_where_its_data_may_go(policy, verbs):
    """What is kept would not be new."""
    declared = volume("data", deletion_policy=policy)
    live = ledger(row(fleet("local")), row(declared))
    made = scoped(tree(fleet("local"), declared), live, allow=True, replaces=("volume/data",))
    assert [step.verb for step in made.steps] == verbs
    assert bool(made.held) == (not verbs)


def test_protection_outranks_the_wish():
    """`--replace` ends what is there, as a removal would."""
    declared = fleet("local", protect=True)
    made = scoped(tree(declared), ledger(row(declared)), allow=True, replaces=("fleet/local",))
    assert [one.by for one in made.held] == [HeldBy.PROTECTION]


# -- let go, and taken in -------------------------------------------------------------------


def let_go(*addresses: str) -> tuple[ResourceKey, ...]:
    return tuple(ResourceKey(*one.split("/")) for one in addresses)


def test_what_is_let_go_is_left_as_it_is():
    """Nothing is destroyed, whatever the policy says, and nobody has to allow anything."""
    doomed = volume("data", on="old", deletion_policy="delete")
    live = ledger(row(fleet("old")), row(doomed), row(task("done")))
    desired = replace(tree(), removed=let_go("fleet/old", "volume/data", "run/done"))
    made = scoped(desired, live)
    assert made.held == ()
    assert {step.verb for step in made.steps} == {"fleet.forget", "volume.forget", "run.forget"}
    assert {one.action for one in made.changes} == {Action.FORGET}
    assert not any(one.destructive for one in made.changes)
    fleet_step = next(step for step in made.steps if step.verb == "fleet.forget")
    assert fleet_step.needs == ("volume.forget:volume/data",)


def test_what_is_at_work_is_not_let_go():
    """Neither the run nor the fleet that it may be on."""
    live = ledger(row(fleet("old")), row(task("busy"), RunState.RUNNING))
    desired = replace(tree(), removed=let_go("fleet/old", "run/busy"))
    made = scoped(desired, live)
    assert made.changes == ()
    assert [one.by for one in made.held] == [HeldBy.RUNNING_WORK, HeldBy.RUNNING_WORK]
    assert made.held[0].detail == "run/busy may be running on it"


def test_a_waiting_run_that_is_let_go_does_not_start():
    """Nobody would know what it is for."""
    live = ledger(row(task("soon"), RunState.PENDING))
    made = scoped(replace(tree(), removed=let_go("run/soon")), live)
    assert [step.verb for step in made.steps] == ["run.stop", "run.forget"]
    assert ("run-not-started", ResourceKey("run", "soon")) in {
        (one.claim, one.resource) for one in made.predicates
    }


def test_tombstones_are_forgotten_with_their_sweep():
    """An entry means all elements, those that left the tree before too."""
    live = ledger(row(element("s", lr=1), archived=True), row(element("s", lr=2)))
    made = scoped(replace(tree(), removed=let_go("run/s")), live)
    assert names(made.changes) == ["run/s[lr=1]", "run/s[lr=2]"]
    assert {step.verb for step in made.steps} == {"run.forget"}


def test_what_may_be_imported_is_taken_in():
    """Only what is named, and only while it is not there."""
    desired = replace(tree(fleet("local"), volume("data")), imports=let_go("volume/data"))
    made = scoped(desired, ledger())
    assert [step.verb for step in made.steps] == ["fleet.make", "volume.adopt"]
    assert made.steps[1].needs == (made.steps[0].key,)
    assert made.changes[1].action is Action.ADOPT
    assert scoped(desired, ledger(row(fleet("local")), row(volume("data")))).changes == ()


def test_what_is_renamed_is_made_anew_by_either_name() -> None:
    """By the name that it has, by the one that it gets, and by the old one when that is done."""
    old, new = task("old"), task("new")
    desired = replace(tree(new), moved=((old.key, new.key),))
    for live in (ledger(row(old)), ledger(row(new))):
        for name in ("old", "run/new"):
            plan = checked_plan(
                desired, live, Permissions(), Scope(replaces=(name,)), now_ms=NOW_MS
            )
            (change,) = plan.changes
            assert change.key == new.key
            assert change.reasons[0] is Reason.REPLACE_ASKED
            assert change.moved_from == ("old" if old.key in live.resources else "")


def test_a_target_by_an_earlier_name() -> None:
    """Who excludes or targets a thing by the name that it had means the thing."""
    old, new = task("old"), task("new", priority=3)
    desired = replace(tree(new, task("other")), moved=((old.key, new.key),))
    live = ledger(row(task("new")))
    target = checked_plan(desired, live, Permissions(), Scope(targets=("old",)), now_ms=NOW_MS)
    assert [change.key.name for change in target.changes] == ["new"]
    without = checked_plan(desired, live, Permissions(), Scope(excludes=("old",)), now_ms=NOW_MS)
    assert [change.key.name for change in without.changes] == ["other"]


def test_a_name_of_nothing_is_told_with_what_there_is() -> None:
    """A suggestion that has only the kind in common would be none."""
    with pytest.raises(ScopeProblem) as refused:
        checked_plan(
            tree(task("run9"), fleet("local")),
            ledger(),
            Permissions(),
            Scope(targets=("nonexistent",)),
            now_ms=NOW_MS,
        )
    assert refused.value.advice == "there are environment/lab, fleet/local, run/run9"


def hosts_of(name: str, count: int) -> tuple[Instance, ...]:
    return tuple(
        Instance(f"uid-{name}-{number}", f"{name}-{number}", name, number, InstanceState.READY)
        for number in range(count)
    )


def exchanged(strategy: str, *names: str, **permissions: object) -> Plan:
    """A plan that exchanges hosts of a fleet of three, with a run on each."""
    gpu = fleet("gpu", nodes=3, update={"strategy": strategy})
    tasks = [task(f"t{number}") for number in range(3)]
    live = replace(
        ledger(row(gpu), *(row(one, RunState.RUNNING) for one in tasks)),
        instances=hosts_of("gpu", 3),
        work=tuple(
            Work(one.key.name, "gpu", 1, 0, hosts=(f"gpu-{number}",))
            for number, one in enumerate(tasks)
        ),
    )
    return checked_plan(
        tree(gpu, *tasks),
        live,
        Permissions(**permissions),
        Scope(replaces=tuple(f"host/{name}" for name in names)),
        now_ms=NOW_MS,
    )


def test_a_single_host_makes_room_as_its_fleet_says() -> None:
    """By `drain` nothing ends, so nobody has to permit it; the reason names the host."""
    (change,) = exchanged("drain", "gpu-1").changes
    assert (change.action, change.destructive) == (Action.UPDATE, False)
    assert [(step.verb, step.arguments["exchange"]) for step in change.steps] == [
        ("fleet.update", ["gpu-1"])
    ]
    assert reason_sentence(change) == "`--replace` replaces gpu-1"


def test_a_host_that_is_recreated_counts_by_what_is_on_it() -> None:
    """It ends what runs there, and nothing on the other hosts of the fleet."""
    held = exchanged("recreate", "gpu-1").held
    assert [one.by for one in held] == [HeldBy.DESTRUCTIVE]
    (change,) = exchanged("recreate", "gpu-1", allow_destroy=True).changes
    assert change.stake is not None
    assert change.stake.runs == ("t1",)
    assert (
        change.at_stake
        == "host gpu-1 and all jobs there, because of `update: {strategy: recreate}`"
    )
    both = exchanged("recreate", "gpu-0", "gpu-2", allow_destroy=True)
    (pinned,) = (one.value for one in both.predicates if one.claim == "at-work")
    assert pinned == '{"hosts":["gpu-0","gpu-2"],"runs":["t0","t2"]}'
    (both,) = both.changes
    assert both.stake is not None
    assert both.stake.runs == ("t0", "t2")


def test_the_budget_counts_what_is_on_a_host_that_is_recreated() -> None:
    """One run of three under a limit of two is within it, all three are not."""
    gpu = fleet("gpu", nodes=3, update={"strategy": "recreate"})
    tasks = [task(f"t{number}") for number in range(3)]
    rules = Rules(allow_destroy=True, delete_count=2, delete_percent=0)
    live = replace(
        ledger(row(gpu), *(row(one, RunState.RUNNING) for one in tasks), rules=rules),
        instances=hosts_of("gpu", 3),
        work=tuple(
            Work(one.key.name, "gpu", 1, 0, hosts=(f"gpu-{number}",))
            for number, one in enumerate(tasks)
        ),
    )
    desired = tree(gpu, *tasks, rules=rules)
    for names, is_held in (("host/gpu-0", False), ("host/*", True)):
        made = checked_plan(desired, live, Permissions(), Scope(replaces=(names,)), now_ms=NOW_MS)
        assert [one.by for one in made.held] == ([HeldBy.BUDGET] if is_held else [])


def test_a_host_is_no_target() -> None:
    """What a plan has of it is its fleet's: it would plan nothing without a word."""
    live = replace(ledger(row(fleet("gpu"))), instances=hosts_of("gpu", 1))
    with pytest.raises(ScopeProblem, match="no declared or existing resource matches"):
        checked_plan(
            tree(fleet("gpu")), live, Permissions(), Scope(targets=("host/gpu-0",)), now_ms=NOW_MS
        )


def test_a_host_is_known_by_its_fleets_earlier_name() -> None:
    """It is renamed with the fleet, and makes room under either name, before that and after."""
    old, new = fleet("old", nodes=2), fleet("new", nodes=2)
    before = replace(ledger(row(old)), instances=hosts_of("old", 2))
    after = replace(ledger(row(new)), instances=hosts_of("new", 2))
    desired = replace(tree(new), moved=((old.key, new.key),))
    for name, live in (("host/old-1", before), ("host/new-1", before), ("host/new-1", after)):
        made = checked_plan(desired, live, Permissions(), Scope(replaces=(name,)), now_ms=NOW_MS)
        (change,) = made.changes
        assert change.steps[-1].arguments["exchange"] == ["new-1"]


def test_work_on_a_host_that_makes_room_is_pinned_by_the_name_that_the_ledger_knows() -> None:
    """The plan is entered before its renaming, and whoever is on another host is free to begin."""
    update = {"strategy": "recreate"}
    old, new, busy = (
        fleet("old", nodes=2, update=update),
        fleet("new", nodes=2, update=update),
        task("t"),
    )
    live = replace(
        ledger(row(old), row(busy, RunState.RUNNING)),
        instances=hosts_of("old", 2),
        work=(Work("t", "old", 1, 0, hosts=("old-1",)),),
    )
    desired = replace(tree(new, busy), moved=((old.key, new.key),))
    scope, allowed = Scope(replaces=("host/old-1",)), Permissions(allow_destroy=True)
    made = checked_plan(desired, live, allowed, scope, now_ms=NOW_MS)
    (pinned,) = (one for one in made.predicates if one.claim == "at-work")
    assert (pinned.resource, AtWork.of(pinned.value)) == (
        old.key,
        AtWork(frozenset({"t"}), frozenset({"old-1"})),
    )
    for host, stale in (("old-0", False), ("old-1", True)):
        more = (*live.work, Work("u", "old", 1, 0, hosts=(host,)))
        assert bool(failing(made, replace(live, work=more))) == stale
