"""A clean plan has no violation; each test breaks one thing and names what is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fleetform.checker import Invariant, check
from fleetform.checker.check import CHECKS
from fleetform.checker.context import Violation
from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import Live, LiveResource
from fleetform.model.plan import Action, Change, Held, HeldBy, Permissions, Plan, Step
from fleetform.model.run import RunState
from fleetform.model.run_state import NO_EVIDENCE
from fleetform.plan.serialize import sealed
from fleetform.spec.desired import Desired, ResourceKey, Rules
from unit.plan.trees import element, fleet, ledger, planned, row, task, tree, volume

ALLOWED = Permissions(allow_destroy=True, allow_restart=True)
USER = task("user", fleets=["local"], volumes=[{"name": "data", "path": "/in"}])


def example() -> tuple[Plan, Desired, Live, Permissions]:
    """A plan in which there is something of everything, and nothing wrong."""
    desired = tree(
        fleet("local", nodes=2),
        volume("data"),
        USER,
        task("again", commands=["new"]),
        task("busy", commands=["new"]),
        task("waits", commands=["new"]),
        task("new", fleets=["local"]),
        element("s", lr=2),
    )
    live = ledger(
        row(fleet("local")),
        row(fleet("old")),
        row(volume("data")),
        row(volume("spare", on="old")),
        row(USER),
        row(task("again")),
        row(task("busy"), RunState.RUNNING),
        row(task("waits"), RunState.PENDING),
        row(task("gone"), RunState.RUNNING),
        row(task("never"), RunState.PENDING),
        row(element("s", lr=1)),
    )
    plan = planned(desired, live, allow_destroy=True, allow_restart=True)
    return plan, desired, live, ALLOWED


def found(plan: Plan, desired: Desired, live: Live, permissions: Permissions) -> set[Invariant]:
    """What is found beside the digest, which is made anew: whoever breaks a plan could do so too."""
    return {one.invariant for one in check(sealed(plan), desired, live, permissions)}


def key(address: str) -> ResourceKey:
    return ResourceKey(*address.split("/"))


def edit(plan: Plan, address: str, change: Callable[[Change], Change]) -> Plan:
    """The plan with one of its changes turned into another."""
    assert key(address) in {one.key for one in plan.changes}
    return replace(
        plan,
        changes=tuple(change(one) if one.key == key(address) else one for one in plan.changes),
    )


def edit_step(plan: Plan, step_key: str, change: Callable[[Step], Step]) -> Plan:
    assert step_key in {step.key for step in plan.steps}
    return replace(
        plan,
        changes=tuple(
            replace(
                one, steps=tuple(change(two) if two.key == step_key else two for two in one.steps)
            )
            for one in plan.changes
        ),
    )


def without(plan: Plan, address: str) -> Plan:
    return replace(plan, changes=tuple(one for one in plan.changes if one.key != key(address)))


def with_row(live: Live, live_row: LiveResource) -> Live:
    return replace(live, resources={**live.resources, live_row.key: live_row})


def test_the_example_is_clean() -> None:
    """What the planner makes of the example breaks nothing, and has all kinds of steps."""
    plan, desired, live, permissions = example()
    assert check(plan, desired, live, permissions) == ()
    assert {step.verb for step in plan.steps} >= {
        "fleet.update",
        "fleet.remove",
        "volume.forget",
        "run.submit",
        "run.update",
        "run.stop",
        "run.archive",
    }


def test_every_invariant_has_a_sentence_of_its_own() -> None:
    """Each has one check, and two never read the same."""
    assert set(CHECKS) == {*Invariant}
    assert set(Invariant.__members__) == {one.name for one in Invariant}


def test_a_violation_reads_as_a_sentence() -> None:
    """Where it is broken comes first, and what is broken after."""
    violation = Violation(Invariant.STEPS_ACYCLIC, "a waits for a")
    assert violation.sentence == "a waits for a, but no step waits for itself"


# -- scope -----------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["environment_fingerprint", "ledger_id"])
def test_another_place(field: str) -> None:
    """A plan of another environment or ledger is found."""
    plan, *rest = example()
    assert Invariant.RIGHT_PLACE in found(replace(plan, **{field: "other"}), *rest)


def test_an_older_epoch() -> None:
    """So is one of the time before a restore."""
    plan, *rest = example()
    assert Invariant.RIGHT_PLACE in found(replace(plan, epoch=1), *rest)


def test_recovering() -> None:
    """Any change at all is too much while the ledger recovers."""
    plan, desired, live, permissions = example()
    live = replace(live, status=LedgerStatus.RECOVERING)
    told = replace(plan, recovering=True)
    assert found(told, desired, live, permissions) == {Invariant.RECOVERING_CHANGES_NOTHING}


def test_recovering_without_a_word() -> None:
    """A plan that does not say so would be taken for proof that all is as declared."""
    plan, desired, live, permissions = example()
    live = replace(live, status=LedgerStatus.RECOVERING)
    silent = replace(plan, changes=(), predicates=())
    assert Invariant.RECOVERING_STATED in found(silent, desired, live, permissions)


def test_two_changes_of_one_resource() -> None:
    """A resource that is changed twice is found, and so is a wrong order."""
    plan, *rest = example()
    twice = replace(plan, changes=(plan.changes[0], *plan.changes))
    assert Invariant.ONE_CHANGE_A_RESOURCE in found(twice, *rest)
    turned = replace(plan, changes=plan.changes[::-1])
    assert found(turned, *rest) == {Invariant.ONE_CHANGE_A_RESOURCE}


def test_held_and_done() -> None:
    """What is held must not be carried out as well."""
    plan, *rest = example()
    held = Held(plan.changes[0], HeldBy.BUDGET, "", "")
    assert found(replace(plan, held=(held,)), *rest) == {Invariant.HELD_IS_NOT_DONE}


@pytest.mark.parametrize("address", ["run/new", "run/again", "run/never", "run/s[lr=2]"])
def test_a_difference_that_was_left_out(address: str) -> None:
    """New, changed, removed or replaced: each difference is in the plan."""
    plan, *rest = example()
    assert Invariant.NOTHING_FORGOTTEN in found(without(plan, address), *rest)


def test_a_broken_document() -> None:
    """A change of what a broken document declares is found."""
    plan, desired, live, permissions = example()
    broken = replace(desired, broken=frozenset({key("run/again")}))
    assert found(plan, broken, live, permissions) == {Invariant.BROKEN_STAYS}


def test_a_broken_sweep() -> None:
    """The elements of a broken sweep count as broken."""
    plan, desired, live, permissions = example()
    broken = replace(desired, broken=frozenset({key("run/s")}))
    assert found(plan, broken, live, permissions) == {Invariant.BROKEN_STAYS}


def test_a_reference_to_a_broken_document() -> None:
    """A change of what refers to a broken document is found."""
    plan, desired, live, permissions = example()
    broken = replace(desired, broken=frozenset({key("fleet/local")}))
    details = [one.detail for one in check(plan, broken, live, permissions)]
    assert "run/new is changed and refers to fleet/local" in details


def test_an_unread_file() -> None:
    """Removing something that an unread file may declare is found."""
    plan, desired, live, permissions = example()
    unread = replace(desired, unread=("odd.yaml",))
    assert found(plan, unread, live, permissions) == {Invariant.UNREAD_REMOVES_NOTHING}


# -- destruction -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["fleet/old", "volume/spare", "run/gone", "run/again", "run/s[lr=1]"]
)
def test_protection(address: str) -> None:
    """Removing, forgetting, archiving and replacing something protected is found."""
    plan, desired, live, permissions = example()
    protected = replace(live.resources[key(address)], protected=True)
    live = with_row(live, protected)
    assert found(plan, desired, live, permissions) == {Invariant.PROTECTED_STAYS}


@pytest.mark.parametrize("address", ["fleet/old", "run/gone", "run/busy"])
def test_destruction_that_is_not_said(address: str) -> None:
    """What destroys by its steps must say so, or no budget and no person sees it."""
    plan, *rest = example()
    quiet = edit(plan, address, lambda one: replace(one, destructive=False))
    assert found(quiet, *rest) == {Invariant.DESTRUCTION_DECLARED}


def test_destruction_without_permission() -> None:
    """Without the flag, and with rules that were not applied yet, nothing may be destroyed."""
    plan, desired, live, _ = example()
    loosened = replace(
        desired, environment=replace(desired.environment, rules=Rules(allow_destroy=True))
    )
    details = [
        one.detail
        for one in check(plan, loosened, live, Permissions(allow_restart=True))
        if one.invariant is Invariant.DESTRUCTION_PERMITTED
    ]
    assert details == [
        "no permission to end fleet/old was given",
        "no permission to end run/gone was given",
    ]


def test_a_restart_without_permission() -> None:
    """Running work is restarted only where the run asks for it or somebody allows it."""
    plan, desired, live, _ = example()
    details = [one.detail for one in check(plan, desired, live, Permissions())]
    assert "no permission to end run/busy was given" in details


def test_the_budget() -> None:
    """More than the rules last applied allow is found, whatever the new rules are."""
    plan, desired, live, permissions = example()
    live = replace(live, rules=Rules(delete_count=1, delete_percent=0))
    # The plan was judged by other rules, which is a fault of its own.
    pinned = Invariant.RULES_PINNED
    others = {pinned, Invariant.RULES_APPLIED_LAST}
    assert found(plan, desired, live, permissions) == {Invariant.WITHIN_BUDGET, *others}
    allowed = replace(permissions, allow_deletes=2)
    assert found(plan, desired, live, allowed) == others


def test_rules_that_are_not_pinned() -> None:
    """What destroys says by which rules it was judged."""
    plan, *rest = example()
    address = f"environment/{plan.environment_name}"
    assert found(drop_predicate(plan, "rules", address), *rest) == {Invariant.RULES_PINNED}


# -- execution -------------------------------------------------------------------------------


def test_a_rerun_without_a_reason() -> None:
    """A reason that document and row do not bear out is none."""
    plan, desired, live, permissions = example()
    inherited = replace(
        live.resources[key("run/again")],
        own_digest=desired.resources[key("run/again")].own_digest,
    )
    live = with_row(live, inherited)
    assert found(plan, desired, live, permissions) == {Invariant.FINISHED_STAYS_FINISHED}


def test_a_second_execution_beside_the_first() -> None:
    """A restart that does not wait for the earlier run's end is found."""
    plan, *rest = example()
    hasty = edit_step(
        plan,
        "run.submit:run/busy",
        lambda step: replace(step, arguments={**step.arguments, "after_uid": ""}),
    )
    assert found(hasty, *rest) == {Invariant.ONE_EXECUTION_AT_A_TIME}


