"""What keeps a change from being carried out, and what would release it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import check
from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import Live, Work
from fleetform.model.plan import HeldBy, Permissions, Plan
from fleetform.model.run import RunState
from fleetform.plan.exit import plan_code
from fleetform.plan.serialize import dump, load
from fleetform.spec.desired import Desired, Obstacle, ResourceKey, Rules, Unsupported
from fleetform.spec.tree.sources import any_kind
from unit.plan.trees import CONTAINER, element, fleet, ledger, planned, row, task, tree, volume

LOCAL = fleet("local")


def checked(desired: Desired, live: Live, **permissions: bool | int) -> Plan:
    plan = planned(desired, live, **permissions)
    assert check(plan, desired, live, Permissions(**permissions)) == ()
    return plan


def held(plan: Plan) -> dict[str, HeldBy]:
    return {str(one.change.key): one.by for one in plan.held}


def changed(plan: Plan) -> set[str]:
    return {str(change.key) for change in plan.changes}


# -- recovering ------------------------------------------------------------------------------


def test_a_recovering_ledger_changes_nothing() -> None:
    """Every change is held, with what the ledger says about itself."""
    live = ledger(row(task("old")), status=LedgerStatus.RECOVERING, notes=("host a knows epoch 3",))
    plan = checked(tree(LOCAL, task("new")), live, allow_destroy=True)
    assert plan.is_empty
    assert set(held(plan).values()) == {HeldBy.RECOVERING}
    assert len(plan.held) == 3
    assert plan.held[0].detail == "host a knows epoch 3"


@pytest.mark.parametrize("detailed", [False, True])
def test_a_recovering_ledger_holds_also_what_does_not_differ(detailed: bool) -> None:
    """A pipeline that reads 0 would take an older copy's word for the world's."""
    live = ledger(row(task("old")), status=LedgerStatus.RECOVERING)
    plan = checked(tree(task("old")), live)
    assert plan.is_empty
    assert plan.held == ()
    assert plan_code(plan, detailed=detailed) == 1
    assert load(dump(plan)) == plan


# -- broken documents ------------------------------------------------------------------------


def test_a_broken_document_leaves_its_resource_alone() -> None:
    """What cannot be read is neither changed nor taken for removed."""
    live = ledger(row(task("train"), RunState.RUNNING), row(task("other")))
    plan = checked(
        tree(task("other"), broken=[ResourceKey("run", "train")]), live, allow_destroy=True
    )
    assert plan.is_empty
    assert held(plan) == {"run/train": HeldBy.BROKEN_DOCUMENT}


def test_a_document_of_unknown_kind_is_told_once() -> None:
    """It is held as what there is of its name, or as a run; nothing that it may be is touched."""
    live = ledger(row(volume("train")))
    plan = checked(tree(broken=any_kind("train")), live, allow_destroy=True)
    assert plan.changes == ()
    assert [str(one.change.key) for one in plan.held] == ["volume/train"]
    plan = checked(tree(broken=any_kind("train")), ledger(), allow_destroy=True)
    assert [str(one.change.key) for one in plan.held] == ["run/train"]


def test_a_broken_sweep_keeps_its_elements() -> None:
    """The elements of a sweep are declared by its document."""
    live = ledger(*(row(element("sweep", lr=lr)) for lr in (1, 2, 3)))
    plan = checked(tree(broken=[ResourceKey("run", "sweep")]), live, allow_destroy=True)
    assert plan.is_empty
    assert held(plan) == {"run/sweep": HeldBy.BROKEN_DOCUMENT}


def test_what_refers_to_a_broken_document_waits() -> None:
    """So do runs that depend on a run of it, and what depends on those in turn."""
    desired = tree(
        task("uses", fleets=["local"]),
        task("after", upstream=["sweep[lr=1]"]),
        task("later", upstream=["after"]),
        task("free"),
        broken=[ResourceKey("fleet", "local"), ResourceKey("run", "sweep")],
    )
    plan = checked(desired, ledger())
    assert changed(plan) == {"run/free"}
    assert held(plan) == {
        "fleet/local": HeldBy.BROKEN_DOCUMENT,
        "run/sweep": HeldBy.BROKEN_DOCUMENT,
        "run/uses": HeldBy.BROKEN_DOCUMENT,
        "run/after": HeldBy.BROKEN_DOCUMENT,
        "run/later": HeldBy.DEPENDENCY,
    }


def test_a_fleet_stays_under_a_broken_volume() -> None:
    """What a broken document's last good version refers to is not removed."""
    live = ledger(row(LOCAL), row(volume("data")))
    plan = checked(tree(broken=[ResourceKey("volume", "data")]), live, allow_destroy=True)
    assert held(plan) == {
        "fleet/local": HeldBy.DEPENDENCY,
        "volume/data": HeldBy.BROKEN_DOCUMENT,
    }


