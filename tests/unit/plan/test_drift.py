"""What one look at the world comes to: every row of the table, and what is no drift."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fleetform.agents.protocol.host_report import HostReport
from fleetform.agents.protocol.messages import Cursor, JobKey, JobRecord
from fleetform.agents.protocol.states import JobState
from fleetform.model.drift import (
    NOT_DRIFT,
    TABLE,
    Drift,
    DriftClass,
    Noted,
    Observed,
    RecordedDrift,
    Remedy,
)
from fleetform.model.existence import CloudPlace
from fleetform.model.instance import Gpu, Instance, InstanceState
from fleetform.model.live import Live
from fleetform.model.verbs import ON_HOSTS
from fleetform.model.volume import DISK
from fleetform.plan.drift import accept, compare
from fleetform.providers.contract.observed import HostSeen, InstanceSeen, PlaceSeen, VolumeSeen
from fleetform.providers.contract.volumes import DiskSeen
from fleetform.spec.desired import ResourceKey
from unit.plan.trees import NOW_MS, UID, declare, fleet, ledger, row, task, volume

FLEET, VOLUME = ResourceKey("fleet", "local"), ResourceKey("volume", "data")
UNTIL_MS = 1_795_378_262_000
DATA = row(volume("data", path="data"))
_STORE = {
    "type": "volume",
    "backend": "aws",
    "region": "r",
    "availability_zone": "r1",
    "size": 1 << 30,
}
STORE = replace(
    row(declare("volume", "store", _STORE)),
    outputs=json.dumps({DISK: {"id": "vol-1", "zone": "r1", "size_gb": 1}}),
)
HOST = Instance(
    "host", "local-0", "local", 0, InstanceState.READY,
    cpu_millicores=8000, memory_bytes=16 << 30, gpus=(Gpu("gpu-a", "A100", 80 << 30),),
    boot_id="boot", install_id="install", endpoint={"image": "ami-1"},
)  # fmt: skip
GPU = type("GPU", (), {"uuid": "gpu-a"})
PLACE = PlaceSeen("/v/data", True, UID, DATA.uid, "data", "7", "ada", "0700", False, NOW_MS - 5)


def _report(**more: object) -> HostReport:
    report = HostReport("node1", 8000, 16 << 30, 1, 1, 1, 0, (GPU,), "3.11", "6.1")
    return replace(report, **more)


def _instance(**more: object) -> InstanceSeen:
    return replace(InstanceSeen("host", "local-0", "local", UID, "ledger-1", 2, alive=True), **more)


def _host(**more: object) -> HostSeen:
    seen = HostSeen(
        "host", "install", "boot", "machine", "ledger-1", 2, Cursor("log", 0), (), _report()
    )
    return replace(seen, **more)


def _live(**more: object) -> Live:
    rows = (row(fleet("local")), DATA, STORE, row(task("train")))
    return replace(ledger(*rows), instances=(HOST,), **more)


def _world(**more: object) -> Observed:
    world = Observed(
        NOW_MS,
        (_instance(),),
        {"host": _host()},
        {"data": PLACE},
        (VolumeSeen(DATA.uid, "data", "/v/data"),),
        noted={
            VOLUME: {
                "identity": Noted("7", NOW_MS - 60),
                "owner": Noted("ada", NOW_MS - 60),
                "mode": Noted("0700", NOW_MS - 60),
                "directory": Noted("there", NOW_MS - 60),
            }
        },
    )
    return replace(world, **more)


def _only(world: Observed, live: Live | None = None) -> Drift:
    (one,) = compare(live or _live(), world).drifts
    return one


STRANGER = JobRecord(JobKey("f" * 32, 1, 0), "job", 1, "d", JobState.RUNNING, run_name="stranger")

WORLDS = {
    ("fleet", "host"): _world(instances=(), hosts={}),
    ("fleet", "agent"): _world(instances=(_instance(alive=False),), hosts={}),
    ("fleet", "connection"): _world(instances=(), hosts={}),
    ("fleet", "ledger"): _world(instances=(_instance(epoch=3),)),
    ("fleet", "cpu"): _world(hosts={"host": _host(report=_report(cpu_millicores=4000))}),
    ("fleet", "memory"): _world(hosts={"host": _host(report=_report(memory_bytes=8 << 30))}),
    ("fleet", "gpus"): _world(hosts={"host": _host(report=_report(gpus=()))}),
    ("fleet", "boot"): _world(hosts={"host": _host(boot_id="another")}),
    ("fleet", "install"): _world(hosts={"host": _host(install_id="another")}),
    ("fleet", "creation"): _world(cut_off={"host": None}),
    ("fleet", "unknown"): _world(instances=(_instance(), _instance(uid="x", name="local-7"))),
    ("fleet", "image"): _world(images={"host": "ami-2"}),
    ("volume", "directory"): _world(
        places={"data": PlaceSeen("/v/data", exists=False)}, volumes=()
    ),
    ("volume", "disk"): _world(disks={"store": None}),
    ("volume", "attachment"): _world(disks={"store": DiskSeen("vol-1", "r1", 1, "i-1")}),
    ("volume", "mark"): _world(places={"data": replace(PLACE, volume_uid="")}, volumes=()),
    ("volume", "claim"): _world(places={"data": replace(PLACE, volume_uid="other")}, volumes=()),
    ("volume", "path"): _world(
        places={"data": PlaceSeen("/v/data", exists=False)},
        volumes=(VolumeSeen(DATA.uid, "data", "/v/elsewhere"),),
    ),
    ("volume", "owner"): _world(places={"data": replace(PLACE, owner="eve")}),
    ("volume", "mode"): _world(places={"data": replace(PLACE, mode="0777")}),
    ("run", "record"): _world(hosts={"host": _host(records=(STRANGER,))}),
}


REMOTE = replace(_live(), instances=(replace(HOST, provider="ssh"),))


@pytest.mark.parametrize(
    ("newest", "accepted", "is_told"),
    [
        ("ami-1", "", False),
        ("ami-2", "", True),
        ("ami-2", "ami-2", False),
        ("ami-3", "ami-2", True),
    ],
)
def test_a_newer_image_is_told_until_it_is_accepted(newest, accepted, is_told) -> None:
    """An image that was accepted is no drift, and a newer one is."""
    noted = {ResourceKey("fleet", "local"): {"image": Noted(accepted, NOW_MS)}} if accepted else {}
    found = compare(_live(), _world(images={"host": newest}, noted=noted)).drifts
    told = [(one.expected, one.seen) for one in found if one.field == "image"]
    assert told == ([("ami-1", newest)] if is_told else [])


def test_a_host_of_another_machine_is_there_if_it_answers() -> None:
    """No list of this machine has it, and its records, hardware and ledger are compared as ever."""
    assert compare(REMOTE, _world(instances=())).drifts == ()
    assert _only(_world(instances=(), hosts={"host": _host(epoch=3)}), REMOTE).field == "ledger"
    assert _only(_world(instances=(), hosts={"host": _host(boot_id="b")}), REMOTE).field == "boot"


@pytest.mark.parametrize("place", TABLE, ids="-".join)
def test_each_row_of_the_table_is_found(place) -> None:
    """Its world differs in just that field, and is told with the row's class and remedy."""
    one = _only(WORLDS[place], REMOTE if place == ("fleet", "connection") else None)
    assert (one.resource.kind, one.field) == place
    assert (one.drift_class, one.remedy) == (TABLE[place].drift_class, TABLE[place].remedy)
    assert one.expected != one.seen


