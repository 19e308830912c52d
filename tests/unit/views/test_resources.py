from __future__ import annotations

import dataclasses
import json

from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import Live, LiveResource, LiveRun
from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey
from fleetform.views.resources import resource_detail, resource_rows

FLEET = LiveResource(
    ResourceKey("fleet", "local"), "u1", 2, "d1", "d1", "d1", '{"local": {}}', "fleet"
)
RUN = LiveResource(
    ResourceKey("run", "train"), "u2", 1, "d2", "d2", "d2", '{"env": {"A": "b"}}', "task",
    archived=True, run=LiveRun(RunState.DONE, 1),
)  # fmt: skip
LIVE = Live("uid", "ledger", 3, LedgerStatus.READY, 17, {RUN.key: RUN, FLEET.key: FLEET})


def test_resources_come_in_order_of_their_keys():
    """Whatever order the ledger reads in, rows are the same."""
    rows = resource_rows(LIVE)
    assert [row.address for row in rows] == ["fleet/local", "run/train"]
    assert [(row.state, row.run_state) for row in rows] == [("present", ""), ("archived", "done")]


def test_a_document_is_shown_without_the_values_of_env():
    """The detail is the row and what was applied."""
    detail = resource_detail(LIVE, RUN)
    assert detail.document == {"env": {"A": "(withheld)"}}
    assert detail.row in resource_rows(LIVE)


def test_what_is_shown_of_a_document_is_sealed_and_so_is_its_digest():
    """Whoever has the rest of a document could try words at its digest."""
    document = {"commands": ["curl https://bot:hunter2@example.org"]}
    run = dataclasses.replace(RUN, document=json.dumps(document), digest="0123abcd")
    detail = resource_detail(LIVE, run)
    assert "hunter2" not in str(detail)
    assert detail.row.digest not in {"", "0123abcd"}
    assert detail.row.digest == resource_detail(LIVE, run).row.digest
