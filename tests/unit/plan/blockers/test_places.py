"""Two volumes never share a directory, also not for the length of an apply."""

from __future__ import annotations

from dataclasses import replace

from fleetform.checker import check
from fleetform.model.plan import HeldBy, Permissions
from fleetform.spec.desired import Declared, ResourceKey
from unit.plan.trees import fleet, ledger, planned, row, task, tree, volume

OLD = volume("old", "f", "/data")
NEW = volume("new", "f", "/data")
KEY = ResourceKey("volume", "new")


def test_the_place_of_one_that_goes_is_free_once_it_has_gone() -> None:
    """Another name for the same directory: the old volume goes first, then the new one comes."""
    live = ledger(row(fleet("f")), row(volume("old", "f", "/data", deletion_policy="delete")))
    plan = planned(tree(fleet("f"), NEW), live, allow_destroy=True)
    steps = {step.key: step for step in plan.steps}
    assert steps["volume.make:volume/new"].needs == ("volume.remove:volume/old",)


def test_data_that_stays_is_taken_in_where_somebody_says_so() -> None:
    """It keeps its mark when its volume is forgotten, so that a host would refuse another."""
    live = ledger(row(fleet("f")), row(OLD))
    desired = tree(fleet("f"), NEW)
    plan = planned(desired, live)
    assert [step.verb for step in plan.steps] == ["volume.forget"]
    assert "write `import: [volume/new]`" in plan.held[0].cure
    steps = planned(replace(desired, imports=(KEY,)), live).steps
    needs = {step.verb: step.needs for step in steps}
    assert needs == {"volume.forget": (), "volume.adopt": ("volume.forget:volume/old",)}


def test_the_place_of_one_that_is_held_is_taken() -> None:
    """While something keeps the old volume, nothing is made or taken in where it lies."""
    user = task("user", volumes=[{"name": "old", "path": "/in"}])
    live = ledger(row(fleet("f")), replace(row(OLD), protected=True), row(user))
    for imports in ((), (KEY,)):
        desired = replace(tree(fleet("f"), NEW, user), imports=imports)
        held = {one.change.key: one for one in planned(desired, live).held}
        assert held[KEY].by is HeldBy.DEPENDENCY
        assert "volume/old still has this directory" in held[KEY].detail


def test_who_waits_for_a_place_has_its_own_still() -> None:
    """In whatever order they are looked at: data comes to scratch's place, cache to that of data."""
    data = volume("data", "f", "/1", deletion_policy="delete")
    live = ledger(
        row(fleet("f")), row(data), replace(row(volume("scratch", "f", "/2")), protected=True)
    )
    coming = [volume("data", "f", "/2", deletion_policy="delete"), volume("cache", "f", "/1")]
    for imports in ((), (ResourceKey("volume", "cache"),)):
        desired = replace(tree(fleet("f"), *coming), imports=imports)
        plan = planned(desired, live, allow_destroy=True)
        assert plan.is_empty
        assert check(plan, desired, live, Permissions(allow_destroy=True)) == ()
        assert {
            one.change.key.name: one.detail for one in plan.held if one.change.key.name != "scratch"
        } == {
            "cache": "volume/data still has this directory",
            "data": "volume/scratch still has this directory",
        }


def test_what_needs_a_volume_without_a_place_waits_with_it() -> None:
    """A run that mounts it is not submitted before it is there."""
    user = task("user", volumes=[{"name": "new", "path": "/in"}])
    live = ledger(row(fleet("f")), replace(row(OLD), protected=True))
    plan = planned(tree(fleet("f"), NEW, user), live)
    assert plan.is_empty
    assert {one.change.key.name for one in plan.held} == {"old", "new", "user"}


def test_two_volumes_change_places() -> None:
    """Both go before either comes; what keeps its data has its place for itself."""
    for policy, verb in (("delete", "volume.remove"), ("retain", "")):

        def at(name: str, path: str, policy: str = policy) -> Declared:
            return volume(name, "f", path, deletion_policy=policy)

        live = ledger(row(fleet("f")), row(at("a", "/1")), row(at("b", "/2")))
        plan = planned(tree(fleet("f"), at("a", "/2"), at("b", "/1")), live, allow_destroy=True)
        steps = {step.key: step for step in plan.steps}
        if not verb:
            assert not steps
            continue
        assert set(steps["volume.make:volume/a"].needs) == {f"{verb}:volume/a", f"{verb}:volume/b"}


def test_a_directory_in_or_around_the_place_of_one_that_goes() -> None:
    """The old volume goes first with its data, and while something keeps it, the new one waits."""
    pairs = {
        ("/data/sets", "/data"): "inside this one",
        ("/data", "/data/sets"): "that contains this one",
    }
    for (old, new), how in pairs.items():
        going = row(volume("old", "f", old, deletion_policy="delete"))
        desired = tree(fleet("f"), volume("new", "f", new))
        plan = planned(desired, ledger(row(fleet("f")), going), allow_destroy=True)
        steps = {step.key: step for step in plan.steps}
        assert steps["volume.make:volume/new"].needs == ("volume.remove:volume/old",)
        live = ledger(row(fleet("f")), replace(going, protected=True))
        held = {one.change.key: one for one in planned(desired, live, allow_destroy=True).held}
        assert held[KEY].by is HeldBy.DEPENDENCY
        assert held[KEY].detail == f"volume/old still has a directory {how}"
        assert held[KEY].cure == "apply again once volume/old is removed"


def test_data_that_is_kept_is_in_the_way() -> None:
    """What is forgotten leaves its mark: the host would refuse what comes around or into it."""
    for old, new in (("/data/sets", "/data"), ("/data", "/data/sets")):
        live = ledger(row(fleet("f")), row(volume("old", "f", old)))
        for name in ("new", "old"):
            desired = tree(fleet("f"), volume(name, "f", new))
            plan = planned(desired, live, allow_destroy=True)
            held = {one.change.key.name: one for one in plan.held}
            assert held[name].by is HeldBy.DEPENDENCY
            assert "a path outside the data of volume/old, which is kept" in held[name].cure


def test_one_that_takes_the_places_of_several() -> None:
    """All of them go before it comes; what lies beside has nothing to do with it."""
    rows = [
        row(volume(name, "f", f"/data/{name}", deletion_policy="delete")) for name in ("a", "b")
    ]
    live = ledger(row(fleet("f")), row(volume("c", "f", "/data2")), *rows)
    plan = planned(tree(fleet("f"), NEW), live, allow_destroy=True)
    steps = {step.key: step for step in plan.steps}
    assert steps["volume.make:volume/new"].needs == (
        "volume.remove:volume/a",
        "volume.remove:volume/b",
    )


def test_a_directory_is_taken_whichever_fleet_mounts_it() -> None:
    """Fleets of one machine have one file system, and a protected volume stays whose it is."""
    live = ledger(row(fleet("f")), row(fleet("g")), replace(row(OLD), protected=True))
    for imports in ((), (ResourceKey("volume", "new"),)):
        desired = tree(fleet("f"), fleet("g"), volume("new", "g", "/data"))
        plan = planned(replace(desired, imports=imports), live)
        assert {str(one.change.key): one.by for one in plan.held} == {
            "volume/new": HeldBy.DEPENDENCY,
            "volume/old": HeldBy.PROTECTION,
        }