def test_the_table_is_whole() -> None:
    """Every kind that is planned has rows; what a person must decide says how; nothing is in both."""
    # Nothing of the other kinds is outside of the ledger, so nothing of them could differ.
    assert {kind for kind, _ in TABLE} == ON_HOSTS | {"run"}
    assert not TABLE.keys() & NOT_DRIFT.keys()
    for place, one in TABLE.items():
        assert bool(one.cure) == (one.remedy in {Remedy.DECIDE, Remedy.ACCEPT}), place
        if one.drift_class is DriftClass.OBSERVED:
            assert one.remedy is not Remedy.APPLY, "nobody declares it, so nothing makes it so"


def test_a_world_as_it_was_made_has_not_drifted() -> None:
    """All that was compared is noted as right, so that the next look can say since when."""
    found = compare(_live(), _world())
    assert found.drifts == ()
    assert set(found.right[VOLUME]) == {
        "directory", "identity", "claim", "path", "mark", "owner", "mode",
    }  # fmt: skip
    assert set(found.right[FLEET]) == {
        f"hosts[local-0].{name}"
        for name in ("host", "ledger", "agent", "boot", "cpu", "memory", "gpus")
    }


def test_since_when_is_what_was_noted() -> None:
    """What was right before says when; what nobody had looked at says nothing."""
    assert _only(WORLDS["volume", "mode"]).right_at_ms == NOW_MS - 60
    assert _only(WORLDS["fleet", "host"]).right_at_ms is None


