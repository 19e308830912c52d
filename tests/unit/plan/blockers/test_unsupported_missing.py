"""Nothing starts on a volume whose directory was seen to be gone."""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.drift import GONE, TABLE, Drift, RecordedDrift
from fleetform.model.live import Live
from fleetform.model.plan import HeldBy, Scope
from fleetform.spec.desired import ResourceKey
from unit.plan.blockers.guards import held_by, make
from unit.plan.trees import NOW_MS, fleet, ledger, row, task, tree, volume

LOCAL, DATA, COPY = fleet("local"), volume("data"), volume("copy", path="/copy")
MOUNT = [{"name": "data", "path": "/in"}]
NEW, OLD = task("train", volumes=MOUNT, commands=["new"]), task("train", volumes=MOUNT)
USER = ResourceKey("run", "train")


def live(seen: str = GONE) -> Live:
    line = TABLE["volume", "directory"]
    drift = Drift(DATA.key, "directory", line.drift_class, line.remedy, "there", seen)
    recorded = (RecordedDrift(drift, NOW_MS - 9, NOW_MS - 7),)
    rows = (row(LOCAL), row(DATA), row(COPY), row(OLD))
    return replace(ledger(*rows), recorded_drift=recorded)


def test_a_run_is_not_started_on_a_volume_that_is_gone() -> None:
    """The plan says which, and what releases it; a run that mounts nothing of it starts."""
    plan = make(tree(LOCAL, DATA, COPY, NEW, task("other")), live())
    assert [str(change.key) for change in plan.changes] == ["run/other"]
    (held,) = plan.held
    assert (held.change.key, held.by) == (USER, HeldBy.DRIFT)
    assert held.detail == "it mounts volume/data, whose directory is gone"
    assert "--refresh --replace volume/data" in held.cure


def test_what_only_differs_keeps_no_run_from_its_volume() -> None:
    """Another directory is there to be mounted, and a healed one is as it was."""
    desired = tree(LOCAL, DATA, COPY, NEW)
    for other in (live("another directory, empty"), replace(live(), recorded_drift=())):
        assert held_by(make(desired, other)) == {}


def test_of_alternatives_one_that_is_there_is_enough() -> None:
    """A mount that names several volumes takes one of them."""
    either = [{"name": ["data", "copy"], "path": "/in"}]
    desired = tree(LOCAL, DATA, COPY, task("train", commands=["new"]))
    wanted = replace(NEW, document={**NEW.document, "volumes": either})
    desired = replace(desired, resources={**desired.resources, USER: wanted})
    assert held_by(make(desired, live())) == {}


def test_a_volume_that_is_made_again_is_there() -> None:
    """With `--refresh --replace` the same plan begins with an empty one and starts the run."""
    found = live()
    drifts = tuple(one.drift for one in found.recorded_drift)
    looked = replace(found, drift=drifts, observed_at_ms=NOW_MS)
    scope = Scope(replaces=("volume/data",))
    plan = make(tree(LOCAL, DATA, COPY, NEW), looked, scope)
    assert held_by(plan) == {}
    assert {str(change.key) for change in plan.changes} == {"volume/data", "run/train"}