def test_a_second_execution_of_what_nobody_sees() -> None:
    """Nothing may follow a run on a silent host."""
    plan, desired, live, permissions = example()
    live = with_row(live, row(task("busy"), RunState.UNKNOWN))
    assert found(plan, desired, live, permissions) == {Invariant.ONE_EXECUTION_AT_A_TIME}


def test_another_execution_under_a_running_run() -> None:
    """A run that has started keeps the document that it was started with."""
    plan, desired, live, permissions = example()
    live = with_row(live, row(task("waits"), RunState.RUNNING))
    assert found(plan, desired, live, permissions) == {Invariant.RUNNING_KEEPS_ITS_EXECUTION}


def test_another_execution_of_a_run_that_is_to_end() -> None:
    """A run at work gets another execution only with `state: stopped` and with the step that ends it."""
    desired = tree(task("busy", commands=["new"], state="stopped"))
    live = ledger(row(task("busy"), RunState.RUNNING))
    plan = planned(desired, live, allow_destroy=True)
    assert found(plan, desired, live, ALLOWED) == set()

    def going_on(change: Change) -> Change:
        update, stop = change.steps
        document = {**update.arguments["document"], "state": "running"}
        arguments = {**update.arguments, "document": document}
        return replace(change, steps=(replace(update, arguments=arguments), stop))

    def endless(change: Change) -> Change:
        return replace(change, steps=change.steps[:1])

    for broken in (going_on, endless):
        violations = found(edit(plan, "run/busy", broken), desired, live, ALLOWED)
        assert Invariant.RUNNING_KEEPS_ITS_EXECUTION in violations