def test_by_whom_is_told_where_it_is_known() -> None:
    """A change through us since it was right, another environment, a reboot."""
    changed = {VOLUME: Noted("eve@node2", NOW_MS - 30)}
    assert "eve@node2" in _only(replace(WORLDS["volume", "mode"], changed=changed)).by
    earlier = {VOLUME: Noted("eve@node2", NOW_MS - 90)}
    assert _only(replace(WORLDS["volume", "mode"], changed=earlier)).by == ""
    never_right = replace(WORLDS["volume", "directory"], noted={}, changed=changed)
    assert _only(never_right).by == "", "that an apply was the last change proves nothing"
    assert _only(WORLDS["volume", "claim"]).by == f"environment {UID[:8]}…"
    assert _only(WORLDS["fleet", "boot"]).by == "a reboot"


def test_nobody_is_named_for_a_silent_host() -> None:
    """An apply since it answered last has not made it silent."""
    noted = {FLEET: {"hosts[local-0].connection": Noted("answers", NOW_MS - 60)}}
    changed = {FLEET: Noted("eve@node2", NOW_MS - 30)}
    silent = replace(WORLDS["fleet", "connection"], noted=noted, changed=changed)
    one = _only(silent, REMOTE)
    assert (one.by, one.right_at_ms) == ("", NOW_MS - 60)


def test_an_agent_that_rests_has_not_drifted() -> None:
    """It has ended because there was nothing to do, and is started when there is."""
    world = _world(instances=(_instance(alive=False, resting=True),), hosts={})
    assert compare(_live(), world).drifts == ()


def test_declared_capacity_is_the_trees_word() -> None:
    """A fleet that pretends to be bigger than its machine has not drifted."""
    live = replace(_live(), instances=(replace(HOST, declared={"cpu": 8000}),))
    assert compare(live, WORLDS["fleet", "cpu"]).drifts == ()


def test_more_than_the_floor_is_no_drift() -> None:
    """A host that has got memory and CPUs is what was counted on."""
    more = _world(hosts={"host": _host(report=_report(cpu_millicores=9000, memory_bytes=32 << 30))})
    assert compare(_live(), more).drifts == ()


def test_an_empty_unmarked_directory_is_another_one() -> None:
    """Marking it would hide that the data is gone; so would one that was made in its place."""
    empty = replace(PLACE, volume_uid="", is_empty=True)
    other = replace(PLACE, volume_uid="", identity="8")
    for place in (empty, other):
        one = _only(_world(places={"data": place}, volumes=()))
        assert (one.field, one.remedy) == ("directory", Remedy.DECIDE)


def test_the_first_look_takes_permissions_as_they_are() -> None:
    """Nobody declares them: what is there when somebody first looks is what it was."""
    found = compare(_live(), _world(noted={}))
    assert found.drifts == ()
    assert found.right[VOLUME]["mode"] == "0700"


@pytest.mark.parametrize(
    "live",
    [
        replace(_live(), instances=(replace(HOST, state=InstanceState.TERMINATING),)),
        replace(_live(), instances=(replace(HOST, install_id=""),)),
        replace(_live(), resources={FLEET: replace(row(fleet("local")), operation="op")}),
    ],
    ids=["leaves", "never greeted", "is being changed"],
)
def test_what_is_on_its_way_has_not_drifted(live) -> None:
    """A host that leaves, was never greeted, or is being changed is passed over."""
    assert compare(live, _world(instances=(), hosts={}, places={})).drifts == ()


def test_what_changed_during_the_look_is_passed_over() -> None:
    """A host that was let go while the world was looked at is no unknown one."""
    world = replace(WORLDS["fleet", "unknown"], moving=frozenset({"x"}))
    assert compare(_live(), world).drifts == ()
    world = replace(WORLDS["volume", "directory"], moving=frozenset({DATA.uid}))
    assert compare(_live(), world).drifts == ()


def test_a_known_job_is_no_stranger() -> None:
    """However it ended: that is its attempt's outcome."""
    world = replace(WORLDS["run", "record"], known_runs=frozenset({"f" * 32}))
    assert compare(_live(), world).drifts == ()


def test_a_whole_gang_of_drifts_is_in_order() -> None:
    """By resource and path, whatever the order in which they were found."""
    world = _world(
        instances=(_instance(alive=False), _instance(uid="x", name="local-7")),
        hosts={},
        places={"data": replace(PLACE, owner="eve", mode="0777")},
    )
    paths = [(str(one.resource), one.path) for one in compare(_live(), world).drifts]
    assert paths == sorted(paths)
    assert len(paths) == 4


def test_only_what_was_observed_is_accepted() -> None:
    """What is enforced is told again until it is right."""
    world = _world(instances=(), hosts={}, places={"data": replace(PLACE, mode="0777")})
    assert accept(compare(_live(), world).drifts) == {VOLUME: {"mode": "0777"}}


