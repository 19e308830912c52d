"""What the world was last seen to be, as the ledger keeps it."""

from __future__ import annotations

from contract.ledgers import Desk, submit_step
from fleetform.model.drift import Noted
from fleetform.spec.desired import ResourceKey


def _fleet(desk: Desk) -> ResourceKey:
    (key,) = [key for key in desk.ledger.read_live().resources if key.kind == "fleet"]
    return key


def test_what_was_right_is_kept_with_when(desk: Desk) -> None:
    """A field that is not seen right again keeps its last time; another one moves on."""
    key, ledger = _fleet(desk), desk.ledger
    assert ledger.read_noted() == {}
    ledger.note_observations({key: {"a": "1", "b": "x"}}, at_ms=10)
    ledger.note_observations({key: {"b": "y"}}, at_ms=20)
    assert ledger.read_noted() == {key: {"a": Noted("1", 10), "b": Noted("y", 20)}}


def test_what_is_gone_is_passed_over(desk: Desk) -> None:
    """A resource that left while the world was looked at is not made by a note."""
    desk.ledger.note_observations({ResourceKey("volume", "gone"): {"a": "1"}}, at_ms=10)
    assert desk.ledger.read_noted() == {}


def test_known_runs_are_told_from_strangers(desk: Desk) -> None:
    """However many are asked for at once."""
    desk.submit(submit_step("a"))
    uid = desk.run("a").uid
    asked = [f"{number:032x}" for number in range(1_000_000, 1_001_200)]
    assert desk.ledger.read_known_runs([*asked, uid]) == {uid}
    assert desk.ledger.read_known_runs([]) == frozenset()


def test_the_last_change_through_us_has_a_name(desk: Desk) -> None:
    """Of fleets and volumes: who applied it, and when that was over."""
    changes = desk.ledger.read_last_changes()
    assert set(changes) == {_fleet(desk)}
    assert changes[_fleet(desk)].at_ms > 0


def test_an_apply_is_found_by_its_uid(desk: Desk) -> None:
    """However many came after it; None for one that never was."""
    for number in range(4):
        desk.submit(submit_step(f"r{number}"))
    oldest = desk.ledger.read_applies()[-1]
    assert desk.ledger.read_apply(oldest.uid) == oldest
    assert desk.ledger.read_apply("none") is None