def test_another_execution_without_a_pin() -> None:
    """A run that waits may have started by the time the plan is applied."""
    plan, *rest = example()
    unpinned = replace(
        plan,
        predicates=tuple(
            one
            for one in plan.predicates
            if (one.claim, one.resource) != ("run-not-started", key("run/waits"))
        ),
    )
    assert found(unpinned, *rest) == {Invariant.RUNNING_KEEPS_ITS_EXECUTION}


# -- references ------------------------------------------------------------------------------


def test_a_fleet_under_a_volume_that_stays() -> None:
    """A fleet goes only with everything that stands on it."""
    plan, *rest = example()
    details = [one.detail for one in check(without(plan, "volume/spare"), *rest)]
    assert "volume/spare remains and refers to fleet/old, which is removed" in details


def test_a_fleet_that_something_new_needs() -> None:
    """What the plan makes must find what it refers to."""
    plan, desired, live, permissions = example()
    needy = task("new", fleets=["old"])
    desired = replace(desired, resources={**desired.resources, needy.key: needy})
    details = [one.detail for one in check(plan, desired, live, permissions)]
    assert "run/new needs fleet/old, which is removed" in details


def test_a_fleet_under_a_run_that_may_be_anywhere() -> None:
    """A removed run that is still at work may be on any fleet."""
    plan, *rest = example()
    details = [one.detail for one in check(without(plan, "run/gone"), *rest)]
    assert "run/gone remains and may run on fleet/old, which is removed" in details


