"""What of a newer plan was approved with an earlier one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.live import LiveResource, LiveRun, Work
from fleetform.model.plan import HeldBy, Plan
from fleetform.model.run import RunState
from fleetform.plan.approval import following, is_within
from unit.plan.trees import fleet, ledger, planned, row, task, tree, volume

LOCAL, ONE, OTHER = fleet("local"), task("one"), task("other")
WHOLE = planned(tree(LOCAL, ONE, OTHER), ledger())
ENDING = row(ONE, RunState.FINISHING, archived=True)


def test_a_part_of_what_was_approved_is_within_it() -> None:
    """What somebody else has done meanwhile is not done again, and asks nobody."""
    rest = planned(tree(LOCAL, ONE, OTHER), ledger(row(LOCAL), row(ONE)))
    assert [change.key.name for change in rest.changes] == ["other"]
    assert is_within(rest, WHOLE)
    assert is_within(
        planned(tree(LOCAL, ONE, OTHER), ledger(row(LOCAL), row(ONE), row(OTHER))), WHOLE
    )


def test_another_value_is_not_within_it() -> None:
    """The same run with another command was never shown."""
    assert not is_within(planned(tree(LOCAL, task("one", commands=["rm"])), ledger()), WHOLE)
    assert not is_within(planned(tree(LOCAL, task("third")), ledger()), WHOLE)
    assert not is_within(planned(tree(fleet("local", nodes=2)), ledger()), WHOLE)


def test_an_end_of_what_runs_is_not_within_its_creation() -> None:
    """A plan that would destroy was not approved by one that made."""
    ending = planned(tree(), ledger(row(LOCAL)), allow_destroy=True)
    assert ending.changes[0].destructive
    assert not is_within(ending, WHOLE)


def test_what_was_held_by_an_end_is_within_it_once_that_came() -> None:
    """The plan has said that it follows; another document was never shown."""
    held = planned(tree(LOCAL, ONE), ledger(row(LOCAL), ENDING))
    assert [one.by for one in held.held] == [HeldBy.ENDING]
    assert following(held) == 1
    over = replace(ENDING, run=replace(ENDING.run, state=RunState.STOPPED))
    assert is_within(planned(tree(LOCAL, ONE), ledger(row(LOCAL), over)), held)
    other = task("one", commands=["rm"])
    assert not is_within(planned(tree(LOCAL, other), ledger(row(LOCAL), over)), held)


def test_what_waits_for_a_person_does_not_follow() -> None:
    """A permission that was missing was not given by a yes to the rest."""
    held = planned(tree(), ledger(row(LOCAL)))
    assert [one.by for one in held.held] == [HeldBy.DESTRUCTIVE]
    assert following(held) == 0
    assert not is_within(planned(tree(), ledger(row(LOCAL)), allow_destroy=True), held)


def test_a_result_that_came_meanwhile_is_found_again() -> None:
    """It did not have to be stopped: how the document comes to stand is another matter."""
    held = planned(tree(LOCAL, ONE), ledger(row(LOCAL), ENDING))
    done = replace(ENDING, run=replace(ENDING.run, state=RunState.DONE))
    found = planned(tree(LOCAL, ONE), ledger(row(LOCAL), done))
    assert [step.verb for step in found.steps] == ["run.restore"]
    assert is_within(found, held)


def test_another_run_that_would_end_is_another_question() -> None:
    """It began on the fleet while somebody thought about the plan."""
    live = ledger(row(LOCAL), row(ONE, RunState.RUNNING), row(OTHER, RunState.RUNNING))
    one = replace(live, work=(Work("one", "local", 1, 0),))
    both = replace(live, work=(*one.work, Work("other", "local", 1, 0)))
    approved, newer = (planned(tree(ONE, OTHER), each, allow_destroy=True) for each in (one, both))
    assert is_within(approved, newer)
    assert not is_within(newer, approved)
    assert is_within(newer, approved, unasked=True), (
        "who was asked nothing permits what is permitted"
    )


def everything(*rows, work=()):
    """The plan that removes it all."""
    live = replace(ledger(*rows), work=work)
    return planned(tree(), live, allow_destroy=True, destroy=True)


def test_who_removes_everything_agrees_to_every_end_of_it() -> None:
    """A run that waited has begun, or ended: it was in the list by its name."""
    waiting = row(ONE, RunState.SUBMITTED, attempt=0)
    approved = everything(row(LOCAL), waiting)
    working = replace(waiting, run=replace(waiting.run, state=RunState.RUNNING))
    busy = everything(row(LOCAL), working, work=(Work("one", "local", 1, 0),))
    assert busy.changes != approved.changes
    assert is_within(busy, approved)
    over = replace(waiting, run=replace(waiting.run, state=RunState.DONE))
    assert is_within(everything(row(LOCAL), over), approved)
    assert is_within(everything(row(LOCAL)), approved), "less is less"


def test_who_removes_everything_agrees_to_nothing_that_was_not_there() -> None:
    """What somebody has made meanwhile was in no list, and neither was its work."""
    one = row(ONE, RunState.RUNNING)
    approved = everything(row(LOCAL), one, work=(Work("one", "local", 1, 0),))
    more = everything(row(LOCAL), one, row(OTHER, RunState.SUBMITTED))
    assert not is_within(more, approved)
    another = replace(one, uid="f" * 32)
    assert not is_within(everything(row(LOCAL), another), approved)
    foreign = everything(row(LOCAL), one, work=(Work("other", "local", 1, 0),))
    assert not is_within(foreign, approved)
    assert not is_within(planned(tree(ONE), ledger(one, row(LOCAL)), allow_destroy=True), approved)


def test_who_removes_everything_agrees_to_the_loss_of_no_data_that_was_kept() -> None:
    """Somebody has applied another policy meanwhile."""
    kept, lost = (volume("data", deletion_policy=one) for one in ("retain", "delete"))
    approved = everything(row(LOCAL), row(kept))
    assert is_within(approved, approved)
    assert not is_within(everything(row(LOCAL), row(lost)), approved)


@pytest.mark.parametrize("destroy", [False, True])
def test_a_volume_that_waited_for_an_end_goes_after_it(destroy: bool) -> None:
    """It was shown as what follows; another one that has its name by then was not."""
    user = task("user", volumes=[{"name": "data", "path": "/d"}])
    data = row(volume("data", deletion_policy="delete"))
    ending = row(user, RunState.FINISHING, archived=True)
    kept = [row(LOCAL)]
    desired = tree() if destroy else tree(LOCAL)

    def made(*rows: LiveResource) -> Plan:
        return planned(desired, ledger(*kept, *rows), allow_destroy=True, destroy=destroy)

    approved = made(data, ending)
    over = replace(ending, run=LiveRun(RunState.STOPPED, 1))
    after = made(data, over)
    assert [str(one.key) for one in after.changes] == [
        *(["fleet/local"] if destroy else []),
        "volume/data",
    ]
    assert is_within(after, approved)
    assert not is_within(made(replace(data, uid="0" * 32), over), approved)
