"""What somebody else owns is left alone."""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.plan import Action, HeldBy
from fleetform.model.volume import Claim
from fleetform.spec.desired import ResourceKey
from unit.plan.blockers.guards import held_by, make
from unit.plan.trees import fleet, ledger, row, task, tree, volume


def test_what_somebody_else_owns_is_held() -> None:
    """With every permission, and with the owner's name."""
    key = ResourceKey("volume", "data")
    live = replace(ledger(row(fleet("local"))), claims={key: Claim("/data", "u", "theirs")})
    plan = make(tree(fleet("local"), volume("data"), task("t", volumes=[{"name": "data"}])), live)
    assert held_by(plan) == {"volume/data": HeldBy.OWNER, "run/t": HeldBy.DEPENDENCY}
    assert plan.held[1].detail == "/data belongs to environment theirs (u)"
    assert "delete the marker" in plan.held[1].cure


def test_what_is_to_be_where_a_file_is_is_held() -> None:
    """Made or taken in, a volume is a directory."""
    key = ResourceKey("volume", "data")
    live = replace(ledger(row(fleet("local"))), claims={key: Claim("/data", "", is_file=True)})
    for imports in ((), (key,)):
        desired = replace(tree(fleet("local"), volume("data")), imports=imports)
        (held,) = make(desired, live).held
        assert (held.by, held.cure) == (HeldBy.DEPENDENCY, "declare the path of a directory")
        assert held.detail == "/data is not a directory, and a volume must be one"


def test_what_is_not_there_is_not_found() -> None:
    """Before anything is carried out; without the entry it is made, and nothing is in its way."""
    key = ResourceKey("volume", "data")
    claim = Claim("/data", "", missing="volume/data")
    live = replace(ledger(row(fleet("local"))), claims={key: claim})
    declared = tree(fleet("local"), volume("data"))
    (held,) = make(replace(declared, imports=(key,)), live).held
    assert (held.change.action, held.by) == (Action.ADOPT, HeldBy.DEPENDENCY)
    assert held.detail == "/data does not exist, so there is nothing to import"
    assert held.cure == (
        "declare the path where it is, or remove volume/data from `import:`; then the volume is created"
    )
    assert not make(declared, live).held


def test_what_lies_around_or_within_somebody_elses_is_held() -> None:
    """The other volume and where it lies are named, and the cure is a place beside it."""
    key = ResourceKey("volume", "data")
    for is_inside, said in (
        (True, "/data/x, inside /data, is volume x of environment theirs (u)"),
        (False, "/data is inside /data/x, which is volume x of environment theirs (u)"),
    ):
        claim = Claim(
            "/data", "u", "theirs", "volume x", marker_path="/data/x", is_inside=is_inside
        )
        live = replace(ledger(row(fleet("local"))), claims={key: claim})
        (held,) = make(tree(fleet("local"), volume("data")), live).held
        assert (held.by, held.detail) == (HeldBy.OWNER, said)
        assert "declare a path that neither contains /data/x nor is inside it" in held.cure
        ours = {key: replace(claim, owner_uid=live.environment_uid)}
        (held,) = make(tree(fleet("local"), volume("data")), replace(live, claims=ours)).held
        assert held.by is HeldBy.DEPENDENCY