# -- steps -----------------------------------------------------------------------------------


def test_two_steps_of_one_key() -> None:
    """A key names one operation across a crash."""
    plan, *rest = example()
    doubled = edit(plan, "run/new", lambda one: replace(one, steps=one.steps * 2))
    assert found(doubled, *rest) == {Invariant.STEPS_NAMED_ONCE}


def test_a_need_that_is_not_there() -> None:
    """A step that waits for nothing in the plan would wait for ever."""
    plan, *rest = example()
    waiting = edit_step(plan, "run.submit:run/new", lambda step: replace(step, needs=("x",)))
    assert found(waiting, *rest) == {Invariant.STEPS_NEEDS_EXIST}


def test_a_cycle() -> None:
    """Steps that wait for each other would never begin."""
    plan, *rest = example()
    looped = edit_step(
        plan, "fleet.update:fleet/local", lambda step: replace(step, needs=("run.submit:run/new",))
    )
    violations = check(sealed(looped), *rest)
    assert [one.invariant for one in violations] == [Invariant.STEPS_ACYCLIC]
    assert "run.submit:run/new waits for fleet.update:fleet/local" in violations[0].detail


def test_a_verb_that_the_action_does_not_call_for() -> None:
    """What is shown as an archive must not submit."""
    plan, *rest = example()
    wrong = edit(plan, "run/again", lambda one: replace(one, action=Action.ARCHIVE))
    assert found(wrong, *rest) == {Invariant.STEPS_FIT_ACTION}


def test_a_step_of_another_resource() -> None:
    """A change has steps of its own resource, and of the element it replaces, only."""
    plan, *rest = example()
    foreign = edit_step(
        plan, "run.archive:run/gone", lambda step: replace(step, resource=key("run/user"))
    )
    assert Invariant.STEPS_FIT_ACTION in found(foreign, *rest)


def test_a_change_without_steps() -> None:
    """It would be shown and not be done."""
    plan, *rest = example()
    idle = edit(plan, "run/new", lambda one: replace(one, steps=()))
    assert found(idle, *rest) == {Invariant.STEPS_FIT_ACTION}


def test_another_document() -> None:
    """What is carried out is what is declared."""
    plan, *rest = example()
    other = edit_step(
        plan,
        "run.submit:run/new",
        lambda step: replace(step, arguments={**step.arguments, "document": {"type": "task"}}),
    )
    assert found(other, *rest) == {Invariant.DOCUMENTS_AS_DECLARED}


def test_a_document_that_nobody_declares() -> None:
    """Nothing is made that the tree does not have."""
    plan, desired, live, permissions = example()
    resources = {name: one for name, one in desired.resources.items() if name != key("run/new")}
    smaller = replace(desired, resources=resources)
    assert found(plan, smaller, live, permissions) == {Invariant.DOCUMENTS_AS_DECLARED}


