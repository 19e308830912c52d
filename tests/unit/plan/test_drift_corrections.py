"""What a plan does about drift where the world was asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import check
from fleetform.model.drift import OTHER_DATA, TABLE, Drift
from fleetform.model.live import Live
from fleetform.model.plan import Action, HeldBy, Permissions, Reason, Scope
from fleetform.model.run_state import RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.spec.desired import ResourceKey
from fleetform.views.reasons import reason_sentence
from unit.plan.trees import NOW_MS, fleet, item, ledger, planned, row, task, tree, volume

LOCAL, DATA, TRAIN = fleet("local"), volume("data"), task("train")
TREE = tree(LOCAL, DATA, TRAIN)


def _drift(kind: str, name: str, field: str, part: str = "") -> Drift:
    found = TABLE[kind, field]
    key = ResourceKey(kind, name)
    return Drift(key, field, found.drift_class, found.remedy, "as it was", "other", part)


def _live(*drifts: Drift) -> Live:
    live = ledger(*(row(one) for one in (LOCAL, DATA, TRAIN)))
    return replace(live, drift=drifts, observed_at_ms=NOW_MS)


@pytest.mark.parametrize(
    ("drift", "verb"),
    [
        (_drift("fleet", "local", "agent", "local-0"), "fleet.update"),
        (_drift("volume", "data", "mark"), "volume.update"),
    ],
    ids=["agent", "mark"],
)
def test_what_loses_nothing_is_set_right(drift, verb) -> None:
    """It is a change that carries the declared document and no destruction; the checker agrees."""
    live = _live(drift)
    plan = planned(TREE, live)
    (change,) = plan.changes
    assert (change.action, change.reasons) == (Action.UPDATE, (Reason.DRIFTED,))
    assert [step.verb for step in change.steps] == [verb]
    (field,) = change.fields
    assert (field.path, field.before, field.after) == (drift.path, "other", "as it was")
    assert not change.destructive
    assert check(plan, TREE, live, Permissions()) == ()


def test_what_hides_a_loss_is_held() -> None:
    """A volume whose directory is gone is not made again; the plan says what releases it."""
    live = _live(_drift("volume", "data", "directory"))
    plan = planned(TREE, live, allow_destroy=True)
    assert plan.changes == ()
    (held,) = plan.held
    assert (held.change.key, held.by) == (DATA.key, HeldBy.DRIFT)
    assert "--refresh --replace volume/data" in held.cure
    assert check(plan, TREE, live, Permissions(allow_destroy=True)) == ()


def test_a_change_of_a_volume_that_is_gone_is_held() -> None:
    """It would be of an empty directory; a volume that goes to another path is changed as ever."""
    live = _live(_drift("volume", "data", "directory"))
    renamed = tree(LOCAL, volume("data", description="texts"), TRAIN)
    plan = planned(renamed, live)
    assert plan.changes == ()
    (held,) = plan.held
    assert (held.by, held.detail) == (
        HeldBy.DRIFT,
        "directory: as it was (expected) → other (seen)",
    )
    assert [one.path for one in held.change.fields] == ["description"]
    assert check(plan, renamed, live, Permissions()) == ()
    plan = planned(tree(LOCAL, volume("data", path="/new"), TRAIN), live, allow_destroy=True)
    assert [change.action for change in plan.changes] == [Action.REPLACE]


def test_a_volume_that_is_gone_begins_anew_when_asked() -> None:
    """It is a replacement; nothing is left to lose, so no policy, protection or permission is in the way."""
    live = _live(_drift("volume", "data", "directory"))
    data = replace(row(DATA), protected=True)
    live = replace(live, resources={**live.resources, DATA.key: data})
    scope = Scope(replaces=("volume/data",))
    plan = make_plan(TREE, live, permissions=Permissions(), scope=scope, now_ms=NOW_MS)
    (change,) = plan.changes
    assert (change.action, change.destructive) == (Action.REPLACE, False)
    assert change.reasons == (Reason.REPLACE_ASKED, Reason.DATA_LOST)
    assert reason_sentence(change).endswith("its data is lost: it is created again, empty")
    assert change.at_stake == "its data is lost already, and no run mounts it"
    (step,) = change.steps
    assert (step.verb, step.arguments["take"]) == ("volume.update", "any")
    assert plan.held == ()
    assert check(plan, TREE, live, Permissions(), scope) == ()
    there = _live(_drift("volume", "data", "mark"))
    plan = make_plan(TREE, there, permissions=Permissions(), scope=scope, now_ms=NOW_MS)
    assert not any(Reason.DRIFTED in change.reasons for change in plan.changes)


def test_a_volume_that_lost_its_data_names_the_runs_that_mount_it() -> None:
    """The plan names the runs, and the results that it makes outdated; a new run waits for the directory."""
    mounting = {"volumes": [{"name": "data", "path": "/data"}]}
    old = (task("old", **mounting), item("sweep", 1, **mounting))
    report, new = task("report"), task("new", **mounting)
    waits = task("waits", state="stopped", **mounting)
    desired = tree(LOCAL, DATA, TRAIN, report, *old, new, waits)
    rows = [row(one, started_at_ms=1) for one in (TRAIN, report, *old)]
    rows += [row(LOCAL), row(DATA), row(waits, RunState.SUBMITTED)]
    live = replace(
        ledger(*rows),
        drift=(_drift("volume", "data", "directory"),),
        observed_at_ms=NOW_MS,
        dependents={"sweep": ["report"]},
    )
    scope = Scope(replaces=("volume/data",))
    plan = make_plan(desired, live, permissions=Permissions(), scope=scope, now_ms=NOW_MS)
    begun, submitted = sorted(plan.changes, key=lambda one: one.key.kind, reverse=True)
    assert begun.at_stake == "its data is lost already; runs that mount it: new, old, sweep, waits"
    assert plan.annex["outdates"] == ["old", "report", "sweep[1]"]
    assert submitted.steps[0].needs == (begun.steps[0].key,)
    assert check(plan, desired, live, Permissions(), scope) == ()


def test_a_volume_with_other_data_in_its_place_is_not_called_empty() -> None:
    """The replacement continues with what is there, and says so."""
    live = _live(replace(_drift("volume", "data", "directory"), seen=OTHER_DATA))
    scope = Scope(replaces=("volume/data",))
    plan = make_plan(TREE, live, permissions=Permissions(), scope=scope, now_ms=NOW_MS)
    (change,) = plan.changes
    assert reason_sentence(change).endswith("it continues with the other data that is in its place")


def test_what_is_only_told_changes_nothing() -> None:
    """Permissions, a reboot, a stranger's job: the plan is empty and its annex has them."""
    drifts = (
        _drift("volume", "data", "mode"),
        _drift("fleet", "local", "boot", "local-0"),
        _drift("run", "stranger", "record", "local-0/1"),
    )
    plan = planned(TREE, _live(*drifts))
    assert (plan.changes, plan.held) == ((), ())
    assert plan.annex["depth"] == "refresh"
    assert [one["path"] for one in plan.annex["drift"]] == [one.path for one in drifts]


def test_what_is_changed_anyway_is_not_corrected_beside() -> None:
    """The change makes it anew; one that is to go is not mended first."""
    live = _live(_drift("fleet", "local", "agent", "local-0"), _drift("volume", "data", "mark"))
    plan = planned(tree(fleet("local", nodes=2), TRAIN), live)
    reasons = {change.key: change.reasons for change in plan.changes}
    assert reasons[LOCAL.key] == (Reason.CONTROL_CHANGED,)
    assert reasons[DATA.key] == (Reason.REMOVED,)
    assert len(plan.changes) == 2


def test_without_asking_nothing_is_known() -> None:
    """A plan from the ledger alone says so in its annex."""
    plan = planned(TREE, replace(_live(), observed_at_ms=None))
    assert (plan.annex["depth"], plan.annex["drift"]) == ("ledger", [])


def test_what_was_seen_is_outside_the_digest() -> None:
    """Two looks a minute apart make the same plan."""
    mark = _drift("volume", "data", "mark")
    one = planned(TREE, _live(replace(mark, right_at_ms=1)))
    other = planned(TREE, replace(_live(replace(mark, right_at_ms=2)), observed_at_ms=NOW_MS + 60))
    assert one.digest == other.digest
