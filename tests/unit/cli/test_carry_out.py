"""What goes on without another question where somebody else was faster."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fleetform.cli import carry_out as module
from fleetform.cli.carry_out import Watching, carry_out, is_within
from fleetform.model.refusals import StalePlan
from unit.plan.trees import fleet, ledger, planned, row, task, tree

LOCAL, ONE, OTHER = fleet("local"), task("one"), task("other")
WHOLE = planned(tree(LOCAL, ONE, OTHER), ledger())


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


@pytest.fixture
def stale(monkeypatch):
    """Applies that are stale as often as said; tells which plans were tried."""
    tried = []

    def install(times):
        def fake(_workspace, plan, _watching):
            tried.append(plan)
            if len(tried) <= times:
                raise StalePlan(["run/one exists by now"])
            return 0

        monkeypatch.setattr(module, "_carry_out", fake)
        monkeypatch.setattr(module, "settle_earlier", lambda _workspace: True)
        return tried

    return install


def test_the_rest_goes_on_after_another_was_faster(stale) -> None:
    """Planned again, it is carried out without an end as stale."""
    tried = stale(1)
    rest = planned(tree(LOCAL, ONE, OTHER), ledger(row(LOCAL), row(ONE)))
    assert carry_out(SimpleNamespace(), WHOLE, Watching(), again=lambda: rest) == 0
    assert tried == [WHOLE, rest]


def test_more_than_was_approved_stays_stale(stale) -> None:
    """Whoever edits the tree meanwhile is asked anew."""
    tried = stale(1)
    more = planned(tree(LOCAL, task("third")), ledger())
    with pytest.raises(StalePlan):
        carry_out(SimpleNamespace(), WHOLE, Watching(), again=lambda: more)
    assert tried == [WHOLE]


def test_a_kept_plan_is_never_made_again(stale) -> None:
    """A file is carried out as it is, or refused."""
    stale(1)
    with pytest.raises(StalePlan):
        carry_out(SimpleNamespace(), WHOLE, Watching())


def test_it_is_tried_so_often_and_no_more(stale) -> None:
    """Somebody who changes things without an end is told."""
    tried = stale(100)
    with pytest.raises(StalePlan):
        carry_out(SimpleNamespace(), WHOLE, Watching(), again=lambda: WHOLE)
    assert len(tried) == module._FASTER_MAX + 1
