"""Network volumes: the ledger knows their disks, and which instance has each."""

from __future__ import annotations

from contract.ledgers import enter, plan_of, step, written
from fleetform.model.apply import StepOutcome
from fleetform.model.plan import Step
from fleetform.model.ports import Ledger
from fleetform.model.volume import DISK, Disk, NetworkVolume, disk_request

DOCUMENT: dict[str, object] = {
    "type": "volume", "backend": "aws", "region": "us-east-1", "availability_zone": "us-east-1a",
    "size": 10 << 30, "aws": {"account": "123456789012"},
}  # fmt: skip
SEEN = {"id": "vol-1", "zone": "us-east-1a", "size_gb": 10}


def volume_step(verb: str) -> Step:
    said = {"fleet": "", "path": "", DISK: disk_request(DOCUMENT, None)}
    return step(verb, "data", **written(DOCUMENT, **said))


def carry_out(ledger: Ledger, one: Step, outputs: dict[str, object]) -> None:
    accepted = enter(ledger, plan_of(ledger, [one]))
    ledger.begin_steps(accepted.apply_uid, [one], now_ms=1)
    outcome = StepOutcome(one.key, outputs=outputs)
    ledger.finish_steps(accepted.apply_uid, [one], [outcome], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=1)


def the_volume(ledger: Ledger) -> NetworkVolume:
    return ledger.read_book().disks["data"]


def test_a_disk_and_its_instance(ledger: Ledger) -> None:
    """An update of the volume keeps the instance, which is forgotten once the disk is detached."""
    carry_out(ledger, volume_step("volume.make"), {DISK: SEEN})
    fence = ledger.take_fence(who="test", now_ms=1)
    volume = the_volume(ledger)
    assert (volume.disk, volume.attached_to) == ("vol-1", "")
    ledger.note_attachment(volume.uid, "instance", fence=fence)
    assert the_volume(ledger).attached_to == "instance"
    carry_out(ledger, volume_step("volume.update"), {DISK: SEEN})
    assert the_volume(ledger).attached_to == "instance"
    ledger.note_attachment(volume.uid, "", fence=fence)
    assert the_volume(ledger).attached_to == ""


def test_snapshots_of_disks(ledger: Ledger) -> None:
    """They are listed with the region, and the volume is gone."""
    carry_out(ledger, volume_step("volume.make"), {DISK: SEEN})
    carry_out(ledger, volume_step("volume.snapshot"), {"places": ["snap-1"]})
    (snapshot,) = ledger.read_snapshots()
    assert (snapshot.place, snapshot.path, snapshot.is_of_disk) == ("snap-1", "us-east-1", True)
    assert ledger.read_book().disks == {}


def test_a_released_disk_is_named(ledger: Ledger) -> None:
    """An event says which disk stays, and where; plans know it until a volume names it, and it is no directory."""
    carry_out(ledger, volume_step("volume.make"), {DISK: SEEN})
    disk = disk_request(DOCUMENT, Disk("vol-1", "us-east-1a", 10))
    carry_out(ledger, step("volume.forget", "data", fleet="", path="", **{DISK: disk}), {})
    assert any("vol-1 stays in us-east-1" in one.message for one in ledger.read_events())
    live = ledger.read_live()
    assert (live.retained_disks, live.left) == ({"data": "vol-1"}, ())
    carry_out(ledger, volume_step("volume.make"), {DISK: {**SEEN, "id": "vol-2"}})
    assert ledger.read_live().retained_disks == {"data": "vol-1"}
    document = {**DOCUMENT, "volume_id": "vol-1"}
    said = {"fleet": "", "path": "", DISK: disk_request(document, None)}
    carry_out(ledger, step("volume.make", "data", **written(document, **said)), {DISK: SEEN})
    assert ledger.read_live().retained_disks == {}