# -- what nothing carries out yet ---------------------------------------------------------------


def test_what_cannot_be_carried_out_is_held() -> None:
    """It is shown with all that keeps it, and neither made, changed nor removed."""
    live = ledger(row(task("old"), RunState.RUNNING), row(task("same")))
    plan = checked(
        tree(beyond=[task("new", image="x"), task("old", image="x"), task("same")]),
        live,
        allow_destroy=True,
    )
    assert plan.is_empty
    assert held(plan) == {
        "run/new": HeldBy.NOT_SUPPORTED,
        "run/old": HeldBy.NOT_SUPPORTED,
    }
    assert plan.held[0].detail == "containers are not supported yet"


def test_several_things_that_nothing_carries_out_are_named() -> None:
    """Their reasons would be a page; `validate` has them."""
    beyond = Unsupported(task("new"), (CONTAINER, CONTAINER._replace(field="repos")))
    desired = replace(tree(), beyond={beyond.declared.key: beyond})
    (one,) = checked(desired, ledger()).held
    assert one.detail == "not supported yet: `image` and `repos`"
    assert one.cure == "remove `image` and `repos`, or wait for a version that supports it"


def test_what_is_missing_and_what_nobody_carries_out_are_told_together() -> None:
    """Declaring the one would not release the run."""
    secret = Obstacle("undeclared-reference", "env", "No document declares the secret `x`.")
    beyond = Unsupported(task("new"), (secret, CONTAINER))
    (held,) = checked(replace(tree(), beyond={beyond.declared.key: beyond}), ledger()).held
    assert held.by is HeldBy.DEPENDENCY
    assert held.detail == "no document declares the secret `x`; containers are not supported yet"
    assert held.cure == (
        "declare the resource that it refers to, and wait for a version that supports it"
    )


def test_what_is_not_declared_is_waited_for() -> None:
    """A run that mounts what no document declares is held until one does."""
    obstacle = Obstacle("undeclared-reference", "volumes", "No document declares the volume `x`.")
    plan = checked(tree(beyond=[task("train")], obstacle=obstacle), ledger())
    assert held(plan) == {"run/train": HeldBy.DEPENDENCY}
    assert plan.held[0].detail == "no document declares the volume `x`"


def test_what_needs_it_waits_as_well() -> None:
    """A run on a fleet that nothing can make waits, and so does what follows that run."""
    desired = tree(
        task("uses", fleets=["gpu"]),
        task("later", upstream=["uses"]),
        task("free"),
        beyond=[fleet("gpu")],
    )
    plan = checked(desired, ledger())
    assert changed(plan) == {"run/free"}
    assert held(plan) == {
        "fleet/gpu": HeldBy.NOT_SUPPORTED,
        "run/uses": HeldBy.DEPENDENCY,
        "run/later": HeldBy.DEPENDENCY,
    }


def test_a_sweep_that_cannot_be_carried_out_keeps_its_elements() -> None:
    """Elements that its document seems to name no more are not removed meanwhile."""
    live = ledger(*(row(element("sweep", lr=lr)) for lr in (1, 2)))
    plan = checked(tree(beyond=[element("sweep", lr=3)]), live, allow_destroy=True)
    assert plan.is_empty
    assert held(plan) == {"run/sweep[lr=3]": HeldBy.NOT_SUPPORTED}


def test_nothing_goes_while_a_file_cannot_be_read() -> None:
    """It may declare what seems to be gone; what is declared elsewhere goes on."""
    live = ledger(row(LOCAL), row(task("done")), row(element("s", lr=1)))
    desired = tree(element("s", lr=2), task("new"), unread=("odd.yaml", "other.yaml"))
    plan = checked(desired, live, allow_destroy=True)
    assert changed(plan) == {"run/new", "run/s[lr=2]"}
    assert held(plan) == {
        "fleet/local": HeldBy.BROKEN_DOCUMENT,
        "run/done": HeldBy.BROKEN_DOCUMENT,
        "run/s[lr=1]": HeldBy.BROKEN_DOCUMENT,
    }
    assert plan.held[0].detail == "odd.yaml and 1 more cannot be read and may declare it"
    gone = checked(desired, live, allow_destroy=True, destroy=True)
    assert len(gone.changes) == 3


