"""An apply that was entered before: when a question is asked before it is finished."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fleetform.app import apply as app_apply
from fleetform.app.unfinished import Unfinished, has_unfinished
from fleetform.cli import earlier_apply as module
from fleetform.cli import tree as cli_tree
from fleetform.cli.earlier_apply import plan_after_earlier, settle_earlier
from fleetform.cli.failure import Refused
from unit.plan.trees import NOW_MS, fleet, ledger, planned, row, task, tree

LOCAL, ONE = fleet("local"), task("one")
BEFORE, ENTERED = fleet("local", nodes=0), fleet("local", nodes=3)


@pytest.fixture
def interrupted(monkeypatch):
    """An apply of three hosts that no process carries out; returns a workspace and what was settled."""
    rest = planned(tree(ENTERED), ledger(row(BEFORE)))
    found = (Unfinished("ada", NOW_MS, rest),)
    settled = []

    async def settle(*_args, **_names):
        settled.append(True)

    def install(declared):
        monkeypatch.setattr(app_apply, "settle", settle)
        monkeypatch.setattr(module, "leave_quietly", lambda _workspace: None)
        monkeypatch.setattr(
            cli_tree, "load", lambda *_args, **_names: SimpleNamespace(desired=tree(declared))
        )

        def read(what, _empty):
            return not settled if what is has_unfinished else found

        return SimpleNamespace(manager=lambda: None, read=read), settled

    return install


def test_a_changed_configuration_is_asked_about(interrupted, capfd) -> None:
    """Without a terminal nothing is created; the rest and who approved it are shown."""
    workspace, settled = interrupted(BEFORE)
    with pytest.raises(Refused) as refused:
        settle_earlier(workspace, yes=False)
    assert "cannot ask for confirmation" in str(refused.value)
    assert not settled
    shown = capfd.readouterr().err
    assert "approved by ada at 2023-11-14T22:13:20Z" in shown
    assert "nodes: 0 → 3" in shown
    assert "fleet/local is declared differently now" in shown


@pytest.mark.parametrize(("declared", "yes"), [(BEFORE, True), (ENTERED, False)])
def test_no_question_where_permission_is_there(interrupted, declared, yes) -> None:
    """`-y` is permission, and so is the approval of what is declared still."""
    workspace, settled = interrupted(declared)
    assert settle_earlier(workspace, yes=yes)
    assert settled


def test_an_apply_that_ends_while_a_plan_is_made_does_not_block_it(monkeypatch) -> None:
    """The plan that was made meanwhile is made again, although no earlier apply is left to settle."""
    monkeypatch.setattr(module, "settle_earlier", lambda _workspace, **_yes: False)
    under_way = row(task("one", cpu=2))
    blocked = planned(
        tree(LOCAL, ONE), ledger(row(LOCAL), replace(under_way, operation="run.update"))
    )
    assert blocked.held
    free = planned(tree(LOCAL, ONE), ledger(row(LOCAL), under_way))
    plans = iter([blocked, free])
    assert plan_after_earlier(SimpleNamespace(), lambda: next(plans), yes=False) is free
