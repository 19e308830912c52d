"""What an entry gives a name that nobody declares stays, until somebody says what was meant."""

from __future__ import annotations

import json
from dataclasses import replace

from fleetform.model.plan import HeldBy
from fleetform.model.run import RunState
from fleetform.plan.renames import moved_live
from fleetform.spec.desired import Declared, Desired, ResourceKey
from unit.plan.trees import element, fleet, ledger, planned, row, task, tree, volume

DATA, TEXTS = ResourceKey("volume", "data"), ResourceKey("volume", "texts")


def moved(*declared: Declared, pair: tuple[ResourceKey, ResourceKey] = (DATA, TEXTS)) -> Desired:
    return replace(tree(*declared), moved=(pair,))


def test_what_has_the_old_name_is_held() -> None:
    """Permission to destroy is none to remove what was to be kept; all else goes on."""
    live = ledger(row(volume("data", deletion_policy="delete")))
    plan = planned(moved(fleet("local")), live, allow_destroy=True)
    assert [change.key.name for change in plan.changes] == ["local"]
    (held,) = plan.held
    assert held.by is HeldBy.DEPENDENCY
    assert held.detail == (
        "`moved:` says that volume/data is volume/texts, which no document declares"
    )


def test_an_entry_that_was_carried_out_means_nothing() -> None:
    """What has the new name already goes as anything that leaves the tree."""
    live = ledger(row(volume("texts")))
    assert [change.key for change in planned(moved(), live).changes] == [TEXTS]
    assert planned(moved(), ledger()).is_empty


def test_it_may_be_let_go_by_its_new_name() -> None:
    """`removed:` is as good as a document: somebody has said what becomes of it."""
    desired = replace(moved(), removed=(TEXTS,))
    plan = planned(desired, ledger(row(volume("data"))))
    assert [change.key for change in plan.changes] == [TEXTS]


def test_elements_that_left_a_renamed_sweep_go() -> None:
    """The sweep is declared under its new name, which is all that the entry says."""
    pair = (ResourceKey("run", "old"), ResourceKey("run", "new"))
    live = ledger(row(element("old", lr=1)), row(element("old", lr=2)))
    plan = planned(moved(element("new", lr=1), pair=pair), live)
    assert not plan.held
    plan = planned(moved(pair=pair), live)
    assert not plan.changes
    assert {held.detail for held in plan.held} == {
        "`moved:` says that run/old is run/new, which no document declares"
    }


def test_what_a_run_executes_mentions_new_names_too() -> None:
    """A run that is being stopped uses a renamed volume under the volume's new name."""
    before = row(task("train", state="stopped", commands=["new"]), RunState.FINISHING)
    assert before.run is not None
    executed = json.dumps(task("train", volumes=[{"name": "data", "path": "/data"}]).document)
    at_work = replace(before, run=replace(before.run, executed=executed))
    live = ledger(at_work, row(volume("data")))
    renamed, _ = moved_live(moved(volume("texts")), live)
    run = renamed.resources[before.key].run
    assert run is not None
    assert json.loads(run.executed)["volumes"] == [{"name": "texts", "path": "/data"}]