def test_destroy_does_not_read_the_tree() -> None:
    """Errors in documents keep nobody from leaving."""
    live = ledger(row(LOCAL), row(task("train")))
    plan = checked(
        tree(broken=[ResourceKey("run", "train")]), live, allow_destroy=True, destroy=True
    )
    assert changed(plan) == {"fleet/local", "run/train"}


# -- protection ------------------------------------------------------------------------------


def test_protection_lies_in_the_ledger() -> None:
    """Lifting it and removing the resource at once is held."""
    protected = task("train", protect=True)
    for desired in (tree(), tree(task("train", commands=["other"]))):
        plan = checked(desired, ledger(row(protected)), allow_destroy=True)
        assert held(plan) == {"run/train": HeldBy.PROTECTION}
    lifted = checked(tree(task("train")), ledger(row(protected)))
    assert [step.verb for step in lifted.steps] == ["run.update"]


def test_protection_outlasts_destroy() -> None:
    """Everything goes but what is protected, and what that stands on."""
    live = ledger(row(LOCAL), row(volume("data", protect=True)), row(task("train")))
    plan = checked(tree(), live, destroy=True, allow_destroy=True)
    assert changed(plan) == {"run/train"}
    assert held(plan) == {"fleet/local": HeldBy.DEPENDENCY, "volume/data": HeldBy.PROTECTION}


def test_a_protected_element_does_not_keep_its_successor() -> None:
    """It is held by itself; the new element runs."""
    protected = replace(row(element("sweep", lr=1)), protected=True)
    plan = checked(tree(element("sweep", lr=2)), ledger(protected))
    assert changed(plan) == {"run/sweep[lr=2]"}
    assert held(plan) == {"run/sweep[lr=1]": HeldBy.PROTECTION}


# -- permission ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("applied", "declared", "flag", "released"),
    [
        (None, False, False, False),
        (False, False, True, True),
        (True, False, False, True),
        (True, True, False, True),
        (None, True, False, False),
        (False, True, False, False),
    ],
)
def test_rules_last_applied_judge(
    applied: bool | None, declared: bool, flag: bool, released: bool
) -> None:
    """A rule that the commit brings along helps the next plan, never itself."""
    rules = None if applied is None else Rules(allow_destroy=applied)
    live = ledger(row(LOCAL), rules=rules)
    plan = checked(tree(rules=Rules(allow_destroy=declared)), live, allow_destroy=flag)
    assert ("fleet/local" in changed(plan)) is released
    assert ("environment/lab" in changed(plan)) is (bool(applied) != declared)


def test_default_rules_are_no_change_before_the_first_apply() -> None:
    """An environment that says nothing about rules has nothing to record."""
    assert checked(tree(), ledger(rules=None)).is_empty


# -- budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "doomed", "allowed"), [(10, 6, 5), (100, 20, 10), (3, 3, 3), (59, 9, 5)]
)
def test_no_more_than_the_budget_goes(total: int, doomed: int, allowed: int) -> None:
    """The larger of a share of the kind and a number; the first by name go."""
    tasks = [task(f"t{number:03}") for number in range(total)]
    live = ledger(*(row(one, RunState.RUNNING) for one in tasks))
    plan = checked(tree(*tasks[doomed:]), live, allow_destroy=True)
    assert changed(plan) == {str(one.key) for one in tasks[:allowed]}
    assert set(held(plan).values()) <= {HeldBy.BUDGET}
    assert len(plan.held) == doomed - allowed
    for one in plan.held:
        assert one.cure == f"--allow-deletes {doomed}"


def test_the_number_it_asks_for_releases_everything() -> None:
    """One flag is enough for all kinds."""
    tasks = [task(f"t{number}") for number in range(7)]
    fleets = [fleet(f"f{number}") for number in range(6)]
    rows = [*(row(one, RunState.RUNNING) for one in tasks), *map(row, fleets)]
    first = checked(tree(), ledger(*rows), allow_destroy=True)
    assert {one.cure for one in first.held if one.by is HeldBy.BUDGET} == {"--allow-deletes 7"}
    second = checked(tree(), ledger(*rows), allow_destroy=True, allow_deletes=7)
    assert second.held == ()


