"""Where volumes lie and who mounts them."""

from __future__ import annotations

import json
from dataclasses import replace

from fleetform.model.drift import Drift, DriftClass, RecordedDrift, Remedy
from fleetform.model.run import RunState
from fleetform.model.volume import ATTACHED_TO, DISK
from fleetform.spec.desired import ResourceKey
from fleetform.views.resource_why import volume_troubles
from fleetform.views.table import plain_lines
from fleetform.views.volumes import volume_rows, volumes_table
from unit.views.rows import instance, live, live_run, resource

MOUNT = {"volumes": [{"name": "data", "path": "/data"}]}


def test_a_volume_names_the_runs_that_are_not_over():
    """A finished run and an archived one hold nothing."""
    rows = volume_rows(
        live(
            resource("volume", "data", {"fleet": "local", "path": "d"}, protected=True),
            resource("run", "a", MOUNT, run=live_run(RunState.RUNNING)),
            resource("run", "b", MOUNT, run=live_run(RunState.DONE)),
            resource("run", "c", MOUNT, archived=True),
            resource("run", "d", {}),
        )
    )
    assert [row.users for row in rows] == [("a",)]
    assert plain_lines(volumes_table(rows)) == (
        "VOLUME  FLEET  PATH  WHEN REMOVED  PROTECTED  USED BY",
        "data    local  d     retain        yes        a",
    )


def test_a_network_volume_shows_its_disk_in_a_hundred_columns():
    """What finds it in the console, how large it is, which host has it, and what becomes of it; one being created is as declared."""
    document = {"backend": "aws", "aws": {}, "deletion_policy": "snapshot"}
    disk = {"id": "vol-0f1e2d3c4b5a69788", "zone": "us-east-1a", "size_gb": 500}
    outputs = json.dumps({DISK: disk, ATTACHED_TO: "i0"})
    made = replace(resource("volume", "data", document), outputs=outputs)
    declared = {**document, "availability_zone": "us-east-1b", "size": 100 << 30}
    begun = replace(resource("volume", "new", declared), archived=True, state="making")
    rows = volume_rows(live(made, begun, instances=[instance(0)]))
    lines = plain_lines(volumes_table(rows))
    assert lines == (
        "VOLUME  BACKEND  ID                     KIND  ZONE         SIZE  ATTACHED TO  WHEN REMOVED  USED BY",
        "data    aws      vol-0f1e2d3c4b5a69788  disk  us-east-1a  500GB  local-0      snapshot      -",
        "new     aws      -                      disk  us-east-1b  100GB  -            snapshot      -",
    )
    assert max(map(len, lines)) <= 100


def test_a_disk_that_another_instance_has_names_it_in_list_and_why():
    """A look has found it there; what the ledger has attached since counts more."""
    key = ResourceKey("volume", "data")
    seen = ("attachment", DriftClass.OBSERVED, Remedy.DECIDE, "free", "attached to i-73de")
    disk = {DISK: {"id": "vol-1", "zone": "us-east-1a", "size_gb": 1}}
    volume = resource("volume", "data", {"backend": "aws", "aws": {}})
    free = replace(volume, outputs=json.dumps(disk))
    drift = (RecordedDrift(Drift(key, *seen), 0, 0),)
    elsewhere = replace(live(free), recorded_drift=drift)
    assert "i-73de (no host)" in plain_lines(volumes_table(volume_rows(elsewhere)))[1]
    (trouble,) = volume_troubles(["data"], elsewhere, (), now_ms=60_000)
    assert trouble.reason.detail == (
        "volume data: attachment: free (expected) → attached to i-73de (seen 1m00s ago)"
    )
    assert trouble.cure == "detach the disk from the other instance"
    ours = replace(volume, outputs=json.dumps({**disk, ATTACHED_TO: "i0"}))
    attached = replace(live(ours, instances=(instance(0),)), recorded_drift=drift)
    assert volume_rows(attached)[0].attached_elsewhere == ""
    assert list(volume_troubles(["data"], attached, (), now_ms=60_000)) == []
