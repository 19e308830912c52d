"""What a volume leaves where it was is known until a volume has it again."""

from __future__ import annotations

import pytest

from contract.ledgers import carry_out, enter, plan_of, step, written
from fleetform.model.apply import StepOutcome
from fleetform.model.plan import Predicate, Step
from fleetform.model.ports import Ledger, StalePlan
from fleetform.model.volume import RetainedData
from fleetform.spec.desired import ResourceKey

DATA = ResourceKey("volume", "data")


def make(name: str = "data", path: str = "data", verb: str = "volume.make", **more: str) -> Step:
    document: dict[str, object] = {"type": "volume", "fleet": "local", "path": path}
    return step(verb, name, **written(document), fleet="local", path=path, **more)


def let_go(ledger: Ledger) -> RetainedData:
    """A volume that was made and let go with its data kept."""
    carry_out(ledger, [make()])
    uid = ledger.read_live().resources[DATA].uid
    carry_out(ledger, [step("volume.forget", "data", fleet="local", path="data")])
    return RetainedData("data", uid, "data")


def test_what_is_let_go_is_remembered(ledger: Ledger) -> None:
    """With its uid, and it is no snapshot: nothing was put aside."""
    left = let_go(ledger)
    assert ledger.read_live().left == (left,)
    assert ledger.read_snapshots() == ()


def test_what_is_removed_leaves_nothing(ledger: Ledger) -> None:
    """Its data is gone, so there is nothing to come back."""
    carry_out(ledger, [make()])
    carry_out(ledger, [step("volume.remove", "data", fleet="local", path="data")])
    assert ledger.read_live().left == ()


def test_it_comes_back_as_who_it_was(ledger: Ledger) -> None:
    """The mark in its directory bears that uid."""
    left = let_go(ledger)
    carry_out(ledger, [make(returns=left.uid)])
    live = ledger.read_live()
    assert live.resources[DATA].uid == left.uid
    assert live.left == ()


def test_what_was_planned_for_it_before_it_went_is_stale(ledger: Ledger) -> None:
    """It is the same volume, under a document that may be another: each life has its generations."""
    carry_out(ledger, [make()])
    row = ledger.read_live().resources[DATA]
    pin = Predicate("generation", DATA, str(row.generation))
    old = plan_of(ledger, [step("volume.remove", "data", fleet="local", path="data")], pin)
    carry_out(ledger, [step("volume.forget", "data", fleet="local", path="data")])
    carry_out(ledger, [make(returns=row.uid)])
    with pytest.raises(StalePlan, match="its generation is 11, and was 1"):
        enter(ledger, old)


def test_a_return_that_fails_can_be_tried_again(ledger: Ledger) -> None:
    """What was left is left still, and no row is in the way."""
    left = let_go(ledger)
    back = make(returns=left.uid)
    accepted = enter(ledger, plan_of(ledger, [back]))
    ledger.begin_steps(accepted.apply_uid, [back], now_ms=1)
    outcome = StepOutcome(back.key, "the host is silent")
    ledger.finish_steps(accepted.apply_uid, [back], [outcome], now_ms=1)
    live = ledger.read_live()
    assert (live.left, live.resources) == ((left,), {})
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="", now_ms=1)
    carry_out(ledger, [back], now_ms=2)
    assert ledger.read_live().resources[DATA].uid == left.uid


def test_it_comes_back_over_another_try(ledger: Ledger) -> None:
    """A volume of this name that could not be made elsewhere gives way to who it was."""
    left = let_go(ledger)
    elsewhere = make(path="other")
    accepted = enter(ledger, plan_of(ledger, [elsewhere]))
    ledger.begin_steps(accepted.apply_uid, [elsewhere], now_ms=1)
    outcome = StepOutcome(elsewhere.key, "no space")
    ledger.finish_steps(accepted.apply_uid, [elsewhere], [outcome], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="", now_ms=1)
    carry_out(ledger, [make(returns=left.uid)])
    assert ledger.read_live().resources[DATA].uid == left.uid


def test_who_takes_the_data_in_has_it(ledger: Ledger) -> None:
    """It is another volume's from then on, and a plan that would take it back is stale."""
    left = let_go(ledger)
    back = plan_of(ledger, [make(returns=left.uid)], Predicate("left", DATA, left.uid))
    carry_out(ledger, [make("texts", verb="volume.adopt")])
    assert ledger.read_live().left == ()
    with pytest.raises(Exception, match="another volume has its data now"):
        enter(ledger, back)


def test_it_is_renamed_with_its_volume(ledger: Ledger) -> None:
    """A volume that is elsewhere by now has left something under its old name."""
    let_go(ledger)
    carry_out(ledger, [make(path="other")])
    key = ResourceKey("volume", "texts")
    carry_out(
        ledger,
        [Step(f"resource.move:{key}", "resource.move", key, (), {"from": "data", "sweep": ""})],
    )
    assert [one.volume for one in ledger.read_live().left] == ["texts"]
