"""What the world was last seen to be, as the ledger keeps it."""

from __future__ import annotations

import pytest

from contract.ledgers import Desk, carry_out, step, submit_step, written
from fleetform.model.drift import TABLE, Drift, Noted, RecordedDrift
from fleetform.model.plan import Step
from fleetform.model.ports import Ledger
from fleetform.spec.desired import ResourceKey

DATA, LOCAL = ResourceKey("volume", "data"), ResourceKey("fleet", "local")


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


def drift(
    field: str = "directory", *, key: ResourceKey = DATA, part: str = "", seen: str = "gone"
) -> Drift:
    row = TABLE[key.kind, field]
    return Drift(key, field, row.drift_class, row.remedy, "there", seen, part)


def _volume_step(verb: str) -> Step:
    document = {"type": "volume", "fleet": "local", "path": "data"}
    return step(verb, "data", **written(document, fleet="local", path="data"))


@pytest.fixture
def stored(ledger: Ledger) -> Desk:
    made = Desk.of(ledger)
    carry_out(ledger, [_volume_step("volume.make")])
    return made


def recorded(ledger: Ledger) -> tuple[RecordedDrift, ...]:
    return ledger.read_live().recorded_drift


def test_drift_is_remembered_until_it_is_seen_healed(stored: Desk) -> None:
    """With when it was seen first and last; what was right before stays known."""
    gone = RecordedDrift(drift(), 20, 30)
    stored.ledger.note_observations({DATA: {"directory": "there", "mark": "ours"}}, at_ms=10)
    stored.ledger.note_observations({}, [gone], at_ms=30)
    assert recorded(stored.ledger) == (gone,)
    assert stored.ledger.read_noted()[DATA]["directory"] == Noted("there", 10)
    stored.ledger.note_observations({DATA: {"mark": "ours"}}, at_ms=40)
    assert recorded(stored.ledger) == (gone,)
    stored.ledger.note_observations({DATA: {"directory": "there"}}, [], at_ms=50)
    assert recorded(stored.ledger) == ()
    assert stored.ledger.read_noted()[DATA]["directory"] == Noted("there", 50)


def test_drift_of_a_field_that_nobody_saw_right_is_remembered(stored: Desk) -> None:
    """The first look may be the one that finds it."""
    gone = RecordedDrift(drift(), 30, 30)
    stored.ledger.note_observations({}, [gone], at_ms=30)
    assert recorded(stored.ledger) == (gone,)
    assert stored.ledger.read_noted().get(DATA, {}) == {}


def test_taking_note_of_a_value_heals_its_drift(stored: Desk) -> None:
    """From then on it is the right one."""
    stored.ledger.note_observations({}, [RecordedDrift(drift("mode"), 30, 30)], at_ms=30)
    stored.ledger.note_observations({DATA: {"mode": "0750"}}, at_ms=40)
    assert recorded(stored.ledger) == ()


def test_a_correction_that_was_carried_out_heals_drift(stored: Desk) -> None:
    """The host has found the directory with its mark; of its permissions it has said nothing."""
    both = [RecordedDrift(drift("mark"), 30, 30), RecordedDrift(drift("mode"), 30, 30)]
    stored.ledger.note_observations({}, both, at_ms=30)
    carry_out(stored.ledger, [_volume_step("volume.update")])
    assert recorded(stored.ledger) == (both[1],)


def test_a_hello_heals_the_drift_of_its_host(stored: Desk) -> None:
    """Only of that host, and nothing that it cannot know."""
    silent = RecordedDrift(drift("agent", key=LOCAL, part="local-0"), 30, 30)
    stranger = RecordedDrift(drift("unknown", key=LOCAL, part="local-7"), 30, 30)
    job = RecordedDrift(
        drift("record", key=ResourceKey("run", "lost"), part="local-0/a.1.0"), 30, 30
    )
    stored.ledger.note_observations({}, [silent, stranger, job], at_ms=30)
    assert recorded(stored.ledger) == (silent, stranger, job)
    stored.greet(stored.instances[0])
    assert recorded(stored.ledger) == (stranger, job)


def test_drift_leaves_with_its_resource(stored: Desk) -> None:
    """A host that is in the ledger no longer, and a volume that was removed."""
    left = RecordedDrift(drift("agent", key=LOCAL, part="local-9"), 30, 30)
    stored.ledger.note_observations({}, [left, RecordedDrift(drift(), 30, 30)], at_ms=30)
    assert [one.drift.resource for one in recorded(stored.ledger)] == [DATA]
    carry_out(stored.ledger, [step("volume.forget", "data", fleet="local", path="data")])
    assert recorded(stored.ledger) == ()
