from __future__ import annotations

from fleetform.model.live import LedgerStatus, Live, LiveResource, LiveRun
from fleetform.model.ports import ApplyRecord
from fleetform.model.run import RunState
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.spec.desired import Environment, ResourceKey
from fleetform.views.agents import agent_rows, agents_table
from fleetform.views.applies import apply_rows
from fleetform.views.environments import environment_row
from fleetform.views.resources import resource_detail, resource_rows
from fleetform.views.table import plain_lines

FLEET = LiveResource(
    ResourceKey("fleet", "local"), "u1", 2, "d1", "d1", "d1", '{"local": {}}', "fleet"
)
RUN = LiveResource(
    ResourceKey("run", "train"), "u2", 1, "d2", "d2", "d2", '{"env": {"A": "b"}}', "task",
    archived=True, run=LiveRun(RunState.DONE, 1),
)  # fmt: skip
LIVE = Live(
    "uid", "ledger", 3, LedgerStatus.READY, 17, {RUN.key: RUN, FLEET.key: FLEET}, notes=("hm",)
)


def test_resources_come_in_order_of_their_keys():
    """Whatever order the ledger reads in, rows are the same."""
    rows = resource_rows(LIVE)
    assert [row.address for row in rows] == ["fleet/local", "run/train"]
    assert [(row.state, row.run_state) for row in rows] == [("present", ""), ("archived", "done")]


def test_a_document_is_shown_without_the_values_of_env():
    """The detail is the row and what was applied."""
    detail = resource_detail(RUN)
    assert detail.document == {"env": {"A": "(withheld)"}}
    assert detail.row in resource_rows(LIVE)


def test_an_environment_counts_what_is_present():
    """What is archived has left the tree and is not counted."""
    row = environment_row(Environment("lab", "uid"), LIVE)
    assert (row.status, row.epoch, row.serial, row.notes) == ("ready", 3, 17, ("hm",))
    assert row.resources == {"fleet": 1}
    assert environment_row(Environment("lab", "uid"), None).status == "empty"


def test_applies_keep_their_order():
    """The ledger says which is newest."""
    records = [ApplyRecord(uid, "digest", "done", "ada", "c0ffee", 1, 2, "ok") for uid in "ba"]
    assert [row.uid for row in apply_rows(records)] == ["b", "a"]


def test_agents_are_in_order_of_fleet_and_name():
    """Whether one answers is a word, so that a pipe can be searched for it."""
    seen = [InstanceSeen(f"u{n}", n, "local", "uid", "", 0, alive=n == "b") for n in "ba"]
    rows = agent_rows(seen)
    assert [row.name for row in rows] == ["a", "b"]
    assert [line.split()[2] for line in plain_lines(agents_table(rows))] == ["ANSWERS", "no", "yes"]