def test_what_is_over_or_never_began_is_not_counted() -> None:
    """A hundred finished and waiting runs leave without a permission."""
    rows = [
        *(row(task(f"done{number}")) for number in range(50)),
        *(row(task(f"waits{number}"), RunState.PENDING) for number in range(50)),
    ]
    assert len(checked(tree(), ledger(*rows)).changes) == 100


def test_runs_that_end_with_their_fleet_are_counted() -> None:
    """A fleet is one change, and whoever is running on its hosts ends with it."""
    tasks = [task(f"t{number}") for number in range(12)]
    live = ledger(row(LOCAL), *(row(one, RunState.RUNNING) for one in tasks))
    live = replace(live, work=tuple(Work(one.key.name, "local", 1, 0) for one in tasks))
    first = checked(tree(*tasks), live, allow_destroy=True)
    assert held(first) == {"fleet/local": HeldBy.BUDGET}
    (one,) = first.held
    assert one.detail == (
        "the plan would end 12 of 12 runs, 12 of them with their fleet, and at most 5 are allowed"
    )
    assert one.cure == "--allow-deletes 12"
    second = checked(tree(*tasks), live, allow_destroy=True, allow_deletes=12)
    assert changed(second) == {"fleet/local"}


def test_a_run_is_counted_once_whatever_ends_it() -> None:
    """It goes by itself and its fleet goes under it: that is one run, not two."""
    tasks = [task(f"t{number}") for number in range(5)]
    live = ledger(row(LOCAL), *(row(one, RunState.RUNNING) for one in tasks))
    live = replace(live, work=tuple(Work(one.key.name, "local", 1, 0) for one in tasks))
    assert checked(tree(), live, allow_destroy=True).held == ()


def test_what_was_ended_before_is_not_counted_with_its_fleet() -> None:
    """A removal that is still under way was counted by the plan that it is of."""
    tasks = [task(f"t{number}") for number in range(12)]
    going = (row(one, RunState.RUNNING, archived=True) for one in tasks)
    live = ledger(row(LOCAL), *going)
    live = replace(live, work=tuple(Work(one.key.name, "local", 1, 0) for one in tasks))
    assert changed(checked(tree(), live, allow_destroy=True)) == {"fleet/local"}


def test_a_fleet_leaves_the_budget_to_runs_that_go_first() -> None:
    """Else the fleet would wait for a run that the fleet keeps from going."""
    old, busy, gone = fleet("old"), task("busy"), task("gone", fleets=["old"])
    live = ledger(row(old), row(busy, RunState.RUNNING), row(gone, RunState.RUNNING))
    live = replace(
        live,
        work=(Work("busy", "old", 1, 0),),
        rules=Rules(allow_destroy=True, delete_count=1, delete_percent=0),
    )
    rules = {"rules": live.rules}
    first = checked(tree(busy, **rules), live)
    assert changed(first) == {"run/gone"}
    assert held(first) == {"fleet/old": HeldBy.BUDGET}
    left = replace(live, resources={k: v for k, v in live.resources.items() if k != gone.key})
    assert changed(checked(tree(busy, **rules), left)) == {"fleet/old"}


def test_destroy_has_no_budget() -> None:
    """Who asks for the removal of everything has said how much."""
    rows = [row(task(f"t{number}"), RunState.RUNNING) for number in range(50)]
    plan = checked(tree(), ledger(*rows), destroy=True, allow_destroy=True)
    assert len(plan.changes) == 50


# -- dependency ------------------------------------------------------------------------------


def test_a_fleet_stays_under_a_run_that_may_be_at_work_there() -> None:
    """A run held by the budget may be on any fleet, so none is removed."""
    tasks = [task(f"t{number}") for number in range(6)]
    live = ledger(row(LOCAL), *(row(one, RunState.RUNNING) for one in tasks))
    plan = checked(tree(), live, allow_destroy=True)
    assert held(plan) == {"run/t5": HeldBy.BUDGET, "fleet/local": HeldBy.DEPENDENCY}


def test_an_unfinished_operation_comes_first() -> None:
    """A resource that an earlier apply has not finished with is held and in progress."""
    live = ledger(replace(row(LOCAL), operation="op-1"))
    plan = checked(tree(fleet("local", nodes=3)), live)
    assert held(plan) == {"fleet/local": HeldBy.DEPENDENCY}
    assert plan.progressing == (ResourceKey("fleet", "local"),)
