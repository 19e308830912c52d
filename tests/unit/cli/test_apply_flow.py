"""What goes on without another question where somebody else was faster."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fleetform.app.apply import ApplyResult
from fleetform.cli import apply_flow as module
from fleetform.cli import earlier_apply
from fleetform.cli.apply_flow import Watching, carry_out
from fleetform.model.live import Work
from fleetform.model.plan import HeldBy
from fleetform.model.refusals import StalePlan
from fleetform.model.run import RunState
from unit.plan.trees import fleet, ledger, planned, row, task, tree

LOCAL, ONE, OTHER = fleet("local"), task("one"), task("other")
WHOLE = planned(tree(LOCAL, ONE, OTHER), ledger())


@pytest.fixture
def stale(monkeypatch):
    """Applies that are stale as often as said; tells which plans were tried."""
    tried = []

    monkeypatch.setattr(module, "leave_quietly", lambda _workspace: None)

    def install(times):
        def fake(_apply, plan):
            tried.append(plan)
            if len(tried) <= times:
                raise StalePlan(["run/one exists now"])
            return module._End(0, None, 0)

        monkeypatch.setattr(module, "_carry_out", fake)
        monkeypatch.setattr(module, "_show_end", lambda *_: None)
        monkeypatch.setattr(earlier_apply, "settle_earlier", lambda _workspace, *, yes: yes)
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


def test_work_that_begins_on_a_fleet_that_goes_ends_where_nobody_was_asked(stale, capsys) -> None:
    """`-y` names no run, so a busy fleet goes; who has read a plan is asked anew."""
    live = ledger(row(LOCAL), row(ONE, RunState.RUNNING))
    busy = replace(live, work=(Work("one", "local", 1, 0),))
    idle, newer = (planned(tree(ONE), each, allow_destroy=True) for each in (live, busy))
    tried = stale(1)
    assert carry_out(SimpleNamespace(), idle, Watching(), again=lambda: newer, unasked=True) == 0
    assert tried == [idle, newer]
    assert "run/one has started meanwhile on hosts that are removed" in capsys.readouterr().out
    tried.clear()
    with pytest.raises(StalePlan):
        carry_out(SimpleNamespace(), idle, Watching(), again=lambda: newer)
    assert tried == [idle]


def test_an_apply_has_one_result_however_often_it_is_planned(stale, tmp_path) -> None:
    """A reader of the growing file stops at it; of a plan that was too late it says nothing."""
    file = tmp_path / "progress"
    watching = Watching(json_into=str(file))
    stale(1)
    assert carry_out(SimpleNamespace(), WHOLE, watching, again=lambda: WHOLE) == 0
    types = [json.loads(line)["type"] for line in file.read_text().splitlines()]
    assert types == ["result"], "plans are written where they are carried out"
    stale(100)
    with pytest.raises(StalePlan):
        carry_out(SimpleNamespace(), WHOLE, watching, again=lambda: WHOLE)
    _first, last = (json.loads(line) for line in file.read_text().splitlines())
    assert (last["state"], last["exit_code"]) == ("refused", 5)


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


ENDING = row(ONE, RunState.FINISHING, archived=True)


@pytest.fixture
def ends():
    """The ends that were shown."""
    return []


@pytest.fixture
def ended(monkeypatch, ends):
    """Applies that all end with a code; tells which plans were carried out."""
    tried = []

    for name in ("leave", "leave_quietly"):
        monkeypatch.setattr(module, name, lambda _workspace: None)

    def install(code=3):
        def fake(_apply, plan):
            tried.append(plan)
            result = ApplyResult("done", code)
            end = module._End(code if plan.held else 0, result, 0)
            return end._replace(changes=len(plan.changes), blocked=len(plan.held))

        monkeypatch.setattr(module, "_carry_out", fake)
        monkeypatch.setattr(module, "_show_end", lambda _, end, *__: ends.append(end))
        return tried

    return install


def test_what_was_held_by_an_end_follows_it(ended) -> None:
    """A document that was put back is carried out once the run that it stood for is over."""
    tried = ended()
    held = planned(tree(LOCAL, ONE), ledger(row(LOCAL), ENDING))
    assert [one.by for one in held.held] == [HeldBy.ENDING]
    over = replace(ENDING, run=replace(ENDING.run, state=RunState.STOPPED))
    free = planned(tree(LOCAL, ONE), ledger(row(LOCAL), over))
    assert carry_out(SimpleNamespace(), held, Watching(), again=lambda: free) == 0
    assert tried == [held, free]


def test_an_end_counts_the_changes_of_all_plans(ended, ends) -> None:
    """An apply that first waits and then changes nothing has applied nothing."""
    ended()
    held = planned(tree(LOCAL, ONE), ledger(row(LOCAL), ENDING))
    over = replace(ENDING, run=replace(ENDING.run, state=RunState.STOPPED))
    free = planned(tree(LOCAL, ONE), ledger(row(LOCAL), over))
    for newer in (held, free):
        carry_out(SimpleNamespace(), held, Watching(), again=lambda newer=newer: newer)
    both = replace(held, changes=free.changes)
    carry_out(SimpleNamespace(), both, Watching(), again=lambda: replace(free, changes=()))
    assert [(one.changes, one.blocked) for one in ends] == [(0, 1), (1, 0), (1, 0)]


def test_another_document_does_not_follow(ended) -> None:
    """Whoever edits the tree while it is waited for is asked anew."""
    tried = ended()
    held = planned(tree(LOCAL, ONE), ledger(row(LOCAL), ENDING))
    over = replace(ENDING, run=replace(ENDING.run, state=RunState.STOPPED))
    other = planned(tree(LOCAL, task("one", commands=["rm"])), ledger(row(LOCAL), over))
    assert carry_out(SimpleNamespace(), held, Watching(), again=lambda: other) == 3
    assert tried == [held]


def test_an_end_that_never_comes_is_not_waited_for_again(ended) -> None:
    """On a silent host nobody knows: it stays held, and the code says so."""
    tried = ended()
    held = planned(tree(LOCAL, ONE), ledger(row(LOCAL), ENDING))
    assert carry_out(SimpleNamespace(), held, Watching(), again=lambda: held) == 3
    assert tried == [held]


def test_who_does_not_wait_is_told_that_it_is_held(ended) -> None:
    """`--detach` leaves: what is held by an end stays held."""
    tried = ended()
    held = planned(tree(LOCAL, ONE), ledger(row(LOCAL), ENDING))
    again = pytest.fail
    assert carry_out(SimpleNamespace(), held, Watching(detach=True), again=again) == 3
    assert tried == [held]