# -- rows ------------------------------------------------------------------------------------


def drop_predicate(plan: Plan, claim: str, address: str | None) -> Plan:
    resource = None if address is None else key(address)
    kept = tuple(one for one in plan.predicates if (one.claim, one.resource) != (claim, resource))
    assert len(kept) == len(plan.predicates) - 1
    return replace(plan, predicates=kept)


@pytest.mark.parametrize(
    ("claim", "address"),
    [
        ("absent", "run/new"),
        ("absent", "run/s[lr=2]"),
        ("generation", "run/again"),
        ("generation", "run/s[lr=1]"),
        ("generation", "fleet/old"),
        ("run-not-started", "run/never"),
    ],
)
def test_a_row_that_is_not_pinned(claim: str, address: str) -> None:
    """Each thing that is touched is pinned, else a stale plan would not be noticed."""
    plan, *rest = example()
    assert found(drop_predicate(plan, claim, address), *rest) == {Invariant.ROWS_PINNED}


def test_a_row_of_another_generation() -> None:
    """A pin is to what was read."""
    plan, desired, live, permissions = example()
    live = with_row(live, replace(live.resources[key("run/again")], generation=9))
    assert found(plan, desired, live, permissions) == {Invariant.ROWS_PINNED}


def test_a_ledger_that_is_not_pinned() -> None:
    """A plan goes into the ledger that it was made from."""
    plan, *rest = example()
    assert found(drop_predicate(plan, "ledger", None), *rest) == {Invariant.LEDGER_PINNED}


def test_a_renamed_run_is_restarted_by_the_same_permission() -> None:
    """That it has another name by now needs no other permission than to end it."""
    old, new = task("old", on_change="restart"), task("new", on_change="restart", commands=["new"])
    desired = replace(tree(new), moved=((old.key, new.key),))
    live = ledger(row(old, RunState.RUNNING))
    plan = planned(desired, live, allow_restart=True)
    assert [step.verb for step in plan.steps] == ["resource.move", "run.stop", "run.submit"]
    assert found(plan, desired, live, Permissions(allow_restart=True)) == set()


def test_what_a_broken_document_is_called_now_is_not_forgotten() -> None:
    """A row whose new name has an invalid document stays, and nothing is missing in the plan."""
    old = task("old")
    desired = replace(tree(broken=[key("run/new")]), moved=((old.key, key("run/new")),))
    live = ledger(row(old))
    assert found(planned(desired, live), desired, live, Permissions()) == set()


def test_a_run_without_evidence_runs_only_when_a_person_asks() -> None:
    """Nobody knows whether it ran: `rerun` says that it shall, and nothing else does."""
    train = task("train")
    unknown = row(train, RunState.UNKNOWN, cause=NO_EVIDENCE)
    asked = tree(task("train", rerun=1))
    plan = planned(asked, ledger(unknown))
    assert [step.verb for step in plan.steps] == ["run.submit"]
    assert check(plan, asked, ledger(unknown), Permissions()) == ()
    silent = row(train, RunState.UNKNOWN)
    broken = {one.invariant for one in check(plan, asked, ledger(silent), Permissions())}
    assert Invariant.ONE_EXECUTION_AT_A_TIME in broken
    other = tree(task("train", commands=["false"]))
    assert planned(other, ledger(unknown)).changes == ()


def test_a_restart_that_permits_itself() -> None:
    """`on_change: restart` counts where it was applied before, and where it is still wanted."""
    asking = task("train", on_change="restart", commands=["new"])
    asked, silent = task("train", on_change="restart"), task("train")
    live = ledger(row(asked, RunState.RUNNING))
    plan = planned(tree(asking), live)
    assert [step.verb for step in plan.steps] == ["run.stop", "run.submit"]
    assert found(plan, tree(asking), live, Permissions()) == set()
    before = ledger(row(silent, RunState.RUNNING))
    assert Invariant.DESTRUCTION_PERMITTED in found(plan, tree(asking), before, Permissions())