def _earlier(key: ResourceKey, name: str, part: str = "") -> RecordedDrift:
    line = TABLE[key.kind, name]
    drift = Drift(key, name, line.drift_class, line.remedy, "right", "wrong", part)
    return RecordedDrift(drift, NOW_MS - 9, NOW_MS - 7)


def test_drift_is_recorded_from_the_first_look_that_finds_it():
    """A later look at the same moves when it was seen last, and not when it was found."""
    world = _world(places={"data": replace(PLACE, exists=False)})
    (first,) = compare(_live(), world).recorded
    assert (first.drift.field, first.found_at_ms, first.seen_at_ms) == ("directory", NOW_MS, NOW_MS)
    (again,) = compare(_live(), replace(world, at_ms=NOW_MS + 5, recorded=(first,))).recorded
    assert (again.found_at_ms, again.seen_at_ms) == (NOW_MS, NOW_MS + 5)


@pytest.mark.parametrize(
    "earlier",
    [
        _earlier(VOLUME, "directory"),
        _earlier(FLEET, "agent", "local-0"),
        _earlier(FLEET, "boot", "local-0"),
        _earlier(FLEET, "agent", "local-9"),
        _earlier(FLEET, "unknown", "local-9"),
        _earlier(ResourceKey("run", "lost"), "record", "local-0/a.1.0"),
    ],
    ids=lambda one: f"{one.drift.field}-{one.drift.part}",
)
def test_a_look_that_sees_it_right_forgets_an_earlier_drift(earlier: RecordedDrift):
    """So does the end of the host that it was of."""
    assert compare(_live(), replace(_world(), recorded=(earlier,))).recorded == ()


@pytest.mark.parametrize(
    ("earlier", "world"),
    [
        (_earlier(FLEET, "boot", "local-0"), {"hosts": {}}),
        (_earlier(ResourceKey("run", "lost"), "record", "local-0/a.1.0"), {"hosts": {}}),
        (_earlier(VOLUME, "directory"), {"moving": frozenset({DATA.uid})}),
        (_earlier(VOLUME, "mode"), {"places": {}}),
    ],
    ids=["a host that is silent", "its jobs", "what is being changed", "what was not looked at"],
)
def test_a_look_that_sees_nothing_of_it_keeps_an_earlier_drift(earlier, world):
    """Silence proves nothing."""
    found = compare(_live(), replace(_world(), **world, recorded=(earlier,))).recorded
    assert earlier in found


CUT_OFF = Instance(
    "new", "gpus-1", "local", 1, InstanceState.PROVISIONING,
    provider="aws", endpoint={"account": "1", "region": "r"},
)  # fmt: skip
LISTED = InstanceSeen(
    "new", "gpus-1", "local", UID, "", 0,
    alive=True, provider="aws", endpoint={"id": "i-1", "account": "1", "region": "r"},
)  # fmt: skip
UNKNOWN = "whether its instance exists is unknown until 2026-11-22T20:11:02Z"
THEN = "`fleetform apply` or a controller"


@pytest.mark.parametrize(
    ("clouds", "state", "seen", "detail"),
    [
        (
            {CloudPlace("aws", "1", "r"): (LISTED,)},
            InstanceState.PROVISIONING,
            "cut off, and i-1 exists",
            "the instance costs money; `fleetform apply` or a controller adopts it",
        ),
        (
            {CloudPlace("aws", "1", "r"): (replace(LISTED, is_ending=True),)},
            InstanceState.TERMINATING,
            "cut off, and no instance is listed",
            f"{UNKNOWN}, because clouds list new instances late; {THEN} releases it",
        ),
        (
            {},
            InstanceState.PROVISIONING,
            "cut off",
            f"{UNKNOWN}; {THEN} adopts it, or creates it if there is none",
        ),
    ],
)
def test_a_creation_that_was_cut_off_is_drift_also_during_an_apply(clouds, state, seen, detail):
    """The apply that began it may be dead. Nothing of it is recorded: it is over once an instance is in the ledger."""
    fleets = replace(row(fleet("local")), operation="apply-1")
    live = replace(_live(), instances=(replace(CUT_OFF, state=state),))
    live = replace(live, resources={**live.resources, FLEET: fleets})
    world = _world(
        at_ms=UNTIL_MS - 1, instances=(), hosts={}, clouds=clouds, cut_off={"new": UNTIL_MS}
    )
    comparison = compare(live, world)
    (one,) = comparison.drifts
    assert (one.path, one.expected) == ("hosts[gpus-1].creation", "finished")
    assert (one.seen, one.detail) == (seen, detail)
    assert comparison.recorded == ()
    assert compare(live, replace(world, cut_off={})).drifts == ()
