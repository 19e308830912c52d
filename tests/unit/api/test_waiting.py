from __future__ import annotations

import applied
from fleetform.api.waiting import waiting_reasons
from fleetform.app.workspace import Workspace
from fleetform.schedule import Policies, queue_from_state, schedule

FAR = """\
type: fleet
name: far
nodes: 1
local: {cpu: 4, memory: 8GB}
"""

VOLUME = """\
type: volume
name: data
fleet: far
path: data
"""

TASK = """\
type: task
name: reader
commands: [cat data/file]
volumes: ["data:data"]
"""


def test_a_run_waits_for_the_fleet_of_its_volume(tmp_path, monkeypatch):
    """The reasons that people read speak of the fleet on which the run's volume lies alone."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    root = applied.write_tree(tmp_path / "lab", applied.FLEET, FAR, VOLUME, TASK)
    applied.enter(root)
    book = Workspace.open(str(root)).reader().read_book()
    (reasons,) = waiting_reasons(book, now_ms=applied.NOW_MS).values()
    assert [reason.code for reason in reasons] == ["fleet-not-ready"]
    assert "fleet far" in reasons[0].detail
    # The manager's own rounds are over the same book.
    decisions = schedule(queue_from_state(book), book.instances, Policies(), now_ms=applied.NOW_MS)
    assert tuple(decisions.waiting.values()) == (reasons,)
