"""Where volumes lie and who mounts them."""

from __future__ import annotations

from fleetform.model.run import RunState
from fleetform.views.table import plain_lines
from fleetform.views.volumes import volume_rows, volumes_table
from unit.views.rows import live, live_run, resource

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
